"""Seeds, and random numbers from a generator of one's own also in code that takes them from the global one."""

import hashlib
import json
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def seed_of(*parts: int) -> int:
    """One seed for a tuple of numbers, far from the seeds of its neighbours."""
    digest = hashlib.sha256(json.dumps(parts).encode()).digest()
    return int.from_bytes(digest[:7], "big")


class Drawing(TorchDispatchMode):
    """Within it, and in this thread alone, every draw of PyTorch is one from the generator.

    Layers draw their first weights from the global generator, which belongs to the whole process:
    whoever seeds it disturbs other threads, and is disturbed by them.

    >>> def layer() -> torch.nn.Linear:
    ...     with Drawing(torch.Generator().manual_seed(0)):
    ...         return torch.nn.Linear(2, 1)
    >>> torch.equal(layer().weight, layer().weight)
    True
    """

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.generator = generator

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """The same operation; of one that draws, the overload that takes a generator."""
        given = kwargs or {}
        if torch.Tag.nondeterministic_seeded in func.tags:
            return func.overloadpacket(*args, **{**given, "generator": self.generator})
        return func(*args, **given)
