"""Predictions of a trained network on a set of examples, each row once, whatever the processes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from lightning_fabric import Fabric
from torch import Tensor

from ova.data.task import Examples, Task, plan
from ova.nn.formulations import Formulation
from ova.predictions import Predictions, merge, read, write
from ova.predictions.averaging import averaged
from ova.predictions.columns import Array
from ova.scores import SCORES, FittedScores, Outputs
from ova.training.classifier import Classifier
from ova.training.drawing import seed_of
from ova.training.dropping import dropping
from ova.training.engine import share

BATCH = 512  # fixed, so that a prediction never depends on the recipe's batch size


@dataclass(frozen=True)
class Predictor:
    """A trained network and all that it needs to predict."""

    fabric: Fabric
    net: Classifier
    task: Task
    form: Formulation
    seed: int = 0
    samples: int = 0  # passes with dropout on; 0: one without
    scores: FittedScores | None = None  # whose values come along as columns
    keep_features: bool = False


@torch.inference_mode()
def predict(
    predictor: Predictor, examples: Examples, limit: int = 0, matrix: bool = False
) -> Predictions:
    """This process's share of the predictions on the first `limit` rows (0: on all of them).

    Row numbers are ids, and all processes together have each row once; `matrix` keeps all p.
    """
    fabric, form, parts = predictor.fabric, predictor.form, []
    batches = (rows[rows < limit] if limit else rows for rows in plan(examples, BATCH, None))
    mine = share(fabric, batches)
    for rows, (x, y) in zip(mine, examples.batches(mine), strict=True):
        x = predictor.task.prepare(x.to(fabric.device))  # noqa: PLW2901
        features, z = predictor.net.both(x)
        z = z.float()
        f, *said = (t.cpu().numpy() for t in (features.float(), z, form.log_probs(z), y))
        part = Predictions.from_logits(
            *said,
            id=rows.numpy(),
            normalised=form.normalised,
            keep_probs=matrix and not predictor.samples,
        )
        if predictor.samples:
            part = averaged(passes(predictor, x, rows), part, keep_probs=matrix)
        if predictor.scores is not None:
            part = replace(part, scores=columns(predictor.scores, part, f, *said[:2]))
        parts.append(replace(part, features=f) if predictor.keep_features else part)
    return merge(parts)


def passes(predictor: Predictor, x: Tensor, rows: Tensor) -> Iterator[Array]:
    """The probabilities of prepared inputs by every pass with dropout on."""
    for sample in range(predictor.samples):
        with dropping(predictor.net, rows, seed_of(predictor.seed, sample)):
            yield predictor.form.probs(predictor.net(x).double()).cpu().numpy()


def fitted(scores: FittedScores) -> list[str]:
    """The scores that predictions do not say by themselves, which are columns of their own."""
    return [name for name in scores.names if SCORES[name].column is None]


def columns(
    scores: FittedScores, said: Predictions, f: Array, z: Array, log_p: Array
) -> dict[str, Array]:
    """The values of the fitted scores; a row whose features are no numbers is as far outside as can be."""
    whole = np.isfinite(f).all(1) & np.isfinite(z).all(1)
    rows = Outputs(
        features=f[whole],
        logits=z[whole],
        log_p=log_p[whole],
        predictions=said.take(whole),
        normalised=bool(said.normalised),
    )
    found = scores(rows) if whole.any() else {}
    values = {name: np.full(len(said), -np.inf) for name in fitted(scores)}
    for name, column in values.items():
        if name in found:
            column[whole] = found[name]
    return values


def predict_to(
    path: Path, predictor: Predictor, examples: Examples, limit: int, matrix: bool
) -> None:
    """Write the predictions of all processes as one file, atomically."""
    part, fabric = predict(predictor, examples, limit, matrix), predictor.fabric
    if fabric.world_size == 1:
        write(path, part)
        return
    pieces = [path.with_name(f".{path.name}.{rank}.part") for rank in range(fabric.world_size)]
    write(pieces[fabric.global_rank], part)
    fabric.barrier()
    if fabric.global_rank == 0:
        count = min(limit or len(examples), len(examples))
        write(path, merge([read(piece) for piece in pieces], total=count))  # no row may be lost
        for piece in pieces:
            piece.unlink()
    fabric.barrier()
