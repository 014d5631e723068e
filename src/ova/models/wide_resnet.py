"""Wide residual networks WRN-d-k (Zagoruyko and Komodakis, 2016)."""

import re

import torch.nn.functional as F
from torch import Tensor, nn

from ova.errors import BadInput
from ova.models.backbone import Backbone, Build, he_start, image_shape


class PreBlock(nn.Module):
    """Norm, ReLU, convolution, twice, with dropout between (their B(3, 3))."""

    def __init__(self, before: int, width: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(before)
        self.conv1 = nn.Conv2d(before, width, 3, stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.dropout = nn.Dropout(dropout)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        same = before == width and stride == 1
        self.shortcut = None if same else nn.Conv2d(before, width, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = F.relu(self.norm1(x), inplace=True)
        shortcut: Tensor = x if self.shortcut is None else self.shortcut(h)
        h = self.conv1(h)
        h = self.conv2(self.dropout(F.relu(self.norm2(h), inplace=True)))
        return h + shortcut


def parse(name: str) -> tuple[int, int] | None:
    """Depth and width of a name, None when it is no name of a wide residual network.

    >>> parse("wrn-28-10"), parse("resnet20")
    ((28, 10), None)
    """
    match = re.fullmatch(r"wrn-(\d+)-(\d+)", name)
    return (int(match[1]), int(match[2])) if match else None


def wide_resnet(depth: int, width: int) -> Build:
    """A builder of WRN-depth-width; the depth is 6 n + 4 with n blocks in each of three stages."""
    n, rest = divmod(depth - 4, 6)
    if n < 1 or rest or width < 1:
        raise BadInput(
            f"wrn-{depth}-{width}: the depth must be 10, 16, 22, 28, ... and the width at least 1"
        )

    def build(shape: tuple[int, ...], dropout: float = 0.0) -> Backbone:
        channels = image_shape(shape, f"wrn-{depth}-{width}", 8)
        layers: list[nn.Module] = [nn.Conv2d(channels, 16, 3, padding=1, bias=False)]
        before = 16
        for stage, stride in ((16, 1), (32, 2), (64, 2)):
            for i in range(n):
                block = PreBlock(before, stage * width, stride if i == 0 else 1, dropout)
                layers.append(block)
                before = stage * width
        layers += [nn.BatchNorm2d(before), nn.ReLU(inplace=True)]
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        return Backbone(he_start(nn.Sequential(*layers)), before)

    build.__doc__ = (
        f"WRN-{depth}-{width}: {n} blocks in each of three stages, {width} times as wide."
    )
    return build


MODELS = {"wrn-16-2": wide_resnet(16, 2), "wrn-28-10": wide_resnet(28, 10)}
