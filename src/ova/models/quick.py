"""A quick network for small images, after Keller Jordan, 94 % on CIFAR-10 in 3.29 seconds (2024).

Its first layer whitens patches and is never trained, the others begin as the identity as far as they
can, and most of its channels are where the image is small already.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ova.models.backbone import Backbone, Build, image_shape

MOMENTUM = 0.4  # the share of a batch in the statistics of batch norm: a run has few steps
EPS = 5e-4  # of the variance of a patch; what varies less is not blown up
IMAGES = 512  # that the whitening looks at
SCALE = 1 / 9  # of the features: without it the last layer learns too fast for the others


class Whitening(nn.Module):
    """Patches of 2 x 2 as uncorrelated numbers of variance one, and their negatives."""

    filters: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        size = 4 * channels
        same = torch.eye(size).view(size, channels, 2, 2)
        self.register_buffer("filters", torch.cat([same, -same]))

    def start(self, x: Tensor) -> None:
        """Take the filters from images: the principal directions, each over its deviation."""
        patches = F.unfold(x[:IMAGES], 2).transpose(0, 1).flatten(1)
        moments = (patches @ patches.T / patches.shape[1]).double()
        variances, directions = torch.linalg.eigh(moments)
        white = (directions / (variances + EPS).sqrt()).T.view(-1, *self.filters.shape[1:])
        self.filters.copy_(torch.cat([white, -white]))

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.filters)


def convolution(before: int, width: int) -> nn.Conv2d:
    """3 x 3, beginning as the identity on as many channels as there are."""
    layer = nn.Conv2d(before, width, 3, padding=1, bias=False)
    nn.init.dirac_(layer.weight.data[:before])
    return layer


def norm(width: int) -> nn.BatchNorm2d:
    """Batch norm that learns where its values lie, but not how far they spread."""
    layer = nn.BatchNorm2d(width, momentum=MOMENTUM)
    del layer.weight
    layer.register_buffer("weight", torch.ones(width))
    return layer


class Largest(nn.Module):
    """The largest value of each channel."""

    def forward(self, x: Tensor) -> Tensor:
        return SCALE * x.amax((2, 3))


class Quick(Backbone):
    """A whitening layer, then three groups of two convolutions; each group halves the image."""

    def __init__(self, channels: int, dropout: float, widths: tuple[int, ...]) -> None:
        layers: list[nn.Module] = [nn.GELU()]
        before = 8 * channels
        for width in widths:
            layers += [convolution(before, width), nn.MaxPool2d(2), norm(width), nn.GELU()]
            layers += [convolution(width, width), norm(width), nn.GELU()]
            before = width
        super().__init__(nn.Sequential(*layers, Largest(), nn.Dropout(dropout)), before)
        self.white = Whitening(channels)

    def start(self, x: Tensor) -> None:
        """The whitening follows from the data."""
        self.white.start(x)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(self.white(x))


def quick(*widths: int) -> Build:
    """A network with so many channels in its three groups."""

    def build(shape: tuple[int, ...], dropout: float = 0.0) -> Backbone:
        return Quick(image_shape(shape, "quick", 9), dropout, widths)

    build.__doc__ = (
        f"fixed whitening, six 3 x 3 convolutions of {', '.join(map(str, widths))} channels"
    )
    return build


MODELS = {"quick": quick(64, 256, 256), "quick-wide": quick(64, 256, 512)}
