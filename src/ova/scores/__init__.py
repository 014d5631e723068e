"""Scores for out-of-distribution detection: one number per example, higher for inside."""

from ova.scores.fitting import FittedScores as FittedScores
from ova.scores.fitting import fit as fit
from ova.scores.keeping import load as load
from ova.scores.keeping import save as save
from ova.scores.outputs import AffineHead as AffineHead
from ova.scores.outputs import Outputs as Outputs
from ova.scores.score import Score as Score
from ova.scores.table import SCORES as SCORES
from ova.scores.table import scores_of as scores_of
