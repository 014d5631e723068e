"""`Predictions`: target, predicted class, confidence and the like, a column each, a row per example."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ova.errors import BadInput

Array = NDArray[Any]

NONE = -1  # the target of an example that belongs to none of the classes
NONE_LABEL = "none of the above"  # what an input is called that is refused, where labels are words
# Cells of the matrix that one core reduces at a time: enough to forget the call, few enough to share.
CELLS, PARTS = (1 << 20, 1 << 24), 64


@dataclass(frozen=True, eq=False, kw_only=True)
class Predictions:
    """Columns of equal length; floating columns are float32 or float64, as they were brought.

    A column is None when it cannot be known: a file of (confidence, prediction, target) has no
    `entropy`, probabilities have no `energy`. One-vs-all probabilities are kept as they are.

    >>> said = Predictions.from_probs([[0.7, 0.2, 0.1]], [0], normalised=True)
    >>> said.prediction, said.correct
    (array([0], dtype=int32), array([ True]))
    """

    id: Array  # int64: which example of the data set this is
    target: Array  # int32: its class, -1 for none of the classes
    prediction: Array  # int32: the class of the largest p, the first of several
    confidence: Array  # the largest p, never renormalised
    log_p: Array | None = None  # log p_y; NaN where there is no target
    log_answers: Array | None = None  # one-vs-all: log p_y + sum_{j != y} log(1 - p_j)
    log_none: Array | None = None  # sum_k log(1 - p_k), log-probability of "none of the above"
    squared_error: Array | None = None  # sum_k (p_k - [k = y])^2; NaN where it has no meaning
    entropy: Array | None = None  # of the K-way answer; one-vs-all: of the K answers, added up
    max_logit: Array | None = None  # max_k z_k; for distance heads the smallest distance, negated
    energy: Array | None = None  # log sum_k e^z_k (the energy of the literature, negated)
    probs: Array | None = None  # N x K, only where somebody asked to keep it
    features: Array | None = None  # N x D, float16 or float32, only where somebody asked to keep it
    scores: Mapping[str, Array] = field(default_factory=dict)  # more scores, higher for inside
    classes: int | None  # K
    normalised: bool | None  # each row sums to one (softmax) or not (one-vs-all)

    def __post_init__(self) -> None:
        for name, column in (*((n, getattr(self, n)) for n in COLUMNS), *self.scores.items()):
            if column is not None and len(column) != len(self.id):
                raise BadInput(f"{name} has {len(column)} rows, id has {len(self.id)}")

    def __len__(self) -> int:
        return len(self.id)

    @property
    def correct(self) -> Array:
        """Where the prediction is the target; never for an example of none of the classes."""
        return np.asarray(self.prediction == self.target)

    def take(self, rows: ArrayLike | slice) -> "Predictions":
        """The chosen rows, in the chosen order, repeated where chosen twice."""
        chosen: dict[str, Any] = {
            n: None if (c := getattr(self, n)) is None else c[rows] for n in COLUMNS
        }
        at: Any = rows
        scores = {name: column[at] for name, column in self.scores.items()}
        return replace(self, **chosen, scores=scores)

    @staticmethod
    def from_probs(
        probs: ArrayLike,
        target: ArrayLike,
        *,
        id: ArrayLike | None = None,  # noqa: A002
        normalised: bool,
        keep_probs: bool = False,
    ) -> "Predictions":
        """Columns of an N x K matrix of probabilities, checked and never repaired."""
        from ova.predictions import reduction

        p = matrix(probs, "probabilities")
        ids, y = rows_of(id, target, p)

        def work(rows: slice, prediction: Array, out: Array) -> int:
            q = own(p[rows])
            views = q.view(f"i{q.itemsize}"), q.view(f"u{q.itemsize}")
            return reduction.reduce_probs(q, views, y[rows], normalised, prediction, out)

        prediction, out, bad = _reduce(p, work)
        if bad >= 0:
            _refuse_probs(p[bad], int(ids[bad]))
        return _columns(ids, y, prediction, out, p, (normalised, keep_probs, False))

    @staticmethod
    def from_logits(
        z: ArrayLike,
        log_probs: ArrayLike,
        target: ArrayLike,
        *,
        id: ArrayLike | None = None,  # noqa: A002
        normalised: bool,
        keep_probs: bool = False,
    ) -> "Predictions":
        """Columns of logits and their log-probabilities, which do not saturate at one."""
        from ova.predictions import reduction

        logits, log_p = matrix(z, "logits"), matrix(log_probs, "log-probabilities")
        if logits.shape != log_p.shape:
            raise BadInput(f"logits are {logits.shape}, log-probabilities {log_p.shape}")
        ids, y = rows_of(id, target, log_p)

        def work(rows: slice, prediction: Array, out: Array) -> int:
            args = (own(logits[rows]), own(log_p[rows]), y[rows], normalised, prediction, out)
            return reduction.reduce_logits(*args)

        prediction, out, bad = _reduce(log_p, work)
        if bad >= 0:
            _refuse_logits(logits[bad], log_p[bad], int(ids[bad]))
        p = np.exp(np.minimum(log_p, 0)) if keep_probs else log_p
        return _columns(ids, y, prediction, out, p, (normalised, keep_probs, True))


FACTS = ("scores", "classes", "normalised")
COLUMNS = tuple(f.name for f in fields(Predictions) if f.name not in FACTS)
MATRICES = ("probs", "features")  # columns of a list per row
REDUCED = COLUMNS[
    COLUMNS.index("confidence") : COLUMNS.index("probs")
]  # rows of a reduction's `out`


def matrix(values: ArrayLike, what: str) -> Array:
    """A whole N x K matrix of float32 or float64, K at least 1."""
    x = np.asarray(values)
    if x.ndim != 2 or x.shape[1] < 1:
        raise BadInput(f"{what} must be a matrix of N rows and K classes, not of shape {x.shape}")
    if x.dtype.kind not in "fiu":
        raise BadInput(f"{what} must be numbers, not {x.dtype}")
    kept = x.dtype if x.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    return np.ascontiguousarray(x, np.float32 if x.dtype == np.float16 else kept)


def rows_of(id: ArrayLike | None, target: ArrayLike, p: Array) -> tuple[Array, Array]:  # noqa: A002
    """Ids and targets that fit the matrix; ids count from 0 where none are given."""
    n, K = p.shape
    ids = np.arange(n) if id is None else whole(id, "id", np.dtype(np.int64))
    y = whole(target, "target", np.dtype(np.int32))
    for name, column in (("id", ids), ("target", y)):
        if column.shape != (n,):
            raise BadInput(f"{name} has shape {column.shape}, but there are {n} rows")
    check_labels(y, ids, K, "target", NONE)
    return ids, y


def whole(values: ArrayLike, name: str, dtype: np.dtype[Any], first: int = 0) -> Array:
    """A column of whole numbers; 3.0 is one, 3.5 is not. `first` is the number of its first row."""
    x = np.asarray(values)
    if x.dtype.kind not in "iufb":
        raise BadInput(f"{name} must be whole numbers, not {x.dtype}")
    if x.dtype == dtype:
        return x
    limit = np.iinfo(dtype)
    with np.errstate(invalid="ignore"):
        # A NaN compares false, so it is found here as well.
        good = (x >= limit.min) & (x <= limit.max) & (x == np.floor(x))
    if not good.all():
        row = int(np.argmin(good))
        raise BadInput(f"row {first + row}: {name} must be a whole number, not {x[row]}")
    return x.astype(dtype)


def check_labels(y: Array, ids: Array, K: int, name: str, least: int) -> None:
    """Labels lie in least..K-1."""
    if len(y) and (int(y.min()) < least or int(y.max()) >= K):
        row = int(np.argmax((y < least) | (y >= K)))
        rule = f"0..{K - 1}" + (" (or -1 for none of the classes)" if least == NONE else "")
        raise BadInput(f"row {ids[row]}: {name} {y[row]} lies outside {rule}")


def own(x: Array) -> Array:
    """The array, copied if it may not be written to: another type to compiled loops, hence slow once."""
    return x if x.flags.writeable else x.copy()


def _reduce(p: Array, work: Callable[[slice, Array, Array], int]) -> tuple[Array, Array, int]:
    """Predictions and columns of all rows, and the first bad row or -1."""
    from ova.predictions.parallel import by_blocks

    prediction, out = np.empty(len(p), np.int32), np.empty((len(REDUCED), len(p)), p.dtype)

    def block(start: int, stop: int) -> int:
        mine = np.empty((len(REDUCED), stop - start), p.dtype)  # whole, as compiled loops like it
        bad = work(slice(start, stop), prediction[start:stop], mine)
        out[:, start:stop] = mine
        return start + bad if bad >= 0 else -1

    cells = min(max(p.size // PARTS, CELLS[0]), CELLS[1])
    found = by_blocks(len(p), max(1, cells // p.shape[1]), block)
    return prediction, out, next((bad for bad in found if bad >= 0), -1)


def _columns(
    ids: Array, y: Array, prediction: Array, out: Array, p: Array, flags: tuple[bool, bool, bool]
) -> Predictions:
    normalised, keep_probs, logits = flags
    known: dict[str, Any] = dict(zip(REDUCED, out, strict=True))
    if normalised:
        known["log_answers"] = None
    if not logits:
        known |= {"max_logit": None, "energy": None}
    known |= {"id": ids, "target": y, "prediction": prediction, "probs": p if keep_probs else None}
    return Predictions(**known, classes=p.shape[1], normalised=normalised)


def _refuse_probs(p: Array, row: int) -> None:
    k = int(np.argmax(~((p >= 0) & (p <= 1))))
    if np.isnan(p[k]):
        raise BadInput(f"row {row}: the probability of class {k} is NaN")
    if not 0 <= p[k] <= 1:
        raise BadInput(
            f"row {row}: the probability of class {k} is {p[k]:.6g}, outside [0, 1]; logits must "
            "become probabilities first (softmax, or a sigmoid per class for one-vs-all)"
        )
    raise BadInput(
        f"row {row}: the probabilities sum to {p.sum(dtype=float):.6g}, not 1; if they are one-vs-all "
        "probabilities, say so (normalised=False, --one-vs-all)"
    )


def _refuse_logits(z: Array, log_p: Array, row: int) -> None:
    if np.isnan(z).any() or np.isnan(log_p).any():
        raise BadInput(f"row {row}: a logit or log-probability is NaN")
    if (log_p > 1e-6).any():
        raise BadInput(f"row {row}: log-probability {log_p.max():.6g} is above 0")
    total = np.exp(log_p.astype(float)).sum()
    raise BadInput(f"row {row}: the probabilities sum to {total:.6g}, not 1 (normalised=False?)")
