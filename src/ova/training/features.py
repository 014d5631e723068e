"""Features of a frozen encoder: computed once, kept on disk row by row, found again by what it was given."""

import hashlib
import os
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save as as_bytes
from torch import Tensor

from ova.data.sources import cache_dir
from ova.data.task import Examples, InMemory, Task
from ova.errors import BadInput
from ova.files import reading, sha256, write_beside
from ova.models.backbone import Backbone
from ova.models.pretrained import FROZEN
from ova.predictions.columns import Array
from ova.training.recipe import Recipe
from ova.training.stages import Stage

POOLING = "mean of the last hidden state, 1"  # another way to pool must have another name
KEY = 16  # bytes of the hash of a row: two rows of one hash are not to be expected among 10^18
BLOCK = 1024  # rows of a file: what a kill can cost
BATCH = 64  # rows that the encoder takes at once
LIMIT = 4.0  # gibibytes that are kept at most, unless OVA_FEATURES says otherwise


def once(recipe: Recipe) -> bool:
    """Whether a recipe looks at every input once: a frozen encoder, and a head fitted to its features."""
    return recipe.model.startswith(FROZEN) and recipe.optimiser == "lbfgs"


def embedded(
    task: Task, recipe: Recipe, device: torch.device, make: Callable[[], Backbone]
) -> Generator[Stage, None, Task]:
    """The task with the encoder's features in the place of its inputs.

    `make` builds the encoder, which is not needed where all features are there already.
    """
    encoder = Path(recipe.model.partition(":")[2])
    store = Store(cache_dir() / "features" / identity(encoder))
    sets = {"train": task.train, "validation": task.validation}
    sets |= {f"evaluation/{name}": make_set() for name, make_set in task.evaluations.items()}
    keys = {name: keys_of(examples, task.prepare) for name, examples in sets.items()}
    found = store.read(key for each in keys.values() for key in each)
    known = {*found}
    todo = {name: missing(each, known) for name, each in keys.items()}
    total, done = sum(map(len, todo.values())), 0
    backbone = make().to(device).eval() if total else None
    for name, rows in todo.items():
        examples = sets[name]
        for part in by_length(examples, rows).split(BLOCK) if len(rows) else ():
            assert backbone is not None  # because there are rows to embed
            yield Stage("embedding", done, total)
            f = taken(backbone, examples, part, task.prepare, device)
            here = [keys[name][row] for row in part.tolist()]
            store.write(here, f)
            found |= dict(zip(here, f, strict=True))
            done += len(part)
    if total:
        yield Stage("embedding", total, total)
        store.prune()
    width = len(next(iter(found.values())))
    of = {name: features_of(sets[name], keys[name], found, width) for name in sets}
    return replace(
        task,
        shape=(width,),
        train=of["train"],
        validation=of["validation"],
        evaluations={n: partial(same, of[f"evaluation/{n}"]) for n in task.evaluations},
        prepare=unprepared,
    )


def same(examples: InMemory) -> Examples:
    """The examples."""
    return examples


def unprepared(x: Tensor) -> Tensor:
    """Features are what the head takes."""
    return x


def identity(encoder: Path) -> str:
    """What an encoder is: its configuration, its weights, and how its features are pooled."""
    parts = [encoder / "config.json", *sorted(encoder.glob("*.safetensors"))]
    said = "\n".join([POOLING, *map(sha256, parts)])
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def keys_of(examples: Examples, prepare: Callable[[Tensor], Tensor]) -> list[bytes]:
    """The hash of every row as the encoder is given it, padding aside."""
    keys: list[bytes] = []
    lengths = None if examples.lengths is None else examples.lengths.tolist()
    plan = list(torch.arange(len(examples)).split(BATCH))
    for x, _ in examples.batches(plan):
        rows = prepare(x).contiguous().numpy()
        for row in rows:
            own = row if lengths is None else row[: lengths[len(keys)]]
            text = hashlib.blake2b(f"{own.dtype} {own.shape} ".encode(), digest_size=KEY)
            text.update(own.tobytes())
            keys.append(text.digest())
    return keys


