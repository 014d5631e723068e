"""The real 8 x 8 digits that ship with scikit-learn: 0-7 are known, 8 and 9 belong to none."""

import hashlib
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ova.data.task import InMemory, Task
from ova.predictions import NONE
from ova.predictions.sets import SetName

KNOWN = 8
NOISE = (1.0, 2.0, 3.5, 5.0, 7.0)  # standard deviations, on the digits' scale of 0 to 16


def load(_: Path | None) -> Task:
    """Three fifths of the known digits to train on, one fifth to validate, one fifth to test."""
    from sklearn.datasets import load_digits

    images, target = load_digits(return_X_y=True)
    x = torch.from_numpy(images.astype(np.uint8)).reshape(-1, 1, 8, 8)
    y = torch.from_numpy(target).long()
    known = torch.nonzero(y < KNOWN).squeeze(1)
    known = known[torch.randperm(len(known), generator=torch.Generator().manual_seed(0))]
    fifth = len(known) // 5
    train, validation, test = known[2 * fifth :], known[:fifth], known[fifth : 2 * fifth]
    unknown = {SetName.ood(str(digit)): torch.nonzero(y == digit).squeeze(1) for digit in (8, 9)}
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
        sources={"scikit-learn digits": hashlib.sha256(x.numpy().tobytes()).hexdigest()},
    )


def noisy(x: Tensor, y: Tensor, level: int) -> InMemory:
    """The images under Gaussian noise, back on the digits' scale of whole numbers 0 to 16."""
    draw = torch.Generator().manual_seed(level)
    noise = NOISE[level - 1] * torch.randn(x.shape, generator=draw)
    return InMemory((x + noise).round().clamp(0, 16).to(torch.uint8), y)
