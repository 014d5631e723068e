"""The scores of a run: fitted once on training rows as the trained network sees them, and kept."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ova.data.task import Examples
from ova.errors import BadInput
from ova.nn.heads import LastLayer
from ova.predictions.columns import Array
from ova.scores import SCORES, AffineHead, FittedScores, Outputs, fit, load, save
from ova.scores.keeping import FACTS
from ova.scores.moments import AFFINE
from ova.training.predict import BATCH, Predictor
from ova.training.run_folder import SCORED

ROWS = 50_000  # training rows of a fit at most
CELLS = 1 << 26  # and numbers in their features: a quarter of a gibibyte
HELD = 5_000  # validation rows at most, by which joints of scores are scaled


def scores_of_run(predictor: Predictor, seed: int, folder: Path) -> FittedScores:
    """The scores in a run's folder, fitted by the first process if there are none yet.

    Every process reads them from the files, so a run that is taken up again has the same.
    """
    kept = folder / SCORED
    if predictor.fabric.global_rank == 0 and not (kept / FACTS).exists():
        save(kept, fitted(predictor, seed))
    predictor.fabric.barrier()
    return load(kept)


def fitted(predictor: Predictor, seed: int) -> FittedScores:
    """Every score that applies, fitted on a draw of training rows, without augmentation."""
    task = predictor.task
    sample = next(outputs(predictor, task.train, drawn(task.train, seed, BATCH)), None)
    width, head = 1, None
    if sample is not None and len(sample):
        width, head = sample.f.shape[1], affine(predictor.net.head, sample.f)
    rows = drawn(task.train, seed, min(ROWS, max(1, CELLS // width)))
    held = drawn(task.validation, seed, HELD)
    try:
        return fit(
            outputs(predictor, task.train, rows),
            held=outputs(predictor, task.validation, held),
            head=head,
        )
    except BadInput as error:  # of rows that teach nothing; a trained network is not lost for it
        return FittedScores({}, (), left_out=dict.fromkeys(SCORES, str(error)))


def drawn(examples: Examples, seed: int, count: int) -> Tensor:
    """Rows of a class, at most so many, by the seed; short texts beside short ones."""
    order = torch.randperm(len(examples), generator=torch.Generator().manual_seed(seed))
    rows = order[examples.y[order] >= 0][:count].sort().values
    return rows if examples.lengths is None else rows[examples.lengths[rows].argsort(stable=True)]


@torch.inference_mode()
def outputs(predictor: Predictor, examples: Examples, rows: Tensor) -> Iterator[Outputs]:
    """Features, logits and targets of the rows, in batches; rows that are not all numbers are passed over."""
    form, device = predictor.form, predictor.fabric.device
    plan = [part for part in rows.split(BATCH) if len(part)]
    for x, y in examples.batches(plan):
        f, z = predictor.net.both(predictor.task.prepare(x.to(device)))
        whole = (f.isfinite().all(1) & z.isfinite().all(1)).cpu()
        yield Outputs(
            features=f.float().cpu()[whole].numpy(),
            logits=z.float().cpu()[whole].numpy(),
            log_p=form.log_probs(z).cpu()[whole].numpy(),
            target=y[whole].numpy(),
            normalised=form.normalised,
        )


@torch.inference_mode()
def affine(head: LastLayer, f: Array) -> AffineHead | None:
    """Weight and bias of a last layer that is affine on these features, None of any other.

    An affine function follows from its values at zero and at the unit vectors.
    """
    at = next(head.parameters())
    points = torch.cat([torch.zeros(1, f.shape[1]), torch.eye(f.shape[1])]).to(at.device)
    z, truth = head(points).double(), head(torch.from_numpy(f).to(at.device)).double().cpu().numpy()
    if not z.isfinite().all():
        return None
    found = AffineHead((z[1:] - z[0]).T.cpu().numpy(), z[0].cpu().numpy())
    left = np.square(found(f.astype(np.float64)) - truth).sum()
    return found if left <= AFFINE * np.square(truth - truth.mean(0)).sum() else None
