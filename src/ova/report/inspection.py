"""What was looked at in a trained model, for its page: plain values, whatever the kind of its data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ova.files import Row
from ova.predictions.columns import Array
from ova.training.run_folder import Run

OWN = "this model"  # what charts call it
CONFIDENCE = "confidence"  # the scale of thresholds that no other score decides


@dataclass(frozen=True, kw_only=True)
class Example:
    """One input with what the model says of it."""

    place: str  # where it stands in the user's data
    text: str = ""  # what it is, to read
    picture: bytes = field(default=b"", repr=False)  # PNG
    label: str  # that it was given
    guess: str  # the class of the largest p
    confidence: float  # calibrated, where the model is
    known: bool = True  # whether the label is a class of the model
    answered: bool | None = None  # None where no decision is told


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """What each threshold does to rows that the fitted one does not rest on."""

    scale: str  # what is compared with it: "confidence", or the name of a score
    grid: Sequence[float]
    start: int  # the place of the fitted threshold
    answered: Sequence[float]
    accuracy: Sequence[float | None]  # of the answered
    through: Mapping[str, Sequence[float]]  # the share of each outside set that is answered
    bins: Sequence[Row]  # how many right, wrong and unknown rows lie where on the scale


@dataclass(frozen=True, kw_only=True)
class Confusion:
    """The test rows of the classes, a number each: the class, the best guess, and whether it is answered."""

    target: Array
    guess: Array
    answered: Array


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """Everything that the page of a model shows besides its promise."""

    title: str  # the data
    about: str  # one line: the kind of data, classes, network
    run: Run  # measured with calibrated confidences, with log, recipe and manifest
    classes: Sequence[str]
    sweep: Sweep | None  # None where each class has a threshold of its own
    confusion: Confusion
    mistakes: Sequence[Example]  # test rows, the surest first
    doubtful: Sequence[Example]  # test rows that are refused, or nearly
    outside: Mapping[str, Sequence[Example]]  # of each outside set, what is most like the inside
    suspects: Sequence[Example]  # rows whose label looks wrong
    facts: Mapping[str, str]  # how it was trained
