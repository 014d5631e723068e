"""Normalisation, and random crops and flips, of whole batches of uint8 images."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


def normalise(mean: Sequence[float], std: Sequence[float]) -> Callable[[Tensor], Tensor]:
    """(x / 255 - mean) / std of a whole uint8 batch, in one multiplication and one addition."""
    m, s = (torch.tensor(v).view(-1, 1, 1) for v in (mean, std))
    scale, shift = 1 / (255 * s), -m / s

    def prepare(x: Tensor) -> Tensor:
        return x.float().mul_(scale.to(x.device)).add_(shift.to(x.device))

    return prepare


@dataclass(frozen=True)
class CropFlip:
    """Each image moved by up to `pad` pixels each way and, with `flip`, mirrored, all at random.

    Beyond its border an image is black, or with `reflect` goes on as its mirror image.
    """

    pad: int = 4
    flip: bool = True
    reflect: bool = False

    def __call__(
        self, x: Tensor, generator: torch.Generator, mirror: Tensor | None = None
    ) -> Tensor:
        """A batch, moved and mirrored; `mirror` says which images, if that is not left to chance."""
        (n, c, h, w), pad, device = x.shape, self.pad, generator.device
        top, left = torch.randint(0, 2 * pad + 1, (2, n, 1), generator=generator, device=device)
        if mirror is None or not self.flip:
            mirror = torch.randint(0, 1 + self.flip, (n,), generator=generator, device=device)
        column = torch.arange(w, device=device)
        rows = top + torch.arange(h, device=device)
        columns = left + torch.where(mirror[:, None] == 1, w - 1 - column, column)
        if self.reflect:
            rows, columns, width = reflected(rows - pad, h), reflected(columns - pad, w), w
        else:
            x, width = F.pad(x, (pad, pad, pad, pad)), w + 2 * pad
        # One gather over flattened planes: four times as fast as indexing with four tensors.
        pixels = rows[:, :, None] * width + columns[:, None, :]
        index = pixels.view(n, 1, h * w).expand(n, c, h * w).to(x.device)
        return x.flatten(2).gather(2, index).view(n, c, h, w)


def reflected(at: Tensor, size: int) -> Tensor:
    """Places outside 0 ... size - 1 thrown back from the last pixel, which is not repeated."""
    return size - 1 - (size - 1 - at.abs()).abs()
