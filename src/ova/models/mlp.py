"""The paper's network for the 2-D toy."""

from torch import nn

from ova.errors import BadInput
from ova.models.backbone import Backbone

WIDTH = 16


def mlp(shape: tuple[int, ...], dropout: float = 0.0) -> Backbone:
    """D-16-16 with a ReLU after both layers; the last layer of the paper's MLP is the head."""
    if len(shape) != 1:
        raise BadInput(f"mlp takes vectors, shape (D,), not inputs of shape {shape}")
    layers = [
        nn.Linear(shape[0], WIDTH),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(),
        nn.Dropout(dropout),
    ]
    return Backbone(nn.Sequential(*layers), WIDTH)
