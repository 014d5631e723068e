"""Features, logits and targets from anybody's files, in blocks: .npz, .npy, .parquet, .safetensors.

Also as OpenOOD leaves them: `feat_list` and `label_list` in one .npz, or three files
`<set>_feature.npy`, `<set>_logits.npy` and `<set>_labels.npy`, of which any one is named.
"""

import math
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ova.errors import BadInput, pick
from ova.files import naming, reading
from ova.predictions.columns import Array
from ova.predictions.formats import npz
from ova.predictions.formats.wanted import told
from ova.predictions.parquet import open_parquet, to_matrix
from ova.scores.outputs import CELLS, ROWS, AffineHead, Outputs

NAMES = {  # ours -> what people call it, in lower case
    "features": ("features", "feature", "feats", "feat", "feat_list", "embeddings", "embedding"),
    "logits": ("logits", "logit", "logit_list", "logits_list"),
    "probs": ("probs", "probabilities", "proba"),
    "target": ("target", "targets", "label", "labels", "label_list", "y"),
    "weight": ("weight", "weights", "fc.weight", "fc_weight", "head.weight", "head_weight", "w"),
    "bias": ("bias", "fc.bias", "fc_bias", "head.bias", "head_bias", "b"),
}
KNOWN = {name for names in NAMES.values() for name in names}
UNSAID: Mapping[str, str] = MappingProxyType({})
LIST = 1000  # numbers of a list in Parquet whose type does not say how many it has
APART = re.compile(r"(.*)_(features?|logits?|labels?)")  # a file per array


@dataclass(frozen=True)
class Column:
    """An array of a file: its shape, and a function that reads it by so many rows at a time."""

    shape: tuple[int, ...]
    rows: Callable[[int], Iterator[Array]]

    def whole(self) -> Array:
        """All of it."""
        return np.concatenate(list(self.rows(max(1, self.shape[0]))))


