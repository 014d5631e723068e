"""The calibrations by name, the usual one, and one read back from JSON."""

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

from ova.errors import BadInput, pick
from ova.posthoc.calibration.calibration import Calibration

_NAMES = (  # each a file beside this
    "temperature",
    "top",
    "beta",
    "isotonic",
)
CALIBRATIONS: dict[str, type[Calibration]] = {
    name: import_module(f"ova.posthoc.calibration.{name}").CALIBRATION for name in _NAMES
}


def usual(normalised: bool | None, matrix: bool) -> str:
    """The method to use when nobody names one.

    >>> usual(True, matrix=True), usual(True, matrix=False), usual(False, matrix=True)
    ('temperature', 'top', 'top')
    """
    return "temperature" if normalised and matrix else "top"


def from_json(row: Mapping[str, Any]) -> Calibration:
    """What `to_json` wrote, checked.

    >>> from ova.posthoc.calibration import Top
    >>> fitted = Top(n=50, normalised=False, a=2.0, b=0.5, score="max_logit")
    >>> from_json(fitted.to_json()) == fitted
    True
    """
    if not isinstance(row, Mapping) or "method" not in row:
        raise BadInput("not a calibration written by ova: it names no method")
    if "why_not" in row:
        raise BadInput(f"there is no calibration: {row['why_not']}")
    method = pick(CALIBRATIONS, row["method"], "calibration")
    kinds = {f.name: f.type for f in fields(method)}
    try:
        return method(**{k: _plain(kinds.get(k), v) for k, v in row.items() if k != "method"})
    except (TypeError, ValueError) as error:
        raise BadInput(f"not a calibration written by ova: {error}") from None


def _plain(kind: Any, value: Any) -> Any:
    """A value of JSON as the field of that kind holds it."""
    if kind == tuple[float, ...]:
        return tuple(float(v) for v in value)
    return float(value) if kind is float else value
