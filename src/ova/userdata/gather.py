"""From the user's files and options to a task and a recipe: read, checked, split, prepared."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ova.data.task import Examples, InMemory, Task
from ova.errors import BadInput
from ova.files import sha256
from ova.models.pretrained import FROZEN, TUNED
from ova.nn.formulations import DEFAULT, DEFAULT_FROZEN
from ova.posthoc.independent import one_of_each
from ova.predictions import NONE
from ova.predictions.sets import TEST, VALIDATION, SetName
from ova.training.balance import uneven
from ova.training.recipe import OWN, Recipe, is_name, override
from ova.userdata import folds
from ova.userdata.encoding import remark
from ova.userdata.folds import Folds
from ova.userdata.kind import Encoded, Examined, Preparation
from ova.userdata.kinds import ENCODER, HEAD_ONLY, HEAD_STEPS, KINDS, STEPS, length
from ova.userdata.labels import (
    LABEL,
    classes_of,
    groups_of,
    labelled,
    targets,
    trained,
    ungrouped,
    unlabelled,
)
from ova.userdata.layout import divided
from ova.userdata.origin import Origin, Origins, beginning
from ova.userdata.request import Request
from ova.userdata.rows import FILE, Frame, whole
from ova.userdata.split import HELD, RULE, notes_on, split

CALIBRATION = "calibration"  # the rows that carry the promise
STRANGE = SetName.ood("none")  # the set of the test rows of none of the classes
OUTSIDE = SetName.ood("outside")  # the set of the user's examples of none of the classes
TO_CHOOSE = SetName.to_choose("outside")  # those of them that choose the score that decides
NAMED = 5  # bad rows that a message names
Further = tuple[dict[str, InMemory], list[str], dict[str, Origin]]  # sets, notes, their origins


@dataclass(frozen=True)
class Gathered:
    """Everything that training needs, and what the user should know."""

    kind: str
    task: Task
    recipe: Recipe
    preparation: Preparation
    notes: tuple[str, ...]
    named: Callable[[int], str]  # what a training row is called
    origins: Origins = field(default_factory=dict, repr=False)  # of the sets
    own_epochs: bool = False  # whether the user said how many
    folds: Folds | None = None  # where no row is held out, and cross-fitting judges them


@dataclass(frozen=True)
class Divided:
    """The user's rows, checked and divided: what each part holds, by the numbers of the rows."""

    request: Request  # with the test rows that a folder may bring
    kind: str
    frame: Frame
    labels: Sequence[str | None]
    examined: Examined
    parts: Mapping[str, Sequence[int]]
    classes: tuple[str, ...]
    target: Tensor
    sources: Mapping[str, str]
    notes: tuple[str, ...]
    fold: Tensor | None = None  # of each row, where none is held out


def divide(request: Request) -> Divided:
    """Read the data, find what cannot be used, and divide the rest by lot."""
    given, request = request, divided(request)
    kind = next(name for name, kind in KINDS.items() if kind.fits(request))
    if request.size and not request.data.is_dir():
        raise BadInput(f"--size is for a folder of images; {request.data} is a {kind}")
    frame, labels, sources = labelled(request.data, request)
    examined = KINDS[kind].examine(frame, request)
    groups = groups_of(request.data, frame, request) if request.group else examined.keys
    bad = {**unlabelled(labels), **ungrouped(groups), **examined.bad}
    kept, dropped = usable(request.data, request, bad, len(labels))
    dropped += lost(labels, kept)
    found = classes_of(request, [str(labels[row]) for row in kept])
    held = [name for name in HELD if name != TEST or request.test is None]
    units, named = [groups[row] for row in kept], [str(labels[row]) for row in kept]
    if crossed(request, named):
        fold = torch.full((len(labels),), -1)
        fold[kept] = torch.from_numpy(folds.dealt(units, named, request.seed))
        lone = one_of_each(units, request.seed).tolist()
        lots = {"train": [*range(len(kept))], **dict.fromkeys(held, lone)}
    else:
        fold, lots = None, split(units, request.seed, held)
    parts = {name: [kept[i] for i in rows] for name, rows in lots.items()}
    classes = trained(request, found, {labels[row] for row in parts["train"]})
    notes = [f"trained on {request.data}, tested on {request.test}"] * (given != request)
    for path in filter(None, (request.data, request.test, request.outside)):
        notes += remark(path)
    notes += [*examined.notes, *dropped]
    notes += notes_on([(examined.keys[row], groups[row], labels[row]) for row in kept])
    notes += untrained(labels, {*found} - {*classes}, parts)
    once = {"train": parts["train"]} if fold is not None else parts
    notes += outsiders(labels, request.none.strip(), once)
    notes += told(named, fold)
    return Divided(
        request=request,
        kind=kind,
        frame=frame,
        labels=labels,
        examined=examined,
        parts=parts,
        classes=classes,
        target=targets(labels, classes),
        sources=sources,
        notes=tuple(notes),
        fold=fold,
    )