@dataclass(frozen=True)
class File:
    """The arrays of a file under our names."""

    path: Path
    columns: dict[str, Column]
    outside: bool = False  # rows of none of the classes: targets are not read
    normalised: bool = True

    def __len__(self) -> int:
        return next(c.shape[0] for n, c in self.columns.items() if n not in ("weight", "bias"))

    def __iter__(self) -> Iterator[Outputs]:
        wanted = ("features", "logits", "probs") + (() if self.outside else ("target",))
        found = {n: c for n, c in self.columns.items() if n in wanted}
        if not found.keys() & {"features", "logits", "probs"}:
            raise BadInput(f"{self.path} has no features, logits or probabilities; {_expected()}")
        sizes = {name: column.shape[0] for name, column in found.items()}
        if len(set(sizes.values())) > 1:
            raise BadInput(f"{self.path}: arrays of different lengths, {sizes}")
        width = max(int(np.prod(column.shape[1:])) for column in found.values())
        size, first = max(1, min(ROWS, CELLS // max(1, width))), 0
        for block in zip(*(column.rows(size) for column in found.values()), strict=True):
            arrays: dict[str, Any] = dict(zip(found, block, strict=True))
            try:
                rows = Outputs(**arrays, normalised=self.normalised)
                if "target" in arrays:
                    rows.classes  # noqa: B018  # checked here, where the file is known
            except BadInput as error:
                last = first + len(block[0]) - 1
                raise BadInput(f"{self.path}, rows {first} to {last}: {error}") from None
            first += len(rows)
            yield rows

    @property
    def head(self) -> AffineHead | None:
        """Weight and bias, where the file has both."""
        if not {"weight", "bias"} <= self.columns.keys():
            return None
        return AffineHead(self.columns["weight"].whole(), self.columns["bias"].whole())


def named(given: Sequence[str]) -> dict[str, str]:
    """What `--columns` says of arrays, our name -> theirs.

    >>> named(["features=hidden", "target=gold"])
    {'features': 'hidden', 'target': 'gold'}
    """
    found = told(given, tuple(NAMES))
    for ours, theirs in found.items():
        if len(theirs) > 1:
            raise BadInput(f"--columns {ours}={','.join(theirs)}: {ours} is one array")
    return {ours: theirs[0] for ours, theirs in found.items()}


def read_outputs(
    path: Path, *, outside: bool = False, normalised: bool = True, said: Mapping[str, str] = UNSAID
) -> File:
    """What a file holds, to be read in blocks as often as needed; nothing is unpickled.

    What the user said of its arrays comes before the usual names, and must be there.
    """
    said = {ours: theirs for ours, theirs in said.items() if not (outside and ours == "target")}
    columns = pick(FORMATS, path.suffix.lower(), "file format")
    if not path.is_file():
        raise BadInput(f"there is no file {path}")
    with naming(path):
        found = columns(path, said)
    lower = {name.lower(): column for name, column in found.items()}
    ours = {
        name: next(lower[theirs] for theirs in known if theirs in lower)
        for name, known in NAMES.items()
        if any(theirs in lower for theirs in known)
    }
    return File(path, ours | {name: found[said[name]] for name in said}, outside, normalised)


def _expected() -> str:
    return "expected arrays `features` and/or `logits` (or `probs`), and `target`"


def _known(
    path: Path, names: Sequence[str], column: Callable[[str], Column], said: Mapping[str, str]
) -> dict[str, Column]:
    """The arrays under names that were said or that we know; of two under one nobody knows which is meant."""
    there = ", ".join(names[:9]) or "nothing"
    for ours, theirs in said.items():
        if theirs not in names:
            raise BadInput(f"{path} has no {theirs!r} (--columns {ours}); it holds {there}")
    wanted = [name for name in names if name.lower() in KNOWN or name in said.values()]
    lower = [name.lower() for name in wanted if name not in said.values()]
    if twice := [name for name in wanted if lower.count(name.lower()) > 1]:
        raise BadInput(f"{path}: two arrays are called {twice[0]!r} and {twice[1]!r}; keep one")
    if not wanted:
        raise BadInput(
            f"{path} holds {there}; {_expected()}; --columns says which arrays these are"
        )
    return {name: column(name) for name in wanted}


def _rows_of(shape: tuple[int, ...], name: str) -> tuple[int, ...]:
    if not shape:
        raise BadInput(f"{name} is one number, not one or many per row")
    return shape


def _npz(path: Path, said: Mapping[str, str]) -> dict[str, Column]:
    def column(name: str) -> Column:
        def rows(size: int) -> Iterator[Array]:
            with _archive(path) as archive, npz.opened(archive, name) as (file, _, fortran, dtype):
                if fortran:  # columns first: rows are scattered all over it
                    flat = np.frombuffer(file.read(), dtype)
                    yield from _parts(flat.reshape(shape[::-1]).T, size)
                    return
                for start in range(0, shape[0], size):
                    wanted = (min(size, shape[0] - start), *shape[1:])
                    data = file.read(math.prod(wanted) * dtype.itemsize)
                    if len(data) < math.prod(wanted) * dtype.itemsize:
                        raise BadInput(f"{name} ends before its {shape[0]} rows")
                    yield np.frombuffer(data, dtype).reshape(wanted)

        with _archive(path) as archive, npz.opened(archive, name) as (_, told, _, _):
            shape = _rows_of(told, name)
        return Column(shape, rows)

    with _archive(path) as archive:
        names = [n.removesuffix(".npy") for n in archive.namelist() if n.endswith(".npy")]
    return _known(path, names, column, said)


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    with reading(path, "an .npz file"), zipfile.ZipFile(path) as archive:
        yield archive


def _npy(path: Path, said: Mapping[str, str]) -> dict[str, Column]:
    apart = APART.fullmatch(path.stem)
    if apart is None:
        return _known(path, ["features"], lambda _: _mapped(path), said)
    beside = {
        part[2]: file
        for file in sorted(path.parent.glob("*.npy"))
        if (part := APART.fullmatch(file.stem)) and part[1] == apart[1]
    }
    return _known(path, list(beside), lambda name: _mapped(beside[name]), said)


def _mapped(path: Path) -> Column:
    with reading(path, "an array of numbers"):
        x = np.load(path, mmap_mode="r", allow_pickle=False)
        return Column(_rows_of(x.shape, "the array"), lambda size: _parts(x, size))


def _parts(x: Array, size: int) -> Iterator[Array]:
    for start in range(0, len(x), size):
        yield np.asarray(x[start : start + size])


def _parquet(path: Path, said: Mapping[str, str]) -> dict[str, Column]:
    with open_parquet(path) as file:
        n, names = file.metadata.num_rows, file.schema_arrow.names
        kinds = dict(zip(names, file.schema_arrow.types, strict=True))

    def column(name: str) -> Column:
        kind = kinds[name]
        lists = hasattr(kind, "value_type")
        width = getattr(kind, "list_size", LIST) if lists else 0

        def rows(size: int) -> Iterator[Array]:
            with open_parquet(path) as file:
                for batch in file.iter_batches(size, columns=[name]):
                    x = batch.column(0)
                    if x.null_count:
                        raise BadInput(f"{path}: {name} has missing values")
                    try:
                        yield to_matrix(x, None) if lists else x.to_numpy(zero_copy_only=False)
                    except ValueError:
                        raise BadInput(f"{path}: lists of {name} differ in length") from None

        return Column((n, width) if lists else (n,), rows)

    return _known(path, names, column, said)


def _safetensors(path: Path, said: Mapping[str, str]) -> dict[str, Column]:
    from safetensors import safe_open

    def column(name: str) -> Column:
        shape = _rows_of(shapes[name], name)

        def rows(size: int) -> Iterator[Array]:
            # By PyTorch, because numpy has no bfloat16.
            with reading(path, "a safetensors file"), safe_open(path, framework="pt") as file:
                part = file.get_slice(name)
                for start in range(0, shape[0], size):
                    x = part[start : min(start + size, shape[0])]
                    yield (x.float() if str(x.dtype) == "torch.bfloat16" else x).numpy()

        return Column(shape, rows)

    with reading(path, "a safetensors file"), safe_open(path, framework="pt") as file:
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    return _known(path, list(shapes), column, said)


FORMATS: dict[str, Callable[[Path, Mapping[str, str]], dict[str, Column]]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".parquet": _parquet,
    ".safetensors": _safetensors,
}
