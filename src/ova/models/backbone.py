"""What every model is: a network that turns prepared inputs into features."""

from collections.abc import Callable

from torch import Tensor, nn

from ova.errors import BadInput


class Backbone(nn.Module):
    """A body that gives B x features; a formulation puts its head on top.

    >>> Backbone(nn.Linear(2, 5), 5)(__import__("torch").zeros(3, 2)).shape
    torch.Size([3, 5])
    """

    def __init__(self, body: nn.Module, features: int) -> None:
        super().__init__()
        self.body = body
        self.features = features

    def start(self, x: Tensor) -> None:
        """Take first values from prepared inputs; most networks have nothing to take."""

    def forward(self, x: Tensor) -> Tensor:
        f: Tensor = self.body(x)
        return f


Build = Callable[[tuple[int, ...], float], Backbone]  # of (shape of an input, dropout)


def image_shape(shape: tuple[int, ...], model: str, smallest: int) -> int:
    """The number of channels of (C, H, W) images that are large enough for the model."""
    if len(shape) != 3 or min(shape[1:]) < smallest:
        raise BadInput(
            f"{model} takes images (channels, height, width) of at least {smallest} x {smallest}, "
            f"not inputs of shape {shape}"
        )
    return shape[0]


def he_start(body: nn.Module) -> nn.Module:
    """Convolutions drawn as He et al. (2015), eq. 10, for the backward pass: var = 2 / fan-out."""
    for module in body.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return body