def crossed(request: Request, labels: Sequence[str]) -> bool:
    """Whether all rows are trained on, and each is judged by a head that has not seen it."""
    able = request.encoder is not None and request.frozen and not stepwise(request)
    if request.cross_fit and not able:
        raise BadInput(
            "--cross-fit fits a head again and again, to features that stay: it needs --encoder with "
            "--frozen, and nothing that trains in steps (--mirror, --members, optimiser=adamw)"
        )
    return able and (folds.few(labels) if request.cross_fit is None else request.cross_fit)


def told(labels: Sequence[str], fold: Tensor | None) -> list[str]:
    """What it means that no row is held out."""
    if fold is None:
        return []
    median = float(np.median([*Counter(labels).values()]))
    return [
        f"{median:g} rows of the median class are few: none is held out, all are trained on; strength, "
        f"score, threshold, confidences and report rest on cross-fitting ({int(fold.max()) + 1} folds), each "
        "row judged by a head that has not seen it. So nothing is promised of the model itself; a "
        "promise that is asked for, or --hold-out, holds rows out"
    ]


def gather(request: Request) -> Gathered:
    """Read the data, divide it, learn the preparation on the training part."""
    name, found = name_of(request.data), divide(request)
    request, parts, classes = found.request, found.parts, found.classes
    frame, labels, examined = found.frame, found.labels, found.examined
    preparation, notes = examined.learn(parts["train"]), [*found.notes]
    sets = sets_of(examined.encode(preparation), found.target, parts)
    source = source_of(request.data, frame, preparation, labels)
    origins = origins_of(rows_of(found.target, parts), source)
    train, validation = sets.pop("train"), sets.pop("validation")
    for more, said, where in further(request, classes, preparation, train):
        sets |= more
        notes += said
        origins |= where
    task = Task(
        classes=classes,
        shape=preparation.shape,
        train=train,
        validation=validation,
        evaluations={name: partial(itself, part) for name, part in sets.items()},
        prepare=preparation.prepare,
        augment=examined.augment,
        sources={**found.sources, **sources_of(request), **rule(found)},
    )

    def named(trained: int) -> str:
        row = parts["train"][trained]
        return called(row, labels[row], source.cells[row] if source.cells else "")

    recipe = recipe_of(request, name, found.kind, task)
    judged = None
    if found.fold is not None:
        shown = tuple(name for name in (VALIDATION, CALIBRATION, TEST) if name in parts)
        judged = Folds(found.fold[parts["train"]], found.fold[parts[VALIDATION]], shown)
    asked = any(setting.startswith("epochs=") for setting in request.settings)
    return Gathered(
        found.kind, task, recipe, preparation, tuple(notes), named, origins, asked, judged
    )


def rule(found: Divided) -> dict[str, str]:
    """How the rows were divided, where it is not the usual way."""
    return {} if found.fold is None else {"split": folds.RULE}


def called(row: int, label: str | None, cell: object) -> str:
    """A row of the user's data in one line: its number, its label and the beginning of its input.

    >>> called(16, "cat", "photos/felix.jpg"), called(0, "yes", "")
    ('row 17 (cat): photos/felix.jpg', 'row 1 (yes)')
    """
    text, said = beginning(cell), f"row {row + 1} ({label})"
    return f"{said}: {text}" if text else said


