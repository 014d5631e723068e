"""The real 8 x 8 digits that ship with scikit-learn: 0-7 are known, 8 and 9 belong to none."""

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ova.data.task import InMemory, Task
from ova.predictions import NONE
from ova.predictions.sets import SetName

KNOWN, UNKNOWN = 8, (8, 9)
NOISE = (1.0, 2.0, 3.5, 5.0, 7.0)  # standard deviations, on the digits' scale of 0 to 16


def load(_: Path | None, judges: Sequence[int] = UNKNOWN) -> Task:
    """Three fifths of the known digits to train on, one fifth to validate, one fifth to test.

    Of the unknown digits those that do not judge are there to choose by.
    """
    from sklearn.datasets import load_digits

    images, target = load_digits(return_X_y=True)
    x = torch.from_numpy(images.astype(np.uint8)).reshape(-1, 1, 8, 8)
    y = torch.from_numpy(target).long()
    known = torch.nonzero(y < KNOWN).squeeze(1)
    known = known[torch.randperm(len(known), generator=torch.Generator().manual_seed(0))]
    fifth = len(known) // 5
    train, validation, test = known[2 * fifth :], known[:fifth], known[fifth : 2 * fifth]
    names = {d: (SetName.ood if d in judges else SetName.to_choose)(str(d)) for d in UNKNOWN}
    unknown = {name: torch.nonzero(y == digit).squeeze(1) for digit, name in names.items()}
    return Task(
        classes=tuple(str(digit) for digit in range(KNOWN)),
        shape=(1, 8, 8),
        train=InMemory(x[train], y[train]),
        validation=InMemory(x[validation], y[validation]),
        evaluations={
            "train": partial(InMemory, x[train], y[train]),
            "test": partial(InMemory, x[test], y[test]),
            **{
                SetName.shift("noise", level): partial(noisy, x[test], y[test], level)
                for level in range(1, len(NOISE) + 1)
            },
            **{
                name: partial(InMemory, x[rows], torch.full((len(rows),), NONE))
                for name, rows in unknown.items()
            },
        },
        prepare=lambda x: x.float() / 8 - 1,
        white=16,
        sources={"scikit-learn digits": hashlib.sha256(x.numpy().tobytes()).hexdigest()},
    )


def eight(data_dir: Path | None) -> Task:
    """The eight judges, the nine is to choose by."""
    return load(data_dir, judges=(8,))


def nine(data_dir: Path | None) -> Task:
    """The nine judges, the eight is to choose by."""
    return load(data_dir, judges=(9,))


def noisy(x: Tensor, y: Tensor, level: int) -> InMemory:
    """The images under Gaussian noise, back on the digits' scale of whole numbers 0 to 16."""
    draw = torch.Generator().manual_seed(level)
    noise = NOISE[level - 1] * torch.randn(x.shape, generator=draw)
    return InMemory((x + noise).round().clamp(0, 16).to(torch.uint8), y)
