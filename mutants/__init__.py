"""Mutation testing: wrong lines are put into the code one at a time, and a test must notice."""
