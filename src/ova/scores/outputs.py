"""What a network gives for examples: features, logits and probabilities, any of them, a row each."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ova.errors import BadInput
from ova.predictions import NONE, Predictions
from ova.predictions.columns import Array, check_labels, matrix, whole

CELLS, ROWS = 1 << 22, 4096  # of one block: what a score computes with at a time
LARGEST = float(np.finfo(np.float32).max)  # of a feature or a logit
LEAST = -1e4  # the logarithm of the smallest doubt: certainty stays a number
MATRICES = ("features", "logits", "log_p", "probs")


@dataclass(frozen=True, eq=False, kw_only=True)
class Outputs:
    """Rows of what a network gave; what is not known is None, and half precision stays as it is.

    `said` are the predictions that follow from them: confidence, entropy, energy and so on.

    >>> rows = Outputs(logits=[[2.0, 0.0], [0.0, 0.0]], target=[0, 1])
    >>> len(rows), rows.said.prediction
    (2, array([0, 0], dtype=int32))
    """

    features: Any = None  # f, N x D
    logits: Any = None  # z, N x K
    log_p: Any = (
        None  # log-probabilities, N x K, where a link other than softmax or sigmoid made them
    )
    probs: Any = None  # N x K
    target: Any = None  # the class of each row, -1 for none of them
    normalised: bool = True  # probabilities of a row sum to one (softmax) or not (one-vs-all)
    predictions: Predictions | None = None  # where they are there already
    values: dict[str, Array] = field(default_factory=dict)  # of scores, computed so far
    shared: dict[str, Any] = field(default_factory=dict)  # what several scores compute once

    def __post_init__(self) -> None:
        for name in MATRICES:
            if (x := getattr(self, name)) is not None:
                object.__setattr__(self, name, _finite(x, name))
        if self.target is not None:
            object.__setattr__(self, "target", np.asarray(self.target))
        sizes = {n: len(x) for n in _ROWWISE if (x := getattr(self, n)) is not None}
        if not sizes:
            raise BadInput("outputs need features, logits or probabilities")
        if len(set(sizes.values())) > 1:
            said = ", ".join(f"{name} {size}" for name, size in sizes.items())
            raise BadInput(f"outputs of different numbers of rows: {said}")

    def __len__(self) -> int:
        return next(len(x) for n in _ROWWISE if (x := getattr(self, n)) is not None)

    def take(self, rows: ArrayLike | slice) -> "Outputs":
        """The chosen rows."""
        chosen: dict[str, Any] = {
            n: x[rows] for n in (*MATRICES, "target") if (x := getattr(self, n)) is not None
        }
        p = None if self.predictions is None else self.predictions.take(rows)
        return replace(self, **chosen, predictions=p, values={}, shared={})

    def blocks(self) -> Iterator["Outputs"]:
        """The rows in blocks that bound the memory of whatever is computed from one."""
        width = max(
            (x.shape[1] for n in MATRICES if (x := getattr(self, n)) is not None), default=1
        )
        size = max(1, min(ROWS, CELLS // width))
        for start in range(0, len(self), size):
            yield self if len(self) <= size else self.take(slice(start, start + size))

    @cached_property
    def f(self) -> Array:
        """The features in float32 or float64."""
        if self.features is None:
            raise BadInput("there are no features")
        return matrix(self.features, "features")

    @cached_property
    def length(self) -> Array:
        """The Euclidean length of each feature vector, in float64."""
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", self.f, self.f, dtype=np.float64)))

    @cached_property
    def unit(self) -> Array:
        """The features at length one, in float32; a vector of zeros stays one."""
        length = np.where(self.length > 0, self.length, 1)
        return np.asarray(self.f / length[:, None], np.float32)

    @cached_property
    def energy(self) -> Array:
        """The energy, log sum e^z, of rows with logits."""
        assert self.said is not None
        assert self.said.energy is not None
        return self.said.energy

    @cached_property
    def log_probs(self) -> Array | None:
        """Log-probabilities, by softmax or a sigmoid per class where only logits are known."""
        from scipy.special import log_expit, log_softmax

        if self.logits is None and self.said is None:  # which refuses what are no probabilities
            return None
        if self.log_p is not None:
            return matrix(self.log_p, "log-probabilities")
        if self.logits is not None:
            z = np.asarray(self.logits, np.float64)  # one minus a sure p has no digits in float32
            return np.asarray(log_softmax(z, axis=1) if self.normalised else log_expit(z))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(matrix(self.probs, "probabilities")))

    @cached_property
    def log_doubt(self) -> Array:
        """log(1 - max p) in float64, which does not round where a network is sure."""
        from scipy.special import logsumexp

        assert self.log_probs is not None
        log_p = np.minimum(self.log_probs.astype(np.float64), 0)
        first = log_p.argmax(1)[:, None]
        if not self.normalised:
            with np.errstate(divide="ignore"):
                doubt = np.log(-np.expm1(np.take_along_axis(log_p, first, 1)[:, 0]))
        else:
            others = log_p.copy()
            np.put_along_axis(others, first, -np.inf, 1)
            doubt = logsumexp(others, axis=1)
        return np.asarray(np.maximum(doubt, LEAST))

    @cached_property
    def said(self) -> Predictions | None:
        """The predictions of these rows; None where there are features alone."""
        if self.predictions is not None:
            return self.predictions
        y = np.full(len(self), NONE) if self.target is None else self.target
        if self.logits is not None:
            assert self.log_probs is not None
            z = np.asarray(self.logits, self.log_probs.dtype)
            return Predictions.from_logits(z, self.log_probs, y, normalised=self.normalised)
        x = self.probs if self.log_p is None else np.exp(self.log_p)
        return None if x is None else Predictions.from_probs(x, y, normalised=self.normalised)

    @cached_property
    def classes(self) -> Array:
        """The target of each row, whole and checked against the number of classes where it is known."""
        if self.target is None:
            raise BadInput("there are no targets")
        y = whole(self.target, "target", np.dtype(np.int32))
        known = (x.shape[1] for x in (self.logits, self.log_p, self.probs) if x is not None)
        check_labels(y, np.arange(len(y)), next(known, 2**31 - 1), "target", NONE)
        return y


_ROWWISE = tuple(
    f.name for f in fields(Outputs) if f.name not in ("normalised", "values", "shared")
)  # what has a row per example


@dataclass(frozen=True, eq=False)
class AffineHead:
    """A last layer z = W f + b."""

    weight: Array  # K x D
    bias: Array  # K

    def __post_init__(self) -> None:
        w, b = (np.asarray(x, np.float64) for x in (self.weight, self.bias))
        if w.ndim != 2 or b.shape != w.shape[:1]:
            raise BadInput(
                f"an affine head has weights K x D and K biases, not {w.shape} and {b.shape}"
            )
        for name, x in (("weight", w), ("bias", b)):
            if not np.isfinite(x).all():
                raise BadInput(f"the {name} of an affine head has a value that is not finite")
        object.__setattr__(self, "weight", w)
        object.__setattr__(self, "bias", b)

    def __call__(self, f: Array) -> Array:
        """The logits of features, in their type."""
        return np.asarray(f @ self.weight.T.astype(f.dtype) + self.bias.astype(f.dtype))


def stream(rows: Outputs | Iterable[Outputs]) -> Iterator[Outputs]:
    """Blocks of rows, whether they come at once or in batches."""
    for batch in (rows,) if isinstance(rows, Outputs) else rows:
        yield from batch.blocks()


def _finite(values: ArrayLike, name: str) -> Array:
    x = np.asarray(values)
    if x.ndim != 2 or not x.shape[1] or x.dtype.kind not in "fiu":
        raise BadInput(f"{name} must be a matrix of numbers, not {x.dtype} of shape {x.shape}")
    # Squares of what single precision holds are numbers in double precision; of more they are not.
    largest = min(LARGEST, float(np.finfo(x.dtype).max)) if x.dtype.kind == "f" else LARGEST
    good = ~np.isnan(x) if name == "log_p" else np.abs(x) <= largest
    if not good.all():
        row = int((~good).any(1).argmax())
        why = "single precision cannot hold" if np.isfinite(x[row]).all() else "is not finite"
        raise BadInput(f"row {row}: {name} has a value that {why}")
    return x