def itself(examples: InMemory) -> Examples:
    """The examples."""
    return examples


def untrained(
    labels: Sequence[str | None], rare: set[str], parts: Mapping[str, Sequence[int]]
) -> list[str]:
    """What was done with the classes that have no row to train on."""
    rows = sum(labels[row] in rare for part in parts.values() for row in part)
    return [
        f"{len(rare)} classes have no row among those to train on, so the model cannot know them: "
        f"their {rows} held-out rows count as none of the classes, wrong wherever they are answered"
    ] * bool(rare)


def outsiders(
    labels: Sequence[str | None], none: str, parts: Mapping[str, Sequence[int]]
) -> list[str]:
    """What was done with the examples of none of the classes."""
    counts = {name: sum(labels[row] == none for row in rows) for name, rows in parts.items()}
    words = {"train": "to train", "validation": "to stop early"}
    said = ", ".join(f"{count} {words.get(name, name)}" for name, count in counts.items() if count)
    return [f"rows labelled {none!r} are examples of none of the classes: {said}"] * bool(none)


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


def lost(labels: Sequence[str | None], kept: Sequence[int]) -> list[str]:
    """The classes of which no row can be used, by name."""
    gone = {label for label in labels if label is not None} - {labels[row] for row in kept}
    said = ", ".join(map(repr, sorted(map(str, gone))))
    return [f"no row is left of {len(gone)} classes, which the model cannot know: {said}"] * bool(
        gone
    )


def sets_of(
    encoded: Encoded, target: Tensor, parts: Mapping[str, Sequence[int]]
) -> dict[str, InMemory]:
    """The rows of each part as a set; of the test rows those of no class are a set of their own."""
    lengths = encoded.lengths
    return {
        name: InMemory(encoded.x[i], target[i], None if lengths is None else lengths[i])
        for name, i in rows_of(target, parts).items()
    }


def rows_of(target: Tensor, parts: Mapping[str, Sequence[int]]) -> dict[str, Tensor]:
    """The rows of each set: those of the parts, the test rows of no class apart."""
    rows: dict[str, Tensor] = {}
    for name, part in parts.items():
        rows[name] = torch.tensor(part, dtype=torch.long)
        if name == TEST and (strange := target[rows[TEST]] == NONE).any():
            rows |= {TEST: rows[TEST][~strange], STRANGE: rows[TEST][strange]}
    return rows


def source_of(
    path: Path, frame: Frame, preparation: Preparation, labels: Sequence[str | None]
) -> Origin:
    """What rows of a file or of a folder of images can be shown by."""
    column = preparation.column
    return Origin(path, (), frame.columns[column] if column else (), labels, column == FILE)


def origins_of(rows: Mapping[str, Tensor], source: Origin) -> dict[str, Origin]:
    """The source of the rows of each set."""
    return {name: replace(source, rows=part.tolist()) for name, part in rows.items()}


def further(
    request: Request, classes: Sequence[str], preparation: Preparation, trained: InMemory
) -> Iterator[Further]:
    """Sets from further files, with notes: rows to test on, and examples of none of the classes."""
    if request.test is not None:
        sets, notes, origins = tested(request, request.test, classes, preparation)
        known = {row.tobytes() for row in trained.x.numpy()}
        again = sum(row.tobytes() in known for part in sets.values() for row in part.x.numpy())
        if again:
            notes.append(f"{again} test rows are also among those to train on")
        yield sets, notes, origins
    if request.outside is not None:
        yield strangers(request, request.outside, preparation)


