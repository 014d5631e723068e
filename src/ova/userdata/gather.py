"""From the user's files and options to a task and a recipe: read, checked, split, prepared."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ova.data.augmentation import pad_crop_flip
from ova.data.folders import scan
from ova.data.task import Examples, InMemory, Task, unchanged
from ova.errors import BadInput
from ova.files import sha256
from ova.models.pretrained import FROZEN, TUNED
from ova.nn.formulations import DEFAULT, DEFAULT_FROZEN
from ova.predictions import NONE
from ova.predictions.sets import SetName
from ova.training.recipe import OWN, Recipe, override
from ova.userdata import images, tables, texts
from ova.userdata.kinds import ENCODER, HEAD_ONLY, KINDS, length
from ova.userdata.preparation import Encoded, Examined, Preparation
from ova.userdata.rows import FILE, Frame, whole
from ova.userdata.split import HELD, split

NOTHING = "none of the above"  # what a refusal is called
LABEL = "label"  # the column of labels, unless the user names another
OUTSIDE = SetName.ood("outside")  # the set of the user's examples of none of the classes
NAMED = 5  # bad rows that a message names


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the user asked for; everything but the data has a default."""

    data: Path
    text: str = ""  # column of texts; empty: a table of numbers
    label: str = ""
    none: str = ""  # label of examples of none of the classes; empty: there are none
    formulation: str = ""  # empty: our choice
    model: str = ""  # name of a model; empty: what suits the data
    encoder: Path | None = None
    frozen: bool = False
    test: Path | None = None  # rows to report on; else some of the data
    outside: Path | None = None  # examples of none of the classes, to report on
    drop: tuple[str, ...] = ()
    skip_bad: bool = False
    mirror: bool = False  # images mirrored at random while training
    seed: int = 0
    settings: tuple[str, ...] = ()  # key=value of the recipe


@dataclass(frozen=True)
class Gathered:
    """Everything that training needs, and what the user should know."""

    kind: str
    task: Task
    recipe: Recipe
    preparation: Preparation
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Labelled:
    """Rows and the label of each; None where there is none."""

    frame: Frame
    labels: Sequence[str | None]
    sources: Mapping[str, str]


def gather(request: Request) -> Gathered:
    """Read the data, divide it, learn the preparation on the training part."""
    kind, read = kind_of(request), labelled(request.data, request)
    examined = examine(kind, read.frame, request)
    bad = {**unlabelled(read.labels), **named(examined.bad, kind, read.frame)}
    kept, dropped = usable(request.data, request.skip_bad, bad, len(read.labels))
    labels = [str(read.labels[row]) for row in kept]
    classes = classes_of(request.data, without(request.none.strip(), labels, request.data))
    number = {name: k for k, name in enumerate(classes)}
    y = [number.get(label, NONE) for label in labels]
    held = [name for name in HELD if name != "test" or request.test is None]
    found = split(y, [examined.keys[row] for row in kept], request.seed, held)
    preparation = examined.learn([kept[i] for i in found.parts["train"]])
    encoded = examined.encode(preparation)
    target = torch.full((len(read.labels),), NONE)
    target[kept] = torch.tensor(y)
    sets: dict[str, InMemory] = {}
    for name, rows in found.parts.items():
        sets |= apart(name, encoded, target, [kept[i] for i in rows])
    more, said = extra(request, number, preparation, sets["train"])
    task = Task(
        classes=classes,
        shape=preparation.shape,
        train=sets.pop("train"),
        validation=sets.pop("validation"),
        evaluations={name: partial(itself, part) for name, part in (sets | more).items()},
        prepare=preparation.prepare,
        augment=partial(pad_crop_flip, flip=request.mirror) if kind == "image" else unchanged,
        sources={**read.sources, **sources_of(request)},
    )
    notes = (*examined.notes, *dropped, *found.notes, *said, *outsiders(request.none, task))
    return Gathered(kind, task, recipe_of(request, kind, task), preparation, notes)


def without(none: str, labels: list[str], path: Path) -> list[str]:
    """The labels of classes: all but that of none of them."""
    inside = [label for label in labels if label != none]
    if none and len(inside) == len(labels):
        have = [*map(repr, sorted(set(labels))[:NAMED]), *["..."] * (len(set(labels)) > NAMED)]
        raise BadInput(
            f"{path}: no row is labelled {none!r} (--none); the labels are {', '.join(have)}"
        )
    return inside


