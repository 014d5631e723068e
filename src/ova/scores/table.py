"""The scores by name. A new one is a file with an entry in its `SCORES`, and a line here."""

from importlib import import_module

from ova.predictions import Predictions
from ova.predictions.columns import Array
from ova.scores.score import Score

_FILES = (  # each has entries in its SCORES; a score comes after those that it joins
    "max_p",
    "any_class",
    "entropy",
    "max_logit",
    "energy",
    "gen",
    "logit_norm",
    "dismax",
    "knn",
    "cosine",
    "mahalanobis",
    "vim",
    "fdbd",
    "nnguide",
    "react",
    "scale",
    "energy_nearest",
    "sirc",
)
SCORES: dict[str, Score] = {
    name: score
    for file in _FILES
    for name, score in import_module(f"ova.scores.{file}").SCORES.items()
}


def scores_of(p: Predictions) -> dict[str, Array]:
    """Every score that predictions have: those they carry, and those that are read off their columns.

    >>> list(scores_of(Predictions.from_probs([[0.9, 0.1]], [0], normalised=True)))
    ['max_p', 'any', 'entropy']
    """
    read = {name: score.column(p) for name, score in SCORES.items() if score.column is not None}
    # A calibration changes columns; what is carried beside them under the same name is older.
    known = {**p.scores, **{name: values for name, values in read.items() if values is not None}}
    order = [name for name in SCORES if name in known] + [n for n in known if n not in SCORES]
    return {name: known[name] for name in order}