def strangers(request: Request, path: Path, preparation: Preparation) -> Further:
    """The user's examples of none of the classes, each once: they may carry a promise.

    A third by lot may choose the score that decides, and is for nothing else.
    """
    frame = whole(path)
    encoded, notes = preparation.encode(frame), []
    groups: Sequence[Hashable] = [row.tobytes() for row in encoded.x.numpy()]
    if request.group and (path.is_dir() or request.group in frame.columns):
        groups = groups_of(path, frame, request)
    elif request.group:
        notes = [f"{path} has no column {request.group!r}: its inputs are taken as independent"]
    rows, dropped = usable(path, request, {**ungrouped(groups), **encoded.bad}, len(encoded.x))
    if not rows:
        raise BadInput(f"{path}: no row can be used")
    lone = [rows[i] for i in one_of_each([groups[row] for row in rows], request.seed)]
    if len(lone) < len(rows):
        what = "groups" if request.group else "different inputs"
        notes.append(f"{path}: {len(rows)} rows are {len(lone)} {what}, which count once each")
    lot = np.random.default_rng([request.seed, len(lone)]).permutation(lone).tolist()
    cut = len(lone) // 3
    parts: dict[str, list[int]] = {OUTSIDE: sorted(lot[cut:])}
    if cut:
        parts[TO_CHOOSE] = sorted(lot[:cut])
    target = torch.full((len(encoded.x),), NONE)
    origins = origins_of(rows_of(target, parts), source_of(path, frame, preparation, ()))
    return sets_of(encoded, target, parts), [*dropped, *notes], origins


def tested(
    request: Request, path: Path, classes: Sequence[str], preparation: Preparation
) -> Further:
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
    origins = origins_of(rows_of(target, parts), source_of(path, frame, preparation, labels))
    return sets_of(encoded, target, parts), notes, origins


def sources_of(request: Request) -> dict[str, str]:
    """SHA-256 of the further files, and what else makes the data other data."""
    files = [p for p in (request.test, request.outside) if p is not None and p.is_file()]
    files += sorted(request.encoder.glob("*.safetensors")) if request.encoder else []
    read_as = {  # the same file means other examples
        "--text": request.text,
        "copies": "the same words" * bool(request.text),
        "--label": "" if request.label == LABEL else request.label,
        "--none": request.none,
        "--group": request.group,
        "--drop": ", ".join(request.drop),
        "--skip-bad": "yes" * request.skip_bad,
        "--mirror": "yes" * request.mirror,
        "--size": str(request.size or ""),
        "--outside": "a third chooses the score" * (request.outside is not None),
    }
    said = {option: value for option, value in read_as.items() if value}
    return {**{path.name: sha256(path) for path in files}, **said, "split": RULE}


def name_of(data: Path) -> str:
    """What a run on these data is called."""
    return data.stem if is_name(data.stem) else data.resolve().name


def balance_of(wanted: bool | None, task: Task) -> str:
    """Whether rare classes count more: as asked, else a trial where some are far rarer than others."""
    if wanted is None:
        return "auto" if uneven(task.train.y) and len(task.validation) else "off"
    return "on" if wanted else "off"


def recipe_of(request: Request, name: str, kind: str, task: Task) -> Recipe:
    """Settings that suit the kind and the amount of data, then what the user set."""
    chosen = KINDS[kind]
    settings: dict[str, Any] = {**chosen.settings, **length(chosen, len(task.train))}
    if request.encoder is not None:
        head = HEAD_STEPS if stepwise(request) else HEAD_ONLY
        settings |= head if request.frozen else ENCODER
        settings["model"] = f"{FROZEN if request.frozen else TUNED}{request.encoder}"
    elif request.model:
        settings["model"] = request.model
    recipe = Recipe(
        balance=balance_of(request.balance, task),
        experiment=name,
        data=OWN,
        formulation=request.formulation or (DEFAULT_FROZEN if request.frozen else DEFAULT),
        seed=request.seed,
        keep="best",
        shift="none",
        **settings,
    )
    made = override(recipe, [*request.settings])
    if made.optimiser == "lbfgs" and made.members > 1:
        raise BadInput(
            "members that are fitted to convergence on the same features would all be the same; "
            "leave out optimiser=lbfgs"
        )
    return made


def stepwise(request: Request) -> bool:
    """Whether a head on a frozen encoder has to be trained in steps: what it sees or how is not fixed."""
    named = {setting.partition("=")[0].strip() for setting in request.settings}
    return request.mirror or (bool(named & {*STEPS}) and "optimiser=lbfgs" not in request.settings)
