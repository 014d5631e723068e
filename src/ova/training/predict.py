"""What a trained network says about a set of examples, each row once, whatever the processes."""

from dataclasses import dataclass
from pathlib import Path

import torch
from lightning_fabric import Fabric
from torch import Tensor

from ova.data.task import Examples, Task, plan
from ova.nn.formulations import Formulation
from ova.predictions import Predictions, merge, read, write
from ova.training.classifier import Classifier

BATCH = 512  # fixed, so that a prediction never depends on the recipe's batch size


@dataclass(frozen=True)
class Speaker:
    """A trained network and all that is needed to make it speak."""

    fabric: Fabric
    net: Classifier
    task: Task
    form: Formulation


def rows_of(fabric: Fabric, examples: Examples, limit: int) -> list[Tensor]:
    """This process's rows among the first `limit` (0: all), batch by batch; together each row once."""
    batches = (rows[rows < limit] if limit else rows for rows in plan(examples, BATCH, None))
    mine = (rows[fabric.global_rank :: fabric.world_size] for rows in batches)
    return [rows for rows in mine if len(rows)]


@torch.inference_mode()
def predict(
    speaker: Speaker, examples: Examples, limit: int = 0, matrix: bool = False
) -> Predictions:
    """This process's share of the predictions, with row numbers as ids; `matrix` keeps all p."""
    fabric, form, parts = speaker.fabric, speaker.form, []
    mine = rows_of(fabric, examples, limit)
    for rows, (x, y) in zip(mine, examples.batches(mine), strict=True):
        z = speaker.net(speaker.task.prepare(x.to(fabric.device))).float()
        said = Predictions.from_logits(
            *(t.cpu().numpy() for t in (z, form.log_probs(z), y)),
            id=rows.numpy(),
            normalised=form.normalised,
            keep_probs=matrix,
        )
        parts.append(said)
    return merge(parts)


def predict_to(path: Path, speaker: Speaker, examples: Examples, limit: int, matrix: bool) -> None:
    """Write the predictions of all processes as one file, whole or not at all."""
    part, fabric = predict(speaker, examples, limit, matrix), speaker.fabric
    if fabric.world_size == 1:
        write(path, part)
        return
    pieces = [path.with_name(f".{path.name}.{rank}.part") for rank in range(fabric.world_size)]
    write(pieces[fabric.global_rank], part)
    fabric.barrier()
    if fabric.global_rank == 0:
        write(path, merge([read(piece) for piece in pieces]))
        for piece in pieces:
            piece.unlink()
    fabric.barrier()
