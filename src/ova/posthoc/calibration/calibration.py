"""What a calibration is: fitted on held-out predictions, applied to any, kept as JSON."""

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, Self

from ova.errors import BadInput
from ova.posthoc.calibration.fitting import Floats
from ova.predictions import Predictions


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A fitted map from what a model said to a confidence; the answers themselves never change."""

    method: ClassVar[str]
    fewest: ClassVar[int]  # held-out examples
    order: ClassVar[str]  # what happens to the order of the confidences: kept, weakly, may change

    n: int  # examples it was fitted on
    normalised: bool | None  # of the predictions it was fitted on, where known

    def __post_init__(self) -> None:
        numbers = [v for f in fields(self) if isinstance(v := getattr(self, f.name), float)]
        if not all(math.isfinite(v) for v in numbers):
            raise BadInput(f"a parameter of the calibration {self.method} is not finite")

    @classmethod
    def keeps_order(cls, normalised: bool | None) -> bool:  # noqa: ARG003
        """Whether the order of the confidences is kept, for probabilities that sum to one or not."""
        return cls.order == "kept"

    @classmethod
    def fit(cls, held: Predictions) -> Self:
        """The calibration with the least loss on held-out predictions."""
        raise NotImplementedError

    def confidence(self, p: Predictions) -> Floats:
        """The calibrated confidence of every top answer, in float64."""
        raise NotImplementedError

    def apply(self, p: Predictions) -> Predictions:
        """The predictions with the calibrated confidence.

        Columns that belong to the uncalibrated probabilities (log p, entropy, ...) become unknown;
        logits and answers stay.
        """
        if None not in (self.normalised, p.normalised) and self.normalised != p.normalised:
            kinds = {True: "probabilities that sum to one", False: "one-vs-all probabilities"}
            raise BadInput(
                f"the calibration was fitted on {kinds[bool(self.normalised)]}, "
                f"these are {kinds[bool(p.normalised)]}"
            )
        return replace(
            p,
            confidence=self.confidence(p),
            log_p=None,
            log_answers=None,
            log_none=None,
            squared_error=None,
            entropy=None,
            probs=None,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"method": self.method, **asdict(self)}


def short(x: float) -> float:
    """Ten digits: those after them depend on the order in which a machine adds."""
    return float(f"{x:.10g}")
