"""Models: networks that give features; the formulation brings the last layer.

A new model is a file beside this with an entry in its `MODELS`, and a line in `_FILES`.
"""

from collections.abc import Mapping
from importlib import import_module

from ova.errors import pick
from ova.models.backbone import Build
from ova.models.pretrained import encoder, is_folder
from ova.models.wide_resnet import parse, wide_resnet

_FILES = (  # each has entries in its MODELS
    "mlp",
    "convnet",
    "resnet",
    "quick",
    "wide_resnet",
    "text_cnn",
    "bert",
)
MODELS: Mapping[str, Build] = {
    name: build
    for file in _FILES
    for name, build in import_module(f"ova.models.{file}").MODELS.items()
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
