"""Backbones: networks that give features; the formulation brings the head."""

from collections.abc import Callable, Mapping

from ova.models.backbone import Backbone
from ova.models.bert import bert_mini
from ova.models.convnet import convnet
from ova.models.mlp import mlp
from ova.models.resnet import resnet20, resnet50
from ova.models.wide_resnet import parse, wide_resnet
from ova.tables import pick

Build = Callable[[tuple[int, ...], float], Backbone]

MODELS: Mapping[str, Build] = {
    "mlp": mlp,
    "convnet": convnet,
    "resnet20": resnet20,
    "wrn-16-2": wide_resnet(16, 2),
    "wrn-28-10": wide_resnet(28, 10),
    "resnet50": resnet50,
    "bert-mini": bert_mini,
}


def model(name: str) -> Build:
    """The model of that name; besides the table every wide residual network, `wrn-<depth>-<width>`.

    >>> model("wrn-10-1")((3, 32, 32), 0.0).features
    64
    """
    depth_width = parse(name)
    if name not in MODELS and depth_width:
        return wide_resnet(*depth_width)
    return pick(MODELS, name, "model")
