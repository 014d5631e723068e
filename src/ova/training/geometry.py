"""Pictures of what a network learned: confidence over the plane, class centres among embeddings."""

import torch
from torch import Tensor

from ova.data.task import Examples, Task
from ova.files import Row
from ova.nn.formulations import Formulation
from ova.training.classifier import Classifier

HALF_WIDTH, POINTS = 60.0, 81  # three times the toy's circle, so that "far away" is in the picture
SAMPLE = 30  # embeddings drawn per class
ENOUGH = 10_000  # examples that class means are taken from; a whole training set would take minutes


@torch.inference_mode()
def landscape(net: Classifier, form: Formulation) -> Row:
    """The confidence on a square grid of 2-D inputs (the paper's figure 1)."""
    axis = torch.linspace(-HALF_WIDTH, HALF_WIDTH, POINTS)
    grid = torch.cartesian_prod(axis, axis)
    confidence = form.probs(net(grid.to(net.device))).amax(-1)
    columns = {"x": rounded(grid[:, 0]), "y": rounded(grid[:, 1])}
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
    between = torch.cdist(means, means).fill_diagonal_(torch.inf).amin(1)
    offsets: Tensor = (centres - means).square().sum(1).sqrt() / between
    return offsets


def embedding_rows(net: Classifier, task: Task) -> tuple[list[Row], list[Row]]:
    """Measurements and the picture of class centres among embeddings (the paper's figure S1).

    Heads without centres have neither.
    """
    centres = net.head.centres
    if centres is None:
        return [], []
    f, y = embeddings(net, task, task.train)
    f, y = f[y >= 0], y[y >= 0]  # an example of none of the classes has no centre
    w = centres.detach().cpu().double()
    offsets = centre_offsets(w, class_means(f, y, len(task.classes)))
    measured = {"centre_offset": offsets.mean(), "centre_offset_max": offsets.max()}
    rows = [
        {"dataset": "train", "metric": name, "value": float(value), "n": len(y)}
        for name, value in measured.items()
    ]
    return rows, [picture(f, y, w)]


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


def rounded(values: Tensor, digits: int = 6) -> list[float]:
    """Values with so many significant digits: what a picture needs."""
    return [float(f"{value:.{digits}g}") for value in values.tolist()]
