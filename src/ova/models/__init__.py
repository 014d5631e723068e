"""Backbones: networks that give features; the formulation brings the head."""

from collections.abc import Callable, Mapping

from ova.errors import pick
from ova.models.backbone import Backbone
from ova.models.bert import bert_mini, bert_mini_mean
from ova.models.convnet import convnet
from ova.models.mlp import mlp
from ova.models.pretrained import encoder, is_folder
from ova.models.resnet import resnet20, resnet50
from ova.models.text_cnn import text_cnn
from ova.models.wide_resnet import parse, wide_resnet

Build = Callable[[tuple[int, ...], float], Backbone]

MODELS: Mapping[str, Build] = {
    "mlp": mlp(16),
    "mlp-256": mlp(256),
    "convnet": convnet(64, 128, 256),
    "convnet-medium": convnet(32, 64, 128),
    "convnet-small": convnet(16, 32, 64),
    "resnet20": resnet20,
    "wrn-16-2": wide_resnet(16, 2),
    "wrn-28-10": wide_resnet(28, 10),
    "resnet50": resnet50,
    "text-cnn": text_cnn,
    "bert-mini": bert_mini,
    "bert-mini-mean": bert_mini_mean,
}


def model(name: str) -> Build:
    """The model of that name; besides the table every wide residual network, `wrn-<depth>-<width>`,
    and every encoder in a folder of transformers, `folder:PATH`, or `frozen:PATH` to leave its
    weights as they are.

    >>> model("wrn-10-1")((3, 32, 32), 0.0).features
    64
    """
    depth_width = parse(name)
    if name not in MODELS and depth_width:
        return wide_resnet(*depth_width)
    if is_folder(name):
        return encoder(name)
    return pick(MODELS, name, "model")
