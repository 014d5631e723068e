"""Pictures of what a network learned: confidence over the plane, class centres among embeddings."""

from collections.abc import Callable
from math import isfinite

import torch
from torch import Tensor

from ova.data.task import Examples, Task
from ova.files import Row
from ova.nn.formulations import Formulation
from ova.training.classifier import Classifier

HALF_WIDTH, POINTS = 60.0, 81  # three times the toy's circle, so that "far away" is in the picture
SAMPLE = 30  # embeddings drawn per class
ENOUGH = 10_000  # examples that class means are taken from; a whole training set would take minutes
PIECE = 1024  # class means whose distances to all others are in memory at a time


@torch.inference_mode()
def landscape(net: Classifier, form: Formulation) -> Row:
    """The confidence on a square grid of 2-D inputs (the paper's figure 1)."""
    axis = torch.linspace(-HALF_WIDTH, HALF_WIDTH, POINTS)
    grid = torch.cartesian_prod(axis, axis)
    confidence = form.probs(net(grid.to(net.device))).amax(-1)
    columns: Row = {"x": rounded(grid[:, 0]), "y": rounded(grid[:, 1])}
    columns["confidence"] = rounded(confidence, 4)
    return {"dataset": "grid", "curve": "landscape", "columns": columns}


@torch.inference_mode()
def embeddings(net: Classifier, task: Task, examples: Examples) -> tuple[Tensor, Tensor]:
    """Embeddings in the space of the head's centres, and targets, of examples from all over the set."""
    rows = torch.arange(0, len(examples), max(1, -(-len(examples) // ENOUGH)))
    parts = [
        (net.head.embed(net.backbone(task.prepare(x.to(net.device)))).cpu(), y)
        for x, y in examples.batches(rows.split(512))
    ]
    return torch.cat([f for f, _ in parts]).double(), torch.cat([y for _, y in parts])


def class_means(f: Tensor, y: Tensor, classes: int) -> Tensor:
    """The mean embedding of every class."""
    total = f.new_zeros(classes, f.shape[1]).index_add_(0, y, f)
    return total / torch.bincount(y, minlength=classes).clamp(min=1)[:, None]


def centre_offsets(centres: Tensor, means: Tensor) -> Tensor:
    """How far each centre lies from its class mean, in units of the distance to the nearest other mean.

    At 0 the centre is the mean of its class; above 1/2 it is nearer to where a neighbour ends.
    """
    between = torch.cat([to_others(means, rows) for rows in torch.arange(len(means)).split(PIECE)])
    offsets: Tensor = (centres - means).square().sum(1).sqrt() / between
    return offsets


def to_others(means: Tensor, rows: Tensor) -> Tensor:
    """The distance of some means to the nearest other one."""
    distances = torch.cdist(means[rows], means)
    distances[torch.arange(len(rows)), rows] = torch.inf
    return distances.amin(1)


def embedding_rows(net: Classifier, task: Task) -> tuple[list[Row], list[Row]]:
    """Measurements and the picture of class centres among embeddings (the paper's figure S1).

    Heads without centres have neither. What cannot be measured is null with a reason: it is looked
    at beside the model, which must not be lost for it.
    """
    centres = net.head.centres
    if centres is None:
        return [], []
    f, y = embeddings(net, task, task.train)
    whole = (y >= 0) & f.isfinite().all(1)  # an example of none of the classes has no centre
    f, y, w = f[whole], y[whole], centres.detach().cpu().double()
    known = y.unique()  # a rare class may have no example among those that are looked at
    if len(known) < 2:
        why = "fewer than two classes have embeddings that are numbers"
        return [offset(name, None, len(y), why) for name in OFFSETS], []
    offsets = centre_offsets(w[known], class_means(f, y, len(w))[known])
    rows = [offset(name, float(of(offsets)), len(y)) for name, of in OFFSETS.items()]
    return rows, [picture(f, y, w)]


OFFSETS: dict[str, Callable[[Tensor], Tensor]] = {
    "centre_offset": torch.mean,
    "centre_offset_max": torch.amax,
}


def offset(name: str, value: float | None, n: int, why: str = "") -> Row:
    """One measurement; infinite where two classes have the same mean, which JSON cannot say."""
    if value is not None and not isfinite(value):
        value, why = None, "two classes have the same mean embedding"
    row = {"dataset": "train", "metric": name, "value": value, "n": n}
    return {**row, "why": why} if why else row


def picture(f: Tensor, y: Tensor, w: Tensor) -> Row:
    """Embeddings and centres on the first two principal components of the embeddings."""
    mean = f.mean(0)
    _, _, axes = torch.linalg.svd(f - mean, full_matrices=False)
    # The sign of a principal axis is arbitrary; its largest entry is made positive.
    axes = axes[:2] * axes[:2].gather(1, axes[:2].abs().argmax(1, keepdim=True)).sign()
    kept = torch.cat([torch.nonzero(y == k).squeeze(1)[:SAMPLE] for k in range(len(w))])
    points, centres = (f[kept] - mean) @ axes.T, (w - mean) @ axes.T
    both = torch.cat([points, centres])
    columns = {
        "x": rounded(both[:, 0]),
        "y": rounded(both[:, 1]) if both.shape[1] > 1 else [0.0] * len(both),
        "label": y[kept].tolist() + list(range(len(w))),
        "kind": ["point"] * len(points) + ["centre"] * len(centres),
    }
    return {"dataset": "train", "curve": "embedding", "columns": columns}


def rounded(values: Tensor, digits: int = 6) -> list[float | None]:
    """Values with so many significant digits: what a picture needs. What is no number is null."""
    return [float(f"{v:.{digits}g}") if isfinite(v) else None for v in values.tolist()]
