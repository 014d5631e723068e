"""Data sets, each turned into a task by one small adapter."""
