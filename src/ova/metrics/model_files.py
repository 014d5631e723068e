"""Files of predictions of several models: which set of which model each holds, and their metrics."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from ova.errors import BadInput
from ova.files import Row
from ova.metrics import METRICS, Draws, paired_difference
from ova.metrics.evaluate import evaluate
from ova.predictions import Predictions, Reading, SetName, read_any
from ova.predictions.foreign import meant
from ova.predictions.formats import FORMATS

Sets = dict[str, Path]  # `test`, `shift/<type>/<severity>`, `ood/<name>` -> file


@dataclass(frozen=True)
class Model:
    """The files with the predictions of one model."""

    name: str
    sets: Sets


def assign(files: Sequence[Path], ood: Sequence[Path], shift: Sequence[Path]) -> list[Model]:
    """Models with their sets; the same file, name or place twice is an error."""
    for path in (*files, *ood, *shift):
        if not path.is_dir() and not meant(path):
            raise BadInput(f"there is no file {path}")
    names = labels(files)
    models = [Model(name, {"test": path}) for name, path in zip(names, files, strict=True)]
    for path in inside(ood):
        model = owner(path, models)
        _add(model, SetName.ood(own_name(path, model)), path)
    for path in inside(shift):
        model = owner(path, models)
        _add(model, SetName.shift(*type_and_severity(path, model)), path)
    return models


def _add(model: Model, name: str, path: Path) -> None:
    if name in model.sets:
        raise BadInput(f"{path} and {model.sets[name]} would both be {name} of {model.name}")
    model.sets[name] = path


def inside(paths: Sequence[Path]) -> Iterator[Path]:
    """The files, and those of a known format below the folders."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = sorted(p for p in path.rglob("*") if p.suffix.lower() in FORMATS)
        if not found:
            raise BadInput(f"no {', '.join(FORMATS)} file in {path}")
        yield from found


def labels(files: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that tell the files apart.

    >>> labels([Path("a/test.csv"), Path("b/test.csv")])
    ['a/test', 'b/test']
    """
    parts = [path.with_suffix("").parts for path in files]
    for depth in range(1, max(map(len, parts), default=0) + 1):
        found = ["/".join(part[-depth:]) for part in parts]
        if len(set(found)) == len(found):
            return found
    twice = next(path for path in files if list(files).count(path) > 1)
    raise BadInput(f"{twice} is given twice")


def owner(path: Path, models: Sequence[Model]) -> Model:
    """The model whose file name starts this file's name, else the one in whose folder it lies."""
    if len(models) == 1:
        return models[0]
    stems = [m for m in models if starts(path.stem, m.sets["test"].stem)]
    if stems:
        return max(stems, key=lambda m: len(m.sets["test"].stem))
    folders = [m for m in models if m.sets["test"].resolve().parent in path.resolve().parents]
    nearest = max((len(m.sets["test"].resolve().parts) for m in folders), default=0)
    near = [m for m in folders if len(m.sets["test"].resolve().parts) == nearest]
    if len(near) == 1:
        return near[0]
    raise BadInput(
        f"{path}: to which model does it belong? Start its name with that of the model's file, "
        f"for example {models[0].sets['test'].stem}-{path.name}"
    )


def starts(name: str, prefix: str) -> bool:
    """Whether the name is the prefix and more, with a mark between.

    >>> starts("ova-svhn", "ova"), starts("ovation", "ova")
    (True, False)
    """
    return name.startswith(prefix) and name[len(prefix) : len(prefix) + 1] in ("-", "_", ".")


def own_name(path: Path, model: Model) -> str:
    """The file's name without that of its model."""
    stem, prefix = path.stem, model.sets["test"].stem
    return stem[len(prefix) + 1 :] if starts(stem, prefix) else stem


def type_and_severity(path: Path, model: Model) -> tuple[str, int]:
    """The kind of change and its strength: fog-3.csv, fog_3.npz or fog/3.parquet."""
    name = own_name(path, model)
    if name.isdecimal():
        name = f"{path.parent.name}-{name}"
    found = re.fullmatch(r"(.*?[^\W\d])[-_. ]*(\d+)", name)
    if not found:
        raise BadInput(
            f"{path}: the kind and strength of the change are not in its name; expected for "
            "example fog-3.csv or fog/3.csv"
        )
    return found[1], int(found[2])


@dataclass(frozen=True)
class Result:
    """What was measured on one model."""

    model: Model
    rows: list[Row]
    curves: list[Row]
    differences: list[Row]  # to the first model, on the same examples


def evaluate_files(models: Sequence[Model], *, how: Reading, draws: Draws | None) -> list[Result]:
    """Measure every model; nothing is written."""
    results: list[Result] = []
    for model in models:
        sets = {name: reader(path, name, how) for name, path in model.sets.items()}
        rows, curves = evaluate(sets, draws)
        against = differences(models[0], model, how, draws) if results and draws else []
        results.append(Result(model, rows, curves, against))
    return results


def reader(path: Path, name: str, how: Reading) -> Callable[[], Predictions]:
    """What reads a file in its role when called."""
    return partial(read_any, path, replace(how, outside=SetName(name).outside))


def differences(first: Model, other: Model, how: Reading, draws: Draws) -> list[Row]:
    """Paired differences on the test set, where both models answered the same examples."""
    a, b = (reader(m.sets["test"], "test", how)() for m in (first, other))
    if not (np.array_equal(a.id, b.id) and np.array_equal(a.target, b.target)):
        return []
    found = (
        (name, paired_difference(metric, (a,), (b,), draws)) for name, metric in METRICS.items()
    )
    about = {"dataset": "test", "n": len(a), "against": first.name, "draws": draws.count}
    return [
        {**about, "metric": f"{name}_difference", **asdict(interval)}
        for name, interval in found
        if interval is not None and interval.low is not None and math.isfinite(interval.value)
    ]