def apart(
    name: str, encoded: Encoded, target: torch.Tensor, rows: Sequence[int]
) -> dict[str, InMemory]:
    """A part of the rows; of the test rows those of no class are a set of their own."""
    if name != "test":
        return {name: picked(encoded, target, rows)}
    inside = [row for row in rows if target[row] != NONE]
    strange = [row for row in rows if target[row] == NONE]
    sets = {name: picked(encoded, target, inside)}
    return {**sets, SetName.ood("none"): picked(encoded, target, strange)} if strange else sets


def outsiders(none: str, task: Task) -> list[str]:
    """What was done with the examples of none of the classes."""
    if not none:
        return []
    sets = {"to train": task.train, "to stop early": task.validation}
    sets |= {name: make() for name, make in task.evaluations.items()}
    counts = {name: int((examples.y == NONE).sum()) for name, examples in sets.items()}
    said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    return [f"rows labelled {none!r} are examples of none of the classes: {said}"]


def named(bad: Mapping[int, str], kind: str, frame: Frame) -> Mapping[int, str]:
    """The same reasons, those of images with the file."""
    if kind != "image":
        return bad
    return {row: f"{frame.columns[FILE][row]} is {why}" for row, why in bad.items()}


def itself(examples: InMemory) -> Examples:
    """The examples."""
    return examples


def picked(encoded: Encoded, target: torch.Tensor, rows: Sequence[int]) -> InMemory:
    """Some of the rows."""
    index = torch.tensor(rows, dtype=torch.long)
    lengths = None if encoded.lengths is None else encoded.lengths[index]
    return InMemory(encoded.x[index], target[index], lengths)


def kind_of(request: Request) -> str:
    """Images, texts or a table, by what the data is and which columns were named."""
    if request.data.is_dir():
        if request.text:
            raise BadInput(f"--text names a column, but {request.data} is a folder of images")
        return "image"
    return "text" if request.text else "table"


def labelled(path: Path, request: Request) -> Labelled:
    """The rows of a file with the column of labels apart, or images with their class folders."""
    if path.is_dir():
        held = scan(path)
        names = [held.name(row) for row in range(len(held))]
        return Labelled(
            Frame({FILE: names}), [held.classes[k] for k in held.y], {path.name: held.digest}
        )
    frame = whole(path)
    label = request.label or LABEL
    cells = frame.column(label, path, "--label")
    if label == request.text:
        raise BadInput(f"column {label!r} cannot be both the text and the label")
    rest = {name: column for name, column in frame.columns.items() if name != label}
    labels = [None if row in frame.bad else label_of(cell) for row, cell in enumerate(cells)]
    return Labelled(Frame(rest, frame.bad), labels, {path.name: sha256(path)})


def label_of(cell: Any) -> str | None:
    r"""A label as text: numbers as they are written, nothing for an empty cell.

    >>> label_of(3.0), label_of(' a, "b" '), label_of(""), label_of(float("nan"))
    ('3', 'a, "b"', None, None)
    """
    if cell is None or cell != cell or not str(cell).strip():  # noqa: PLR0124  NaN
        return None
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()


def examine(kind: str, frame: Frame, request: Request) -> Examined:
    """Look at the data as its kind demands."""
    if kind == "image":
        return images.examine(frame, request.encoder)
    if kind == "text":
        return texts.examine(frame, request.text, request.encoder)
    if request.encoder:
        raise BadInput("--encoder is for texts (with --text) and images; a table has none")
    return tables.examine(frame, request.drop)


def unlabelled(labels: Sequence[str | None]) -> dict[int, str]:
    """Rows without a label."""
    return {row: "no label" for row, label in enumerate(labels) if label is None}


def usable(
    path: Path, skip: bool, bad: Mapping[int, str], count: int
) -> tuple[list[int], tuple[str, ...]]:
    """Rows that can be used; others are an error, or counted when the user said so."""
    kept = [row for row in range(count) if row not in bad]
    if not bad:
        return kept, ()
    first = "; ".join(f"row {row + 1}: {bad[row]}" for row in sorted(bad)[:NAMED])
    said = f"{len(bad)} of {count} rows cannot be used ({first}{'; ...' * (len(bad) > NAMED)})"
    if not skip:
        raise BadInput(f"{path}: {said}; mend them, or leave them out with --skip-bad")
    return kept, (f"{path}: {said}; they were left out",)


