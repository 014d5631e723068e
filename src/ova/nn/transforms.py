"""`torch.func`: where it is at work, only plain operations can be used, and no value be looked at."""

import torch
from torch import Tensor


def transformed() -> bool:
    """Whether the code runs inside `torch.func.grad`, `vmap` or another of its kind."""
    active: bool = torch._C._are_functorch_transforms_active()
    return active


def many(x: Tensor) -> bool:
    """Whether `vmap` made one tensor of several, which have no common value."""
    batched: bool = torch._C._functorch.is_batchedtensor(x)
    return batched
