"""What to train on the user's own data, and how: the options of `ova train`."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the user asked for; everything but the data has a default."""

    data: Path
    text: str = ""  # column of texts; empty: a table of numbers
    label: str = ""
    none: str = ""  # label of examples of none of the classes; empty: there are none
    group: str = ""  # column of what belongs together; of images a pattern for their names
    formulation: str = ""  # empty: our choice
    model: str = ""  # name of a model; empty: what suits the data
    encoder: Path | None = None
    frozen: bool = False
    test: Path | None = None  # rows to report on; else some of the data
    outside: Path | None = None  # examples of none of the classes, to report on
    drop: tuple[str, ...] = ()
    skip_bad: bool = False
    size: int = 0  # pixels a side of images; 0: what most of them have, within bounds
    mirror: bool = False  # images mirrored at random while training
    balance: bool | None = None  # class weights; None: tried where classes are uneven
    seed: int = 0
    # Whether all rows are trained on and judged by cross-fitting; None: where they are few.
    cross_fit: bool | None = False
    settings: tuple[str, ...] = ()  # key=value of the recipe
