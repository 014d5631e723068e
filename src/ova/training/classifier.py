"""A backbone that gives features and the head that a formulation puts on it."""

import torch
from torch import Tensor, nn

from ova.data.task import Task
from ova.errors import pick
from ova.models import model
from ova.models.backbone import Backbone
from ova.nn.formulations import FORMULATIONS
from ova.nn.heads import LastLayer
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
        z: Tensor = self.head(self.backbone(x))
        return z


def build(recipe: Recipe, task: Task) -> Classifier:
    """The recipe's network with the first weights that its seed decides."""
    torch.manual_seed(recipe.seed)
    backbone = model(recipe.model)(task.shape, recipe.dropout)
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
    """Let the head set its first centres and scale by the features of a first batch.

    Every process sees the same batch here, so all of them start with the same head.
    """
    count = max(recipe.batch_size, min(PER_CLASS * len(task.classes), AT_MOST))
    draw = torch.Generator().manual_seed(recipe.seed)
    rows = torch.randperm(len(task.train), generator=draw)[:count]
    kept = {name: buffer.clone() for name, buffer in net.named_buffers()}
    # In training mode, because that is where the features go on from: batch norm that has seen
    # nothing yet gives features of quite another length when it is evaluated.
    net.train()
    for x, y in task.train.batches([rows]):
        f = net.backbone(task.prepare(x.to(net.device)))
        for name, buffer in net.named_buffers():
            buffer.copy_(kept[name])  # running statistics begin with the first step
        net.head.start(f, y.to(net.device))
