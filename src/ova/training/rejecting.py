"""What a refused input is called by classifiers in scikit-learn's manner."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ova.errors import BadInput
from ova.predictions.columns import NONE_LABEL


def refusal(label: Any, classes: NDArray[Any]) -> Any:
    """The label of refused inputs, by default what suits the classes; never one of them."""
    if label is None:
        label = -1 if classes.dtype.kind in "iuf" else NONE_LABEL
    if label in classes.tolist():
        raise BadInput(f"the reject label {label!r} is one of the classes; give another")
    return label


def with_refusals(labels: NDArray[Any], refused: NDArray[np.bool_], label: Any) -> NDArray[Any]:
    """The labels, and the refusal where inputs are refused."""
    if isinstance(label, str) != (labels.dtype.kind in "US"):
        labels = labels.astype(object)  # a text among numbers, or the other way round
    out = labels.astype(np.result_type(labels, np.asarray(label)))
    out[refused] = label
    return np.asarray(out)
