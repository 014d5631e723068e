"""From the user's files and options to a task and a recipe: read, checked, split, prepared."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ova.data.folders import scan
from ova.data.task import Examples, InMemory, Task
from ova.errors import BadInput
from ova.files import sha256
from ova.models.pretrained import FROZEN, TUNED
from ova.nn.formulations import DEFAULT, DEFAULT_FROZEN
from ova.predictions import NONE, NONE_LABEL
from ova.predictions.sets import TEST, SetName
from ova.training.recipe import OWN, Recipe, override
from ova.userdata.kind import Encoded, Preparation
from ova.userdata.kinds import ENCODER, HEAD_ONLY, KINDS, length
from ova.userdata.request import Request
from ova.userdata.rows import FILE, Frame, whole
from ova.userdata.split import HELD, split
from ova.userdata.tables import as_number

LABEL = "label"  # the column of labels, unless the user names another
OUTSIDE = SetName.ood("outside")  # the set of the user's examples of none of the classes
NAMED = 5  # bad rows that a message names


@dataclass(frozen=True)
class Gathered:
    """Everything that training needs, and what the user should know."""

    kind: str
    task: Task
    recipe: Recipe
    preparation: Preparation
    notes: tuple[str, ...]


def gather(request: Request) -> Gathered:
    """Read the data, divide it, learn the preparation on the training part."""
    kind = next(name for name, kind in KINDS.items() if kind.fits(request))
    frame, labels, sources = labelled(request.data, request)
    examined = KINDS[kind].examine(frame, request)
    bad = {**unlabelled(labels), **examined.bad}
    kept, dropped = usable(request.data, request, bad, len(labels))
    classes = classes_of(request, [str(labels[row]) for row in kept])
    target = targets(labels, classes)
    held = [name for name in HELD if name != TEST or request.test is None]
    keys = [examined.keys[row] for row in kept]
    found = split(target[kept].tolist(), keys, request.seed, held)
    parts = {name: [kept[i] for i in rows] for name, rows in found.parts.items()}
    preparation = examined.learn(parts["train"])
    sets = sets_of(examined.encode(preparation), target, parts)
    train, validation = sets.pop("train"), sets.pop("validation")
    notes = [*examined.notes, *dropped, *found.notes]
    for more, said in further(request, classes, preparation, train):
        sets |= more
        notes += said
    task = Task(
        classes=classes,
        shape=preparation.shape,
        train=train,
        validation=validation,
        evaluations={name: partial(itself, part) for name, part in sets.items()},
        prepare=preparation.prepare,
        augment=examined.augment,
        sources={**sources, **sources_of(request)},
    )
    notes += outsiders(request.none, task)
    return Gathered(kind, task, recipe_of(request, kind, task), preparation, tuple(notes))


def itself(examples: InMemory) -> Examples:
    """The examples."""
    return examples


def outsiders(none: str, task: Task) -> list[str]:
    """What was done with the examples of none of the classes."""
    if not none:
        return []
    sets = {"to train": task.train, "to stop early": task.validation}
    sets |= {name: make() for name, make in task.evaluations.items()}
    counts = {name: int((examples.y == NONE).sum()) for name, examples in sets.items()}
    said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    return [f"rows labelled {none!r} are examples of none of the classes: {said}"]


def labelled(path: Path, request: Request) -> tuple[Frame, Sequence[str | None], Mapping[str, str]]:
    """Rows, the label of each (None where there is none) and the SHA-256 of where they come from.

    A folder has images with the names of their class folders; of a file a column is the labels.
    """
    if path.is_dir():
        held = scan(path)
        names = [held.name(row) for row in range(len(held))]
        return Frame({FILE: names}), [held.classes[k] for k in held.y], {path.name: held.digest}
    frame = whole(path)
    label = request.label or LABEL
    cells = frame.column(label, path, "--label")
    if label == request.text:
        raise BadInput(f"column {label!r} cannot be both the text and the label")
    rest = {name: column for name, column in frame.columns.items() if name != label}
    return Frame(rest, frame.bad), [*map(label_of, cells)], {path.name: sha256(path)}


def label_of(cell: Any) -> str | None:
    r"""A label as text: numbers as they are written, nothing for an empty cell.

    >>> label_of(3.0), label_of(' a, "b" '), label_of(""), label_of(float("nan"))
    ('3', 'a, "b"', None, None)
    """
    if cell is None or cell != cell or not str(cell).strip():  # noqa: PLR0124  NaN
        return None
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()


def unlabelled(labels: Sequence[str | None]) -> dict[int, str]:
    """Rows without a label."""
    return {row: "no label" for row, label in enumerate(labels) if label is None}


def usable(
    path: Path, request: Request, bad: Mapping[int, str], count: int
) -> tuple[list[int], list[str]]:
    """Rows that can be used, and a note on the others; they are an error without --skip-bad."""
    kept = [row for row in range(count) if row not in bad]
    if not bad:
        return kept, []
    first = "; ".join(f"row {row + 1}: {bad[row]}" for row in sorted(bad)[:NAMED])
    said = f"{len(bad)} of {count} rows cannot be used ({first}{'; ...' * (len(bad) > NAMED)})"
    if not request.skip_bad:
        raise BadInput(f"{path}: {said}; mend them, or leave them out with --skip-bad")
    return kept, [f"{path}: {said}; they were left out"]


def classes_of(request: Request, found: Sequence[str]) -> tuple[str, ...]:
    """The classes in order of their names; numbers in order of their values."""
    path, none = request.data, request.none.strip()
    labels = [label for label in found if label != none]
    counts = Counter(labels)
    if none and len(labels) == len(found):
        have = [*map(repr, sorted(counts)[:NAMED]), *["..."] * (len(counts) > NAMED)]
        raise BadInput(
            f"{path}: no row is labelled {none!r} (--none); the labels are {', '.join(have)}"
        )
    if len(counts) < 2:
        only = f"all {len(labels)} rows are {labels[0]!r}" if labels else "no row is left"
        raise BadInput(f"{path}: at least two classes are needed, {only}")
    if NONE_LABEL in counts:
        raise BadInput(
            f"{path}: a class is called {NONE_LABEL!r}, which is what a refusal is called; if its rows "
            f"are examples of no class, say --none {NONE_LABEL!r}"
        )
    if len(counts) > len(labels) / 2:
        raise BadInput(
            f"{path}: {len(counts)} classes in {len(labels)} rows; the label has to be one of few, "
            "is it the right column?"
        )
    numbers = [as_number(name) for name in counts]
    if all(number == number for number in numbers):  # noqa: PLR0124  no NaN
        return tuple(name for _, name in sorted(zip(numbers, counts, strict=True)))
    return tuple(sorted(counts))


def targets(labels: Sequence[str | None], classes: Sequence[str]) -> Tensor:
    """The number of each label among the classes; NONE for any other."""
    number = {name: k for k, name in enumerate(classes)}
    return torch.tensor([number.get(str(label), NONE) for label in labels])


def sets_of(
    encoded: Encoded, target: Tensor, parts: Mapping[str, Sequence[int]]
) -> dict[str, InMemory]:
    """The rows of each part as a set; of the test rows those of no class are a set of their own."""
    rows: dict[str, Tensor] = {}
    for name, part in parts.items():
        rows[name] = torch.tensor(part, dtype=torch.long)
        if name == TEST and (strange := target[rows[TEST]] == NONE).any():
            rows |= {TEST: rows[TEST][~strange], SetName.ood("none"): rows[TEST][strange]}
    lengths = encoded.lengths
    return {
        name: InMemory(encoded.x[i], target[i], None if lengths is None else lengths[i])
        for name, i in rows.items()
    }


def further(
    request: Request, classes: Sequence[str], preparation: Preparation, trained: InMemory
) -> Iterator[tuple[dict[str, InMemory], list[str]]]:
    """Sets from further files, with notes: rows to test on, and examples of none of the classes."""
    if request.test is not None:
        sets, notes = tested(request, request.test, classes, preparation)
        known = {row.tobytes() for row in trained.x.numpy()}
        again = sum(row.tobytes() in known for part in sets.values() for row in part.x.numpy())
        if again:
            notes.append(f"{again} test rows are also among those to train on")
        yield sets, notes
    if request.outside is not None:
        encoded = preparation.encode(whole(request.outside))
        rows, notes = usable(request.outside, request, encoded.bad, len(encoded.x))
        if not rows:
            raise BadInput(f"{request.outside}: no row can be used")
        yield sets_of(encoded, torch.full((len(encoded.x),), NONE), {OUTSIDE: rows}), notes


def tested(
    request: Request, path: Path, classes: Sequence[str], preparation: Preparation
) -> tuple[dict[str, InMemory], list[str]]:
    """The user's own test rows; those with a label that was not trained are outside."""
    frame, labels, _ = labelled(path, request)
    encoded, target = preparation.encode(frame), targets(labels, classes)
    rows, notes = usable(path, request, {**unlabelled(labels), **encoded.bad}, len(labels))
    known = {*classes, request.none.strip()}
    parts: dict[str, list[int]] = {TEST: [row for row in rows if labels[row] in known]}
    if not (target[parts[TEST]] != NONE).any():
        raise BadInput(f"{path}: none of its labels is among those of {request.data}")
    if strange := [row for row in rows if labels[row] not in known]:
        parts[SetName.ood("test")] = strange
        said = "test rows have a label that was not trained: they count as outside"
        notes.append(f"{len(strange)} {said}")
    return sets_of(encoded, target, parts), notes


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
