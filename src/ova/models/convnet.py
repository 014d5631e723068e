"""A small convolutional network for small images: 8 x 8 digits, 28 x 28 drawings."""

from torch import nn

from ova.models.backbone import Backbone, Build, he_start, image_shape


def convnet(*widths: int) -> Build:
    """A network with so many channels in its three layers."""

    def build(shape: tuple[int, ...], dropout: float = 0.0) -> Backbone:
        return network(shape, dropout, widths)

    build.__doc__ = f"three 3 x 3 convolutions of {', '.join(map(str, widths))} channels"
    return build


def network(shape: tuple[int, ...], dropout: float, widths: tuple[int, ...]) -> Backbone:
    """3 x 3 convolutions with batch norm, each followed by halving; features on a 3 x 3 grid.

    The grid keeps where a stroke is, which a plain average over the image forgets.
    """
    channels = image_shape(shape, "convnet", 8)
    layers: list[nn.Module] = []
    for before, width in zip((channels, *widths), widths, strict=False):
        layers += [
            nn.Conv2d(before, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
    grid = min(3, min(shape[1:]) // 2 ** len(widths))
    size = grid * grid * widths[-1]
    layers += [nn.AdaptiveAvgPool2d(grid), nn.Flatten(), nn.Dropout(dropout)]
    layers += [nn.Linear(size, widths[-1], bias=False), nn.BatchNorm1d(widths[-1]), nn.ReLU()]
    return Backbone(he_start(nn.Sequential(*layers)), widths[-1])


MODELS = {
    "convnet": convnet(64, 128, 256),
    "convnet-medium": convnet(32, 64, 128),
    "convnet-small": convnet(16, 32, 64),
}
