"""The paper's network for the 2-D toy."""

from torch import nn

from ova.errors import BadInput
from ova.models.backbone import Backbone

WIDTH = 16
TABLE_WIDTH = 256


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


def table_mlp(shape: tuple[int, ...], dropout: float = 0.0) -> Backbone:
    """D-256-256 for standardised tables: wide enough that a table, not the network, is the limit."""
    if len(shape) != 1:
        raise BadInput(f"mlp-256 takes vectors, shape (D,), not inputs of shape {shape}")
    sizes = ((shape[0], TABLE_WIDTH), (TABLE_WIDTH, TABLE_WIDTH))
    layers = [part for a, b in sizes for part in (nn.Linear(a, b), nn.ReLU(), nn.Dropout(dropout))]
    return Backbone(nn.Sequential(*layers), TABLE_WIDTH)
