"""Residual networks (He et al., 2016): ResNet-20 v1 for small images, ResNet-50 v1.5 for large."""

import torch.nn.functional as F
from torch import Tensor, nn

from ova.models.backbone import Backbone, he_start, image_shape


class Block(nn.Module):
    """Two 3 x 3 convolutions and a shortcut without parameters (their option A)."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.stride, self.more = stride, width - before

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.norm1(self.conv1(x)), inplace=True)
        h = self.norm2(self.conv2(h))
        if self.stride > 1 or self.more:  # every second pixel, and zeros for the new channels
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.more))
        return F.relu(h + x, inplace=True)


def resnet20(shape: tuple[int, ...], dropout: float = 0.0) -> Backbone:
    """Three stages of three blocks, 16, 32 and 64 wide: 0.27 M parameters with a head of ten."""
    channels = image_shape(shape, "resnet20", 8)
    layers: list[nn.Module] = [
        nn.Conv2d(channels, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(inplace=True),
    ]
    before = 16
    for width, stride in ((16, 1), (32, 2), (64, 2)):
        layers += [Block(before, width, stride), Block(width, width, 1), Block(width, width, 1)]
        before = width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(dropout)]
    return Backbone(he_start(nn.Sequential(*layers)), before)


class Pooled(nn.Module):
    """The pooled output of a transformers model, flat."""

    def __init__(self, network: nn.Module, dropout: float) -> None:
        super().__init__()
        self.network = network
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        f: Tensor = self.dropout(self.network(x).pooler_output.flatten(1))
        return f


def resnet50(shape: tuple[int, ...], dropout: float = 0.0) -> Backbone:
    """ResNet-50 v1.5, the one with the stride in the 3 x 3 convolution: 23.5 M parameters."""
    from transformers import ResNetConfig, ResNetModel

    config = ResNetConfig(
        num_channels=image_shape(shape, "resnet50", 32),
        embedding_size=64,
        hidden_sizes=[256, 512, 1024, 2048],
        depths=[3, 4, 6, 3],
        layer_type="bottleneck",
        downsample_in_bottleneck=False,
    )
    return Backbone(Pooled(ResNetModel(config), dropout), 2048)


MODELS = {"resnet20": resnet20, "resnet50": resnet50}