def missing(keys: Sequence[bytes], known: set[bytes]) -> Tensor:
    """The first row of every key that is not known; from now on it is."""
    rows: list[int] = []
    for row, key in enumerate(keys):
        if key not in known:
            known.add(key)
            rows.append(row)
    return torch.tensor(rows, dtype=torch.long)


def by_length(examples: Examples, rows: Tensor) -> Tensor:
    """The rows, short ones beside short ones, so that there is little padding."""
    if examples.lengths is None:
        return rows
    return rows[examples.lengths[rows].argsort(stable=True)]


@torch.inference_mode()
def taken(
    backbone: Backbone,
    examples: Examples,
    rows: Tensor,
    prepare: Callable[[Tensor], Tensor],
    device: torch.device,
) -> Array:
    """The encoder's features of some rows, in float32."""
    batches = examples.batches(list(rows.split(BATCH)))
    parts = [backbone(prepare(x.to(device))).float().cpu() for x, _ in batches]
    return torch.cat(parts).numpy()


def features_of(
    examples: Examples, keys: Sequence[bytes], found: dict[bytes, Array], width: int
) -> InMemory:
    """The features of a set, a row per example."""
    f = np.stack([found[key] for key in keys]) if keys else np.zeros((0, width), np.float32)
    return InMemory(torch.from_numpy(f), examples.y)


@dataclass(frozen=True)
class Store:
    """A folder of blocks of features, each with the keys of its rows; a damaged block counts as none."""

    folder: Path

    def read(self, keys: Iterable[bytes]) -> dict[bytes, Array]:
        """The features of those rows that are there."""
        wanted, found = set(keys), dict[bytes, Array]()
        for path in sorted(self.folder.glob("*.safetensors")):
            try:
                with reading(path, "a block of features"):
                    block = block_of(path)
            except BadInput:  # a cache that is damaged is computed again
                path.unlink(missing_ok=True)
                continue
            here = {key: f for key, f in block.items() if key in wanted}
            if here:
                with suppress(OSError):  # of a cache that can only be read
                    os.utime(path)  # what is used last goes last
                found |= here
        return found

    def write(self, keys: Sequence[bytes], f: Array) -> None:
        """Keep the features of some rows, where there is to be a cache."""
        if limit() <= 0:
            return
        key = torch.from_numpy(np.frombuffer(b"".join(keys), np.uint8).reshape(-1, KEY).copy())
        name = hashlib.sha256(b"".join(keys)).hexdigest()[:32]
        tensors = {"key": key, "f": torch.from_numpy(f)}
        with write_beside(self.folder / f"{name}.safetensors", durable=False) as path:
            path.write_bytes(as_bytes(tensors, {"sha256": digest(key.numpy(), f)}))

    def prune(self) -> None:
        """Remove the blocks, of any encoder, that were not used for longest, until there is room."""
        files = [(path.stat(), path) for path in self.folder.parent.glob("*/*.safetensors")]
        left = sum(stat.st_size for stat, _ in files) - limit() * 2**30
        for stat, path in sorted(files, key=lambda each: each[0].st_mtime):
            if left <= 0:
                return
            path.unlink(missing_ok=True)
            left -= stat.st_size


def block_of(path: Path) -> dict[bytes, Array]:
    """The features in a file by their keys, if it is what was written."""
    with safe_open(path, framework="np") as file:
        key, f = file.get_tensor("key"), file.get_tensor("f")
        said = (file.metadata() or {}).get("sha256")
    if key.shape != (len(f), KEY) or f.dtype != np.float32 or said != digest(key, f):
        raise BadInput(f"{path}: its content is not what its hash says")
    return {row.tobytes(): each for row, each in zip(key, f, strict=True)}


def digest(key: Array, f: Array) -> str:
    """The hash of a block."""
    return hashlib.sha256(np.ascontiguousarray(key).tobytes() + f.tobytes()).hexdigest()


def limit() -> float:
    """How many gibibytes are kept: OVA_FEATURES, 0 for none."""
    said = os.environ.get("OVA_FEATURES", "")
    with suppress(ValueError):
        if (value := float(said) if said else LIMIT) >= 0:
            return value
    raise BadInput(f"OVA_FEATURES is a number of gibibytes, not {said!r}")
