"""Simple changes of whole batches of images, each image with its own strength: what AugMix is made of.

Images are float, N x C x H x W, whole numbers 0 to 255. The operations and their strengths are those
of AugMix (Hendrycks et al., 2020), none of which is one of the corruptions that models are tested with.
"""

from math import pi

import torch
import torch.nn.functional as F
from torch import Tensor

WHITE = 255
Level = Tensor  # N, how strong: 0 to 10, by AugMix at most 3


def autocontrast(x: Tensor, _: Level) -> Tensor:
    """Every channel stretched until its darkest value is 0 and its lightest 255."""
    low, high = x.amin((2, 3), keepdim=True), x.amax((2, 3), keepdim=True)
    stretched = ((x - low) * (WHITE / (high - low).clamp(min=1))).floor()
    return torch.where(high > low, stretched, x)


def equalize(x: Tensor, _: Level) -> Tensor:
    """Every channel with its values spread evenly, by the table that Pillow makes of a histogram."""
    values = x.flatten(2).long()
    count = x.new_zeros(*values.shape[:2], WHITE + 1, dtype=torch.long)
    count.scatter_add_(2, values, torch.ones_like(values))
    lightest = count.gather(2, values.amax(2, keepdim=True))
    step = (count.sum(2, keepdim=True) - lightest) // WHITE
    table = (step // 2 + count.cumsum(2) - count) // step.clamp(min=1)
    spread = table.clamp(max=WHITE).gather(2, values).view(x.shape).to(x.dtype)
    return torch.where(step[..., None] > 0, spread, x)


def posterize(x: Tensor, level: Level) -> Tensor:
    """The four highest bits of each value, or fewer."""
    dropped = 2.0 ** (4 + (level * 4 / 10).floor())
    return (x / each(dropped)).floor() * each(dropped)


def solarize(x: Tensor, level: Level) -> Tensor:
    """Light values turned round."""
    threshold = 256 - (level * 256 / 10).floor()
    return torch.where(x < each(threshold), x, WHITE - x)


def rotation(sign: Tensor, level: Level, size: tuple[int, int]) -> Tensor:
    """Around the middle, by up to 30 degrees at level 10."""
    angle = sign * (level * 30 / 10).floor() * pi / 180
    cos, sin, (middle_x, middle_y) = angle.cos(), angle.sin(), (size[1] / 2, size[0] / 2)
    right = middle_x - cos * middle_x + sin * middle_y
    down = middle_y - sin * middle_x - cos * middle_y
    return rows_of((cos, -sin, right), (sin, cos, down))


def shear_x(sign: Tensor, level: Level, _: tuple[int, int]) -> Tensor:
    """Rows moved the more the lower they are."""
    zero, one = torch.zeros_like(level), torch.ones_like(level)
    return rows_of((one, sign * level * 0.03, zero), (zero, one, zero))


def shear_y(sign: Tensor, level: Level, _: tuple[int, int]) -> Tensor:
    """Columns moved the more the farther right they are."""
    zero, one = torch.zeros_like(level), torch.ones_like(level)
    return rows_of((one, zero, zero), (sign * level * 0.03, one, zero))


def translate_x(sign: Tensor, level: Level, size: tuple[int, int]) -> Tensor:
    """Moved sideways, by up to a third of the width at level 10."""
    zero, one = torch.zeros_like(level), torch.ones_like(level)
    return rows_of((one, zero, sign * (level * size[1] / 30).floor()), (zero, one, zero))


def translate_y(sign: Tensor, level: Level, size: tuple[int, int]) -> Tensor:
    """Moved up or down, by up to a third of the height at level 10."""
    zero, one = torch.zeros_like(level), torch.ones_like(level)
    return rows_of((one, zero, zero), (zero, one, sign * (level * size[0] / 30).floor()))


COLOURS = (autocontrast, equalize, posterize, solarize)
MAPS = (rotation, shear_x, shear_y, translate_x, translate_y)


def each(values: Tensor) -> Tensor:
    """One value per image, to go with its pixels."""
    return values.view(-1, 1, 1, 1)


def rows_of(*rows: tuple[Tensor, ...]) -> Tensor:
    """Maps N x 2 x 3 from their entries."""
    return torch.stack([torch.stack(row, -1) for row in rows], 1)


def warped(x: Tensor, maps: Tensor) -> Tensor:
    """Images through maps (N x 2 x 3) from a place (x, y) of the result to where it comes from.

    Between pixels by bilinear interpolation; what comes from beyond the image is black.
    """
    n, _, h, w = x.shape
    across, down = torch.arange(w) + 0.5, torch.arange(h) + 0.5
    places = torch.stack([across.repeat(h), down.repeat_interleave(w), torch.ones(h * w)])
    source = (maps @ places).view(n, 2, h, w)
    size = torch.tensor([w, h]).view(1, 2, 1, 1)
    seen = ((source >= 0) & (source < size)).all(1, keepdim=True)
    grid = (2 * source / size - 1).permute(0, 2, 3, 1)
    moved = F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False)
    return (moved * seen).round()


def randomly_changed(x: Tensor, severity: float, draw: torch.Generator) -> Tensor:
    """Each image after one operation, drawn with its strength and direction."""
    n, size = len(x), (x.shape[2], x.shape[3])
    which = torch.randint(len(COLOURS) + len(MAPS), (n,), generator=draw)
    level = 0.1 + (severity - 0.1) * torch.rand(n, generator=draw)
    sign = 1.0 - 2 * torch.randint(2, (n,), generator=draw)
    out = x.clone()
    for number, change in enumerate(COLOURS):
        rows = (which == number).nonzero()[:, 0]
        if len(rows):
            out[rows] = change(x[rows], level[rows])
    maps = torch.stack([make(sign, level, size) for make in MAPS])
    rows = (which >= len(COLOURS)).nonzero()[:, 0]
    if len(rows):
        out[rows] = warped(x[rows], maps[which[rows] - len(COLOURS), rows])
    return out
