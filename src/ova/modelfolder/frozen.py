"""A frozen encoder in a model folder: its features are taken once, and the head joined to it in the end."""

from collections.abc import Generator
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from ova.models import model
from ova.models.backbone import Backbone
from ova.training import checkpoint
from ova.training.classifier import Classifier, build
from ova.training.features import embedded
from ova.training.stages import Stage
from ova.userdata.gather import Gathered

HEAD = "head.safetensors"  # in the run: what was trained on the features


def on_features(gathered: Gathered, device: torch.device) -> Generator[Stage, None, Gathered]:
    """The same data as features of an encoder that stays as it is."""
    make = partial(encoder_of, gathered)
    return replace(
        gathered, task=(yield from embedded(gathered.task, gathered.recipe, device, make))
    )


def encoder_of(gathered: Gathered) -> Backbone:
    """The encoder, whose features nobody has standardised yet."""
    return model(gathered.recipe.model)(gathered.task.shape, 0.0)


def join(net: Classifier, gathered: Gathered, weights: Path) -> None:
    """Write the weights of the encoder and of what was fitted on its features as one network."""
    recipe, fitted = gathered.recipe, net.state_dict()
    tensors = {**build(recipe, gathered.task).state_dict(), **fitted}
    checkpoint.save(weights, tensors, {"recipe": recipe.digest})
