"""Networks for vectors: the paper's for the 2-D toy, and a wider one for tables."""

from torch import nn

from ova.errors import BadInput
from ova.models.backbone import Backbone, Build


def mlp(width: int) -> Build:
    """D-width-width with a ReLU after both layers; the last layer of the paper's MLP is the head.

    Dropout acts between the two layers, not on the features: see docs/formulations.md, the ball.
    """

    def build(shape: tuple[int, ...], dropout: float = 0.0) -> Backbone:
        if len(shape) != 1:
            raise BadInput(f"mlp-{width} takes vectors, shape (D,), not inputs of shape {shape}")
        first = [nn.Linear(shape[0], width), nn.ReLU(), nn.Dropout(dropout)]
        return Backbone(nn.Sequential(*first, nn.Linear(width, width), nn.ReLU()), width)

    build.__doc__ = f"vectors through two layers of {width} with ReLU"
    return build


MODELS = {"mlp": mlp(16), "mlp-256": mlp(256)}
