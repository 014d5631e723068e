"""`Task`: the examples to train, validate and evaluate on; what every data set becomes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor


class Examples(Protocol):
    """Examples with targets, served in whole batches of chosen rows."""

    @property
    def y(self) -> Tensor:
        """int64, one per example; NONE for an example of no class."""

    @property
    def lengths(self) -> Tensor | None:
        """Number of tokens of each example, None where all have one size."""

    def __len__(self) -> int: ...

    def batches(self, plan: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """For each tensor of row numbers in the plan, in order, the inputs and the targets."""
        ...


@dataclass(frozen=True)
class InMemory:
    """Examples that are one tensor: uint8 images, float vectors, or token ids with 0 as padding."""

    x: Tensor
    y: Tensor
    lengths: Tensor | None = None

    def __len__(self) -> int:
        return len(self.y)

    def batches(self, plan: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        for rows in plan:
            x = self.x[rows]
            # Padding beyond the longest example of the batch is work for nothing.
            yield (x if self.lengths is None else x[:, : longest(self.lengths[rows])]), self.y[rows]


def longest(lengths: Tensor) -> int:
    """The largest of the lengths, at least 1."""
    return int(lengths.max().clamp(min=1)) if len(lengths) else 1


Augmentation = Callable[[Tensor, torch.Generator], Tensor]


def unchanged(x: Tensor, _: torch.Generator) -> Tensor:
    """The augmentation that does nothing."""
    return x


@dataclass(frozen=True)
class Task:
    """What there is to learn and where to test it.

    The names in `evaluations` say what each is for: `test`, `shift/<type>/<severity>` (the same
    classes under change), `ood/<name>` (none of the classes), `validation/<name>` (none of the
    classes, to choose by). Each value makes its examples when
    called, so that ninety-five corrupted copies never sit in memory together.
    """

    classes: tuple[str, ...]
    shape: tuple[int, ...]  # (D,) vectors, (C, H, W) images, (vocabulary, length) tokens
    train: Examples
    validation: Examples
    evaluations: Mapping[str, Callable[[], Examples]]
    prepare: Callable[[Tensor], Tensor]  # whole batch, on the device: what the network takes
    augment: Augmentation = unchanged  # training only, before prepare
    sources: Mapping[str, str] = field(default_factory=dict)  # file or origin -> SHA-256
    white: int = 255  # the largest value of images
    # Sets of which predictions are there already, by networks that have not seen their rows.
    judged: frozenset[str] = frozenset()


def plan(examples: Examples, batch_size: int, generator: torch.Generator | None) -> list[Tensor]:
    """Row numbers of each batch of one pass: shuffled with a generator, in order without.

    Examples with lengths are bucketed: shuffled, then sorted by length within pools of fifty
    batches, and the batches shuffled, so that a batch has little padding and still varies.
    """
    n = len(examples)
    rows = torch.arange(n) if generator is None else torch.randperm(n, generator=generator)
    if examples.lengths is None:
        return list(rows.split(batch_size)) if n else []
    pool = n if generator is None else 50 * batch_size
    parts = [p[examples.lengths[p].argsort(stable=True)] for p in rows.split(pool)] if n else []
    batches = [b for p in parts for b in p.split(batch_size)]
    if generator is None:
        return batches
    return [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]
