"""Why activation shaping (ReAct, SCALE) is left out for features that no rectifier has made."""

import numpy as np

from ova.predictions.columns import Array
from ova.scores.training import Training


def signed(training: Training) -> str | None:
    """The reason where features may be negative, as those of transformers are."""
    if training.least >= 0:
        return None
    return (
        "it shapes activations of rectifiers, which are never negative; these features are, and on "
        "transformers it is no better than chance. Ask for it by name to have it all the same"
    )


def energy(f: Array, weight: Array, bias: Array) -> Array:
    """The energy, log sum e^z, of the shaped features."""
    from scipy.special import logsumexp

    z = f @ weight.T.astype(f.dtype) + bias.astype(f.dtype)
    return np.asarray(logsumexp(z, axis=1))
