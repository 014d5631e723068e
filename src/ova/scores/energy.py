"""The free energy of the logits, negated (Liu et al., 2020)."""

from ova.scores.score import free

SCORES = {"energy": free("log sum exp of the logits", "logits", lambda p: p.energy)}
