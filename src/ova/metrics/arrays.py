"""Predictions in memory, as arrays, tensors or a data frame, and all that is measured of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ova.errors import BadInput
from ova.files import Row
from ova.metrics.evaluate import Calibration
from ova.metrics.evaluate import evaluate as measure
from ova.metrics.measured import Evaluation
from ova.metrics.resampling import Draws
from ova.metrics.selective import histogram
from ova.predictions import NONE, Predictions, SetName, columns
from ova.predictions.columns import Array
from ova.predictions.foreign import Reading, taken
from ova.predictions.formats.layout import chunk_of, columns_of, places_of, used
from ova.predictions.formats.wanted import Wanted
from ova.predictions.memory import frame, short
from ova.predictions.sets import TEST


def evaluate(  # noqa: PLR0913  one keyword for each kind of set, and how to read them
    y_true: Any,
    probs: Any = None,
    *,
    ood: Any = None,
    shift: Mapping[str, Any] | None = None,
    labels: Sequence[Any] | None = None,
    normalised: bool = True,
    bootstrap: int = 0,
    seed: int = 0,
    calibration: Calibration | None = None,
) -> Evaluation:
    """Every metric of predictions in memory, as a table with `.to_dict()` and `.to_pandas()`.

    Targets with an N x K matrix of probabilities (or p of class 1), `Predictions`, or a data frame
    with a column `target` and columns p_0, p_1, ...; or a mapping of sets by their names, `test`,
    `shift/fog/3`, `ood/noise`. `ood` has the probabilities for examples of none of the classes, of
    several sets a mapping; `shift` a pair (y_true, probs) for each "type/severity". `labels` are the
    names of the columns in their order, where targets are names. One-vs-all probabilities, which need not sum to one, say normalised=False. `bootstrap` redraws the
    examples so often for 95 % intervals.

    >>> evaluate([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]).value("accuracy")
    0.6666666666666666
    """
    how = Read(labels, normalised)
    draws = Draws(count=bootstrap, seed=seed) if bootstrap else None
    sets = sets_of(y_true, probs, ood, shift, how)
    rows, curves = measure(sets, draws, calibration)
    return Evaluation(rows, [*curves, *alone(sets)])


def alone(sets: Mapping[str, Any]) -> list[Row]:
    """The confidences of right and wrong answers, where there is no set to mix them with."""
    p = sets.get(TEST)
    if not isinstance(p, Predictions) or any(SetName(name).outside for name in sets):
        return []
    counts = {name: column.tolist() for name, column in vars(histogram(p)).items()}
    return [{"dataset": TEST, "curve": "histogram", "columns": counts}]


@dataclass(frozen=True)
class Read:
    """How arrays are to be taken: the names of the columns, and whether rows sum to one."""

    labels: Sequence[Any] | None = None
    normalised: bool = True


def sets_of(
    y_true: Any, probs: Any, ood: Any, shift: Mapping[str, Any] | None, how: Read
) -> dict[str, Any]:
    """The sets by their names."""
    if is_sets(y_true):
        if probs is not None or ood is not None or shift is not None:
            raise BadInput("a mapping of sets holds them all; give nothing beside it")
        return dict(y_true)
    found: dict[str, Any] = {TEST: predictions(y_true, probs, how)}
    for name, pair in (shift or {}).items():
        kind, _, severity = str(name).rpartition("/")
        if not kind or not severity.isdecimal():
            raise BadInput(f"a shifted set is called type/severity, as 'fog/3', not {name!r}")
        y, p = pair if isinstance(pair, tuple) else (pair, None)
        found[SetName.shift(kind, int(severity))] = predictions(y, p, how)
    several = isinstance(ood, Mapping) and not is_columns(ood)
    for name, p in (ood if several else {"outside": ood}).items():
        if p is not None:
            found[SetName.ood(str(name))] = outside(p, how)
    return found


def is_sets(given: Any) -> bool:
    """Whether it is a mapping from the names of sets to what was said of them."""
    return isinstance(given, Mapping) and all(
        isinstance(p, Predictions) or callable(p) for p in given.values()
    )


def is_columns(given: Mapping[Any, Any]) -> bool:
    """Whether a mapping is the columns of one table, not sets by their names."""
    return not any(isinstance(p, Predictions) or np.ndim(p) != 1 for p in given.values())


def predictions(y_true: Any, probs: Any = None, how: Read | None = None) -> Predictions:
    """Targets and probabilities, a data frame, or what is `Predictions` already."""
    how = how or Read()
    if probs is None:
        return whole(y_true, how, outside=False)
    if isinstance(y_true, Predictions):
        raise BadInput("predictions have their own probabilities; give nothing beside them")
    p = matrix(probs)
    y = numbered(y_true, p.shape[1], how.labels)
    normalised = how.normalised or np.ndim(array(probs)) == 1
    return Predictions.from_probs(p, y, normalised=normalised, keep_probs=True)


def outside(probs: Any, how: Read) -> Predictions:
    """The predictions for examples of none of the classes."""
    if isinstance(probs, Predictions) or frame(probs) is not None:
        return whole(probs, how, outside=True)
    p = matrix(probs)
    none = np.full(len(p), NONE)
    normalised = how.normalised or np.ndim(array(probs)) == 1
    return Predictions.from_probs(p, none, normalised=normalised, keep_probs=True)


def whole(given: Any, how: Read, outside: bool) -> Predictions:
    """Predictions as they are, or those of a table with the columns of a file."""
    if isinstance(given, Predictions):
        return given
    table = frame(given)
    if table is None:
        raise BadInput(
            f"targets come with probabilities, or as a data frame that has both; this is {short(given)}"
        )
    places = places_of(table.column_names, Wanted(not outside, how.normalised))
    chunk = chunk_of(places, columns_of(table.select(used(places)).combine_chunks(), places))
    return taken(chunk, Reading(how.normalised, outside))


def array(values: Any) -> Array:
    """An array of whatever library, also a tensor that needs a gradient."""
    try:
        return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    except ValueError:
        raise BadInput(f"rows of one length were wanted, not {short(values)}") from None


def matrix(probs: Any) -> Array:
    """N x K probabilities; of two classes p of the second alone will do."""
    p = array(probs)
    both = np.stack([1 - p, p], axis=1) if p.ndim == 1 and p.dtype.kind == "f" else p
    return columns.matrix(both, "probabilities")


def numbered(y_true: Any, K: int, labels: Sequence[Any] | None) -> Array:
    """Targets as the numbers of their columns."""
    y = array(y_true)
    if labels is None and y.dtype.kind in "iufb":
        return y
    names = sorted({str(name) for name in y.tolist()}) if labels is None else [*map(str, labels)]
    if len(names) != K or len({*names}) != K:
        said = "the targets" if labels is None else "labels="
        raise BadInput(
            f"{said} have {len(names)} names for {K} columns; labels= names each column in its order"
        )
    place = {name: k for k, name in enumerate(names)}
    found = [place.get(str(name)) for name in y.tolist()]
    if None in found:
        row = found.index(None)
        raise BadInput(f"row {row}: the target {y.tolist()[row]!r} is none of the labels")
    return np.array(found, np.int64)
