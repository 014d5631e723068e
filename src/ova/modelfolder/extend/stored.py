"""The rows that a model was made from, as its network sees them: from its data, or from its folder."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ova.data.task import Examples, InMemory, plan
from ova.errors import BadInput
from ova.files import read_json, read_object, reading
from ova.modelfolder.evidence import BATCH
from ova.modelfolder.folder import Model
from ova.modelfolder.names import FEATURES, MANIFEST, ROWS
from ova.training import checkpoint
from ova.userdata.folds import RULE as FOLDED
from ova.userdata.gather import Divided, called, divide, further, sets_of, sources_of
from ova.userdata.kinds import KINDS
from ova.userdata.request import Request

PARTS = ("f", "y", "key")
WEIGHTS_OF_ENCODERS = ".safetensors"
HASH = 64  # digits of a SHA-256


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a set: features, the class of each, and a number that equal inputs share."""

    f: Tensor
    y: Tensor
    key: Tensor

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: Sequence[int] | Tensor) -> "Rows":
        """Some of the rows."""
        at = torch.as_tensor(rows, dtype=torch.long)
        return Rows(self.f[at], self.y[at], self.key[at])

    def and_also(self, more: "Rows") -> "Rows":
        """These, then those."""
        both = ((getattr(self, name), getattr(more, name)) for name in PARTS)
        return Rows(*(torch.cat(pair) for pair in both))


@dataclass(frozen=True, eq=False)
class Stored:
    """The sets of a model, and what its training rows are called."""

    sets: Mapping[str, Rows]
    named: tuple[str, ...]
    seed: int


def seen(model: Model, examples: Examples) -> Rows:
    """What the network makes of examples."""
    assert isinstance(examples, InMemory)
    order = plan(examples, BATCH, None)
    if not order:
        width = model.net.head.in_features
        return Rows(torch.zeros(0, width), examples.y, torch.zeros(0, dtype=torch.long))
    parts = [model.outputs(x)[0] for x, _ in examples.batches(order)]
    f = torch.cat(parts)[torch.cat(order).argsort()]
    return Rows(f, examples.y, keys(examples.x))


def keys(x: Tensor) -> Tensor:
    """A number for each encoded input: equal inputs have the same."""
    found = [hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in x.numpy()]
    return torch.from_numpy(np.frombuffer(b"".join(found), np.int64).copy())


def stored(model: Model, folder: Path, request: Request | None) -> Stored:
    """The rows of a model, from its data where they are given, else from its folder."""
    seed = int(read_object(folder / MANIFEST).get("seed", 0))
    if request is not None:
        return of_data(model, folder, told(folder, request, seed))
    if FEATURES not in model.facts["parts"]:
        raise BadInput(
            f"{folder} does not hold the rows that the model was trained and judged on; give the file "
            "or folder that it was trained from: --data DATA"
        )
    tensors, _ = checkpoint.load(folder / FEATURES)
    named = read_json(folder / ROWS)
    with reading(folder / FEATURES, "the rows of a model"):
        names = sorted({name.rpartition("/")[0] for name in tensors})
        sets = {n: Rows(*(tensors[f"{n}/{part}"] for part in PARTS)) for n in names}
        if len(named) != len(sets["train"]):
            raise ValueError(f"{len(named)} names for {len(sets['train'])} rows")
    return Stored(sets, tuple(map(str, named)), seed)


def told(folder: Path, request: Request, seed: int) -> Request:
    """The data as the model was trained on it: what its manifest says of columns and options."""
    said = read_object(folder / MANIFEST).get("data", {})
    if said.get("split") == FOLDED:
        raise BadInput(
            f"{folder} was trained on all of its few rows, so none is left to judge an extension by: add "
            "the new rows to the file and train again, which embeds only these"
        )
    known = replace(
        request,
        text=said.get("--text", ""),
        label=said.get("--label", ""),
        none=said.get("--none", ""),
        group=said.get("--group", ""),
        drop=tuple(filter(None, said.get("--drop", "").split(", "))),
        skip_bad="--skip-bad" in said,
        mirror="--mirror" in said,
        seed=seed,
    )
    files = {n for n in said if n not in sources_of(known) and not n.startswith("--")}
    files = {n for n in files if not n.endswith(WEIGHTS_OF_ENCODERS)} - {"split", "copies"}
    given = [path for path in (known.data, known.test, known.outside) if path is not None]
    lacking = sorted(
        files - {path.name for path in given} - {path.resolve().name for path in given}
    )
    if lacking and known.data.is_file() and len(files) > len(given):
        raise BadInput(
            f"the model was trained with {', '.join(sorted(files))}; give the others too, as then: "
            "--test FILE, --outside FILE"
        )
    return known


def of_data(model: Model, folder: Path, request: Request) -> Stored:
    """The rows of the data, divided as they were for the training."""
    kind = next(name for name, kind in KINDS.items() if kind.fits(request))
    if kind != model.kind:
        raise BadInput(
            f"{request.data} is a {kind} of data, the model was trained on {model.kind}s"
        )
    divided = divide(request)
    check_data(folder, divided, request)
    return Stored(
        {name: seen(model, part) for name, part in sets(model, divided).items()},
        names(model, divided),
        request.seed,
    )


def sets(model: Model, divided: Divided) -> dict[str, InMemory]:
    """Every set, encoded as the model does it."""
    encoded = model.preparation.encode(divided.frame)
    found = sets_of(encoded, divided.target, divided.parts)
    for more, *_ in further(divided.request, model.classes, model.preparation, found["train"]):
        found |= more
    return found


def names(model: Model, divided: Divided) -> tuple[str, ...]:
    """What the training rows are called."""
    column = model.preparation.column
    cells = divided.frame.columns[column] if column else [""] * len(divided.frame)
    return tuple(called(row, divided.labels[row], cells[row]) for row in divided.parts["train"])


def check_data(folder: Path, divided: Divided, request: Request) -> None:
    """Refuse other data than the model was trained on."""
    said = read_object(folder / MANIFEST).get("data", {})
    found = {**divided.sources, **sources_of(divided.request)}
    hashes = {value for value in said.values() if len(value) == HASH}  # a file may have a new name
    differs = [name for name, v in found.items() if said.get(name) != v and v not in hashes]
    if differs:
        known = ", ".join(
            f"{name} {value[:12]}..." for name, value in said.items() if len(value) == HASH
        )
        raise BadInput(
            f"--data {request.data} is not what the model was trained on ({differs[0]} differs; its "
            f"manifest says {known}); give the same file, unchanged"
        )
