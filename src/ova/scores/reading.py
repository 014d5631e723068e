"""Features, logits and targets from anybody's files, in blocks: .npz, .npy, .parquet, .safetensors.

Also as OpenOOD leaves them: `feat_list` and `label_list` in one .npz, or three files
`<set>_feature.npy`, `<set>_logits.npy` and `<set>_labels.npy`, of which any one is named.
"""

import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ova.errors import BadInput, pick
from ova.predictions.columns import Array
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


def read_outputs(path: Path, *, outside: bool = False, normalised: bool = True) -> File:
    """What a file holds, to be read in blocks as often as needed; nothing is unpickled."""
    columns = pick(FORMATS, path.suffix.lower(), "file format")
    if not path.is_file():
        raise BadInput(f"there is no file {path}")
    found = columns(path)
    lower = {name.lower(): column for name, column in found.items()}
    ours = {
        name: next(lower[theirs] for theirs in known if theirs in lower)
        for name, known in NAMES.items()
        if any(theirs in lower for theirs in known)
    }
    if not ours:
        there = ", ".join(list(found)[:9]) or "nothing"
        raise BadInput(f"{path} holds {there}; {_expected()}")
    return File(path, ours, outside, normalised)


def _expected() -> str:
    return "expected arrays `features` and/or `logits` (or `probs`), and `target`"


def _npz(path: Path) -> dict[str, Column]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [n for n in archive.namelist() if n.endswith(".npy")]
    except zipfile.BadZipFile as error:
        raise BadInput(f"{path} is not an .npz file: {error}") from None
    return {name.removesuffix(".npy"): _member(path, name) for name in names}


def _member(path: Path, name: str) -> Column:
    @contextmanager
    def opened() -> Iterator[tuple[Any, tuple[int, ...], bool, np.dtype[Any]]]:
        form = np.lib.format
        with zipfile.ZipFile(path) as archive, archive.open(name) as file:
            try:
                old = form.read_magic(file) == (1, 0)
                read = form.read_array_header_1_0 if old else form.read_array_header_2_0
                shape, fortran, dtype = read(file)
            except ValueError as error:
                raise BadInput(f"{path}: {name} is not an array: {error}") from None
            if dtype.hasobject:
                raise BadInput(f"{path}: {name} holds Python objects, which are not read")
            yield file, shape, fortran, dtype

    def rows(size: int) -> Iterator[Array]:
        with opened() as (file, shape, fortran, dtype):
            if fortran:  # columns first: rows are scattered all over it
                flat = np.frombuffer(file.read(), dtype)
                yield from _parts(flat.reshape(shape[::-1]).T, size)
                return
            for start in range(0, shape[0], size):
                count = min(size, shape[0] - start)
                wanted = (count, *shape[1:])
                data = file.read(int(np.prod(wanted)) * dtype.itemsize)
                try:
                    yield np.frombuffer(data, dtype).reshape(wanted)
                except ValueError:
                    raise BadInput(f"{path}: {name} ends before its {shape[0]} rows") from None

    with opened() as (_, shape, _, _):
        return Column(shape, rows)


def _npy(path: Path) -> dict[str, Column]:
    apart = APART.fullmatch(path.stem)
    if apart is None:
        return {"features": _mapped(path)}
    beside = (
        (part[2], file)
        for file in sorted(path.parent.glob("*.npy"))
        if (part := APART.fullmatch(file.stem)) and part[1] == apart[1]
    )
    return {name: _mapped(file) for name, file in beside}


def _mapped(path: Path) -> Column:
    try:
        x = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise BadInput(f"{path} is not an array of numbers: {error}") from None
    return Column(x.shape, lambda size: _parts(x, size))


def _parts(x: Array, size: int) -> Iterator[Array]:
    for start in range(0, len(x), size):
        yield np.asarray(x[start : start + size])


def _parquet(path: Path) -> dict[str, Column]:
    with open_parquet(path) as file:
        n, names = file.metadata.num_rows, file.schema_arrow.names
        kinds = {name: file.schema_arrow.field(name).type for name in names}

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

    return {name: column(name) for name in names}


def _safetensors(path: Path) -> dict[str, Column]:
    from safetensors import SafetensorError, safe_open

    def column(name: str, shape: tuple[int, ...]) -> Column:
        def rows(size: int) -> Iterator[Array]:
            with safe_open(path, framework="pt") as file:  # numpy has no bfloat16
                part = file.get_slice(name)
                for start in range(0, shape[0], size):
                    x = part[start : min(start + size, shape[0])]
                    yield (x.float() if str(x.dtype) == "torch.bfloat16" else x).numpy()

        return Column(shape, rows)

    try:
        with safe_open(path, framework="pt") as file:
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise BadInput(f"{path} is not a safetensors file: {error}") from None
    return {name: column(name, shape) for name, shape in shapes.items() if shape}


FORMATS: dict[str, Callable[[Path], dict[str, Column]]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".parquet": _parquet,
    ".safetensors": _safetensors,
}
