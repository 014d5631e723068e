"""Checkpoints: tensors in safetensors, facts in its JSON header, nothing that can run."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as as_bytes
from torch import Tensor, nn
from torch.optim import Optimizer

from ova.errors import BadInput
from ova.files import parsed, write_beside

Tensors = dict[str, Tensor]
FACTS = "facts"  # all facts under one name: safetensors writes several in an order that varies


def save(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, str]) -> None:
    """Write named tensors and facts, atomically."""
    # Tied weights are copied apart, because safetensors refuses shared memory.
    apart = {name: t.detach().cpu().clone().contiguous() for name, t in tensors.items()}
    header = {FACTS: json.dumps(dict(facts), sort_keys=True)}
    with write_beside(path) as beside:
        # Not `save_file`: it writes to a file of its own beside, which stays when it is killed.
        beside.write_bytes(as_bytes(apart, header))


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """A file that `save` wrote; a damaged one is named and left as it is."""
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (OSError, SafetensorError, ValueError) as error:
        raise BadInput(
            f"{path} is damaged or not a safetensors file ({error}); "
            "it was left untouched. Move it away to compute it again."
        ) from None


def load(path: Path) -> tuple[Tensors, dict[str, str]]:
    """The tensors and the facts of a file."""
    with opened(path) as file:
        return {name: file.get_tensor(name) for name in file.keys()}, told(file)  # noqa: SIM118


def facts(path: Path) -> dict[str, str]:
    """The facts in the header, without reading the tensors."""
    with opened(path) as file:
        return told(file)


def told(file: Any) -> dict[str, str]:
    """The facts in the header of an open file; older files have each under its own name."""
    header: dict[str, str] = file.metadata() or {}
    if FACTS not in header:
        return header
    facts = parsed(header[FACTS], "its header")
    if not isinstance(facts, dict) or not all(isinstance(fact, str) for fact in facts.values()):
        raise ValueError("its facts are not names with texts")
    return facts


def optimiser_tensors(optimiser: Optimizer) -> Tensors:
    """The optimiser's state as tensors; its hyper-parameters come from the recipe instead."""
    return {
        f"{row}/{key}": value if isinstance(value, Tensor) else torch.tensor(value)
        for row, entries in optimiser.state_dict()["state"].items()
        for key, value in entries.items()
        if value is not None
    }


def restore_optimiser(optimiser: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put back what `optimiser_tensors` took out, laid out in memory as the parameters are.

    Fused update rules walk through a parameter and its moments side by side in memory and do not
    look at strides, and a file has its tensors contiguous where convolutions have channels last.
    """
    params = [p for group in optimiser.param_groups for p in group["params"]]
    state: dict[int, Tensors] = {}
    for name, value in tensors.items():
        row, _, key = name.partition("/")
        p, entries = params[int(row)], state.setdefault(int(row), {})
        same = p.shape == value.shape
        entries[key] = torch.empty_like(p, dtype=value.dtype).copy_(value) if same else value
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})


def under(prefix: str, tensors: Mapping[str, Tensor]) -> Tensors:
    """Put every name under a prefix."""
    return {f"{prefix}/{name}": value for name, value in tensors.items()}


def below(prefix: str, tensors: Mapping[str, Tensor]) -> Tensors:
    """The tensors under a prefix, without it."""
    start = f"{prefix}/"
    return {n.removeprefix(start): t for n, t in tensors.items() if n.startswith(start)}


def restore(net: nn.Module, tensors: Mapping[str, Tensor], source: Path) -> None:
    """Load weights; the error names the file and the tensors that do not fit."""
    try:
        net.load_state_dict(dict(tensors))
    except RuntimeError as error:
        raise BadInput(f"{source} does not fit this network: {error}") from None
