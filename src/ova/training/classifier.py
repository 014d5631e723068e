"""A backbone that gives features and the head that a formulation puts on it."""

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ova.data.task import Task
from ova.errors import pick
from ova.models import model
from ova.models.backbone import Backbone
from ova.nn.formulations import FORMULATIONS
from ova.nn.heads import LastLayer
from ova.nn.losses import wide
from ova.training.recipe import Recipe

PER_CLASS, AT_MOST = 8, 2048  # examples that a head starts from


class Classifier(nn.Module):
    """Logits z = head(f), features f = backbone(x)."""

    def __init__(self, backbone: Backbone, head: LastLayer) -> None:
        super().__init__()
        self.backbone, self.head = backbone, head

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return next(self.parameters()).device

    def forward(self, x: Tensor) -> Tensor:
        """The logits of a prepared batch."""
        return self.both(x)[1]

    def both(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Features and logits; the head has all digits, whatever the backbone has."""
        f = wide(self.backbone(x))
        with torch.autocast(f.device.type, enabled=False):
            z: Tensor = self.head(f)
        return f, z


def build(recipe: Recipe, task: Task) -> Classifier:
    """The recipe's network with the first weights that its seed decides."""
    torch.manual_seed(recipe.seed)
    backbone = model(recipe.model)(task.shape, recipe.dropout)
    for module in backbone.modules() if recipe.norm_momentum else ():
        if isinstance(module, _BatchNorm):
            module.momentum = recipe.norm_momentum
    return assemble(backbone, recipe.formulation, len(task.classes), images=len(task.shape) == 3)


def assemble(backbone: Backbone, formulation: str, classes: int, images: bool) -> Classifier:
    """The backbone with the head of a formulation on top."""
    form = pick(FORMULATIONS, formulation, "formulation")
    net = Classifier(backbone, form.head(backbone.features, classes))
    if images:  # convolutions run faster with the channels last
        net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return net


@torch.no_grad()
def start(net: Classifier, task: Task, recipe: Recipe) -> None:
    """Let the network take from a first batch what it does not draw: a whitening of patches, the
    head's first centres and scale.

    Every process sees the same batch here, so all of them start with the same network.
    """
    count = max(recipe.batch_size, min(PER_CLASS * len(task.classes), AT_MOST))
    draw = torch.Generator().manual_seed(recipe.seed)
    rows = torch.randperm(len(task.train), generator=draw)[:count]
    ((x, y),) = task.train.batches([rows])
    x, y = task.prepare(x.to(net.device)), y.to(net.device)
    net.backbone.start(x)
    kept = {name: buffer.clone() for name, buffer in net.named_buffers()}
    # In training mode, because that is where the features go on from: batch norm that has seen
    # nothing yet gives features of quite another length when it is evaluated.
    f = net.train().backbone(x)
    for name, buffer in net.named_buffers():
        buffer.copy_(kept[name])  # running statistics begin with the first step
    net.head.start(f, y)
