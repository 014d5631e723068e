"""Scores for out-of-distribution detection: one number per example, higher for inside.

A new score is a file beside this that says `SCORE = ...`, and a line in `_FILES`.
"""

from importlib import import_module

from ova.scores.score import Score as Score

_FILES = {  # name -> file
    "max_p": "max_p",
    "any": "any_class",
    "entropy": "entropy",
    "max_logit": "max_logit",
    "energy": "energy",
}
SCORES: dict[str, Score] = {
    name: import_module(f"ova.scores.{file}").SCORE for name, file in _FILES.items()
}
