"""Train a model from Python: what `ova train` does, for data in memory, as an object."""

import tempfile
from collections.abc import Generator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from numbers import Integral
from pathlib import Path
from shutil import rmtree
from typing import Any

from rich.console import Console

from ova.data.encoders import encoder_folder
from ova.errors import BadInput
from ova.modelfolder import outputs
from ova.modelfolder.names import RUN
from ova.modelfolder.train import Trained
from ova.modelfolder.train import train as carry_out
from ova.modelfolder.trained import TrainedModel
from ova.posthoc.per_class import EachClass
from ova.posthoc.threshold import Promise
from ova.training.engine import Machine, launch
from ova.training.loggers import installed
from ova.training.loggers.board import Logged
from ova.training.loggers.logged import logged
from ova.training.progress import show
from ova.training.recipe import Recipe
from ova.training.stages import Event
from ova.userdata.gather import Gathered, gather
from ova.userdata.given import in_words_of_python, unlabelled, written
from ova.userdata.labels import label_of
from ova.userdata.request import Request

GIVEN = ("data", "text", "label", "test", "outside", "settings")  # which have ways of their own


def train(  # noqa: PLR0913  what `ova train` asks for most
    data: Any,
    labels: Any = None,
    *,
    label: Any = "",
    text: Any = "",
    accuracy: float | None = None,
    coverage: float | None = None,
    leak: float | None = None,
    certainty: float = 0.95,
    per_class: bool = False,
    pool_rare: bool = False,
    score: str = "",
    test: Any = None,
    outside: Any = None,
    out: str | Path | None = None,
    verbose: bool | None = None,
    accelerator: str = "auto",
    minutes: float | None = None,
    log: str = "",
    **options: Any,
) -> TrainedModel:
    """Train a classifier that can say "none of the above": what `ova train` does, from memory too.

    `data` is a data frame (pandas, polars), an Arrow table, a list of (input, label), inputs with
    their `labels` apart, or the path of a file or of a folder of images. `label` and `text` name
    columns; inputs are sentences or rows of numbers. `test` is like the data, `outside` has no labels.
    The promise (`accuracy`, `coverage`, `leak`, `certainty`, for every class with `per_class` and
    perhaps `pool_rare`) and `score` are those of the command.

    With `out`, a folder, an interrupted training goes on there; without, the model lies in a
    temporary folder, which goes with the object. Bars are shown on a terminal, lines with
    `verbose=True`. Training takes `minutes` at most (images 10, 0: no limit). With `log`, which
    needs `out`, each epoch is also written for tensorboard, mlflow or wandb. `options` are
    further ones of the command (none, group, formulation, model, encoder, frozen, drop,
    skip_bad, mirror, seed, cross_fit) and fields of the recipe (epochs=5, members=3).

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = train(X, y, accuracy=0.8, epochs=5)
    >>> model.threshold.promised
    True
    >>> [said.label for said in model.predict([X[0], [60, 40, 50, 20]])]
    ['0', None]
    """
    if pool_rare and not per_class:
        raise BadInput(
            "pool_rare=True puts rare classes together, which per_class=True keeps apart"
        )
    if log and out is None:
        raise BadInput(f"log={log!r} is the log of a folder that can go on: name one, out='model'")
    if log:
        installed(log)
    each = partial(EachClass, pool=pool_rare)
    machine = Machine(accelerator=accelerator, minutes=minutes)
    wanted = (each if per_class else Promise)(accuracy, coverage, leak, certainty)
    place = Path(tempfile.mkdtemp(prefix="ova-"))
    try:
        folder = place / "model" if out is None else Path(out)
        names = (label_of(text) or "", label_of(label) or "")  # of columns, which may be numbers
        promises = per_class or wanted.says
        asked = Asked(place, data, labels, test, outside, *names, options, promises)
        with in_words_of_python(asked.files):
            gathered = gather(asked.request(folder))
            fabric = launch(machine, gathered.recipe.precision)
            work = carry_out(fabric, gathered, folder, machine, wanted, score)
            if log:
                work = logged(work, Logged(folder / RUN, str(out), "ova train"), log)
            told(gathered, work, str(out or "model"), verbose)
        return TrainedModel(folder, gathered.notes, None if out is not None else place)
    except BaseException:
        rmtree(place, ignore_errors=True)
        raise
    finally:
        if out is not None:
            rmtree(place, ignore_errors=True)


@dataclass(frozen=True)
class Asked:
    """What `train` was given, and the folder for what of it is not on disk."""

    place: Path
    data: Any
    labels: Any
    test: Any
    outside: Any
    text: str
    label: str
    options: Mapping[str, Any]
    promises: bool = False  # whether a promise is asked for, which needs rows of its own

    @property
    def files(self) -> dict[Path, str]:
        """Our files, and what they are called where a message names them."""
        return {
            self.place / f"{name}.parquet": f"the {name}" for name in ("data", "test", "outside")
        }

    def request(self, out: Path) -> Request:
        """The request that the engine knows, after a look at where the model is to lie."""
        known = {each.name: each for each in fields(Request) if each.name not in GIVEN}
        recipe = {each.name for each in fields(Recipe)} - {"experiment", "data"}
        for name in self.options:
            if name not in known and name not in recipe:
                raise BadInput(
                    f"train has no option {name!r}; besides those that its signature names there is: "
                    f"{', '.join(known)}, and of the recipe: {', '.join(sorted(recipe - {*known}))}"
                )
        given = {n: typed(n, v, known[n].default) for n, v in self.options.items() if n in known}
        if "drop" in given:
            given["drop"] = (
                (given["drop"],) if isinstance(given["drop"], str) else tuple(given["drop"])
            )
        if given.get("encoder") is not None:
            given["encoder"] = encoder_folder(given["encoder"])
        at, test, outside = self.files
        held = written(self.data, self.labels, (self.text, self.label), at)
        names = (held.text, held.label)
        X, y = self.test if isinstance(self.test, tuple) else (self.test, None)
        request = Request(
            data=held.path,
            text=held.text,
            label=held.label,
            test=None if X is None else written(X, y, names, test).path,
            outside=None if self.outside is None else unlabelled(self.outside, held.text, outside),
            settings=tuple(
                f"{name}={setting(value)}"
                for name, value in self.options.items()
                if name not in known
            ),
            cross_fit=given.pop("cross_fit", False if self.promises else None),
            **given,
        )
        read = (request.data, request.test, request.outside, request.encoder)
        outputs.check_folder("out", out, [path for path in read if path is not None])
        return request


def typed(name: str, value: Any, default: Any) -> Any:
    """The value of an option, if it is of the kind of its default; a name may be a number."""
    if isinstance(default, bool) and not isinstance(value, bool):
        raise BadInput(f"{name} is True or False, not {value!r}")
    if isinstance(default, int) and not isinstance(value, Integral):
        raise BadInput(f"{name} is a whole number, not {value!r}")
    if isinstance(default, str):
        return label_of(value) or ""
    return value


def setting(value: Any) -> str:
    """A value of a recipe as it is typed."""
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def told(
    gathered: Gathered, work: Generator[Event, None, Trained], name: str, verbose: bool | None
) -> Trained:
    """Carry out the work and show it, where somebody looks or asked for it."""
    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    if not (console.is_terminal if verbose is None else verbose):
        return show(work, name, None)
    for note in gathered.notes:
        console.print(f"note: {note}", soft_wrap=True)
    return show(work, name, console)