def classes_of(path: Path, labels: Sequence[str]) -> tuple[str, ...]:
    """The classes in order of their names; numbers in order of their values."""
    counts = Counter(labels)
    if len(counts) < 2:
        only = f"all {len(labels)} rows are {labels[0]!r}" if labels else "no row is left"
        raise BadInput(f"{path}: at least two classes are needed, {only}")
    if NOTHING in counts:
        raise BadInput(
            f"{path}: a class is called {NOTHING!r}, which is what a refusal is called; if its rows "
            f"are examples of no class, say --none {NOTHING!r}"
        )
    if len(counts) > len(labels) / 2:
        raise BadInput(
            f"{path}: {len(counts)} classes in {len(labels)} rows; the label has to be one of few, "
            "is it the right column?"
        )
    numbers = [tables.as_number(name) for name in counts]
    if all(number == number for number in numbers):  # noqa: PLR0124  no NaN
        return tuple(name for _, name in sorted(zip(numbers, counts, strict=True)))
    return tuple(sorted(counts))


def extra(
    request: Request, number: Mapping[str, int], preparation: Preparation, trained: InMemory
) -> tuple[dict[str, InMemory], list[str]]:
    """Sets from further files: rows to test on, and examples of no class."""
    sets: dict[str, InMemory] = {}
    said: list[str] = []
    if request.test is not None:
        sets, said = tested(request, request.test, number, preparation)
        known = {row.tobytes() for row in trained.x.numpy()}
        again = sum(row.tobytes() in known for part in sets.values() for row in part.x.numpy())
        if again:
            said.append(f"{again} test rows are also among those to train on")
    if request.outside is not None:
        frame = whole(request.outside)
        encoded = preparation.encode(frame)
        rows, notes = usable(request.outside, request.skip_bad, encoded.bad, len(frame))
        if not rows:
            raise BadInput(f"{request.outside}: no row can be used")
        said += notes
        sets[OUTSIDE] = picked(encoded, torch.full((len(frame),), NONE), rows)
    return sets, said


def tested(
    request: Request, path: Path, number: Mapping[str, int], preparation: Preparation
) -> tuple[dict[str, InMemory], list[str]]:
    """The user's own test rows; those with a label that was not trained are outside."""
    read = labelled(path, request)
    encoded = preparation.encode(read.frame)
    bad = {**unlabelled(read.labels), **encoded.bad}
    rows, notes = usable(path, request.skip_bad, bad, len(read.labels))
    target = torch.tensor([number.get(str(label), NONE) for label in read.labels])
    known = {*number, request.none.strip()}
    strange = [row for row in rows if read.labels[row] not in known]
    usual = [row for row in rows if read.labels[row] in known]
    if not any(target[row] != NONE for row in usual):
        raise BadInput(f"{path}: none of its labels is among those of {request.data}")
    sets = apart("test", encoded, target, usual)
    if not strange:
        return sets, [*notes]
    note = f"{len(strange)} test rows have a label that was not trained: they count as outside"
    return {**sets, SetName.ood("test"): picked(encoded, target, strange)}, [*notes, note]


def sources_of(request: Request) -> dict[str, str]:
    """SHA-256 of the further files, and what else makes the data other data."""
    files = [p for p in (request.test, request.outside) if p is not None and p.is_file()]
    files += sorted(request.encoder.glob("*.safetensors")) if request.encoder else []
    read_as = {  # the same file means other examples
        "--text": request.text,
        "--label": "" if request.label == LABEL else request.label,
        "--none": request.none,
        "--drop": ", ".join(request.drop),
        "--skip-bad": "yes" * request.skip_bad,
        "--mirror": "yes" * request.mirror,
    }
    said = {option: value for option, value in read_as.items() if value}
    return {**{path.name: sha256(path) for path in files}, **said}


def recipe_of(request: Request, kind: str, task: Task) -> Recipe:
    """Settings that suit the kind and the amount of data, then what the user set."""
    chosen = KINDS[kind]
    settings: dict[str, Any] = {**chosen.settings, **length(chosen, len(task.train))}
    if request.encoder is not None:
        settings |= HEAD_ONLY if request.frozen else ENCODER
        settings["model"] = f"{FROZEN if request.frozen else TUNED}{request.encoder}"
    elif request.model:
        settings["model"] = request.model
    recipe = Recipe(
        experiment=request.data.stem or request.data.resolve().name,
        data=OWN,
        formulation=request.formulation or (DEFAULT_FROZEN if request.frozen else DEFAULT),
        seed=request.seed,
        keep="best",
        shift="none",
        **settings,
    )
    return override(recipe, [*request.settings])
