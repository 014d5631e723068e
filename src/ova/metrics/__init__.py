"""Metrics of probabilities, curve first and number second."""
