"""The training loop: epochs with early stopping, a checkpoint after each, progress as it happens."""

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from math import inf, isfinite
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from ova.data.task import Task, plan
from ova.errors import BadInput
from ova.files import write_lines
from ova.nn.formulations import FORMULATIONS, Formulation
from ova.training import checkpoint
from ova.training.classifier import Classifier, build, start
from ova.training.engine import Machine, share
from ova.training.optimisation import learning_rate, optimiser, set_learning_rate
from ova.training.recipe import Recipe
from ova.training.run_folder import BEST, CHECKPOINT, LOG, MODEL, read_log

HELD = 512  # validation examples that one process takes at a time


class Diverged(BadInput):
    """The loss is no number any more: the recipe cannot be trained as it is."""


@dataclass
class Tally:
    """Sums over the examples seen so far; they stay on the device until somebody looks."""

    loss: Tensor
    hits: Tensor
    seen: int = 0

    @classmethod
    def empty(cls, device: torch.device) -> "Tally":
        """Nothing seen yet."""
        loss = torch.zeros((), dtype=torch.float64, device=device)
        return cls(loss, torch.zeros((), dtype=torch.int64, device=device))

    @torch.no_grad()
    def add(self, losses: Tensor, z: Tensor, y: Tensor) -> None:
        """Count one batch."""
        self.loss += losses.sum()
        self.hits += (z.argmax(-1) == y).sum()
        self.seen += len(y)

    def means(self, fabric: Fabric) -> tuple[float, float]:
        """Mean loss and accuracy over all processes."""
        sums = torch.stack([self.loss, self.hits.double(), torch.full_like(self.loss, self.seen)])
        loss, hits, seen = fabric.all_reduce(sums, reduce_op="sum").tolist()  # type: ignore[union-attr]
        return loss / max(seen, 1), hits / max(seen, 1)


@dataclass(frozen=True)
class Progress:
    """Where a training run is; `row` is the line of the log when an epoch has just ended."""

    epoch: int
    step: int
    steps: int
    examples: int
    tally: Tally
    row: dict[str, Any] | None = None


@dataclass
class Run:
    """Everything that changes while a recipe is trained."""

    net: Classifier
    wrapped: nn.Module
    rule: Optimizer
    average: AveragedModel | None
    epoch: int = 0
    step: int = 0
    best: float = inf
    log: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.weights = list(self.net.parameters())  # walking the modules at every step costs more

    @property
    def judged(self) -> nn.Module:
        """The network that validation and prediction use."""
        return self.net if self.average is None else self.average.module


def fit(
    fabric: Fabric,
    task: Task,
    recipe: Recipe,
    folder: Path,
    machine: Machine,
    weights: Path | None = None,
) -> Iterator[Progress]:
    """Train, or go on training, what the recipe says; ends with the weights in the folder, or there."""
    run = prepare(fabric, task, recipe, folder, machine)
    per_epoch = -(-len(task.train) // recipe.batch_size)
    total = min(recipe.steps or inf, recipe.epochs * per_epoch)
    while (
        run.step < total and run.epoch < recipe.epochs and not stops_early(run.log, recipe.patience)
    ):
        yield from epoch(fabric, run, task, recipe, (per_epoch, int(total)), machine)
        store(fabric, run, recipe, folder)
    finish(fabric, run, recipe, folder, weights or folder / MODEL)


def stops_early(log: Sequence[dict[str, Any]], patience: int) -> bool:
    """Whether the last `patience` epochs brought no better validation loss; the log knows it all.

    >>> stops_early([{"validation_loss": loss} for loss in (0.9, 0.5, 0.6, 0.7)], patience=2)
    True
    """
    losses = [row["validation_loss"] for row in log]
    return bool(patience and losses) and len(losses) - 1 - losses.index(min(losses)) >= patience


def prepare(fabric: Fabric, task: Task, recipe: Recipe, folder: Path, machine: Machine) -> Run:
    """The network and its optimiser, new or as the last checkpoint left them."""
    net, path = build(recipe, task), folder / CHECKPOINT
    tensors, facts = checkpoint.load(path) if path.exists() else ({}, {})
    if facts:
        check_recipe(facts, recipe, path)
        checkpoint.restore(net, checkpoint.below("net", tensors), path)
    else:
        start(net, task, recipe)
    if machine.compile:
        net.backbone.compile(dynamic=True)
    wrapped, rule = fabric.setup(net, optimiser(net, recipe))
    average = None
    if recipe.ema:
        average = AveragedModel(
            net, multi_avg_fn=get_ema_multi_avg_fn(recipe.ema), use_buffers=True
        )
    if not facts:
        return Run(net, wrapped, rule, average)
    checkpoint.restore_optimiser(rule, checkpoint.below("optimiser", tensors))
    if "precision" in facts:
        fabric.strategy.precision.load_state_dict(json.loads(facts["precision"]))
    if average is not None:
        checkpoint.restore(average, checkpoint.below("average", tensors), path)
    done = int(facts["epoch"])
    rows = [row for row in read_log(folder) if row["epoch"] <= done]
    return Run(net, wrapped, rule, average, done, int(facts["step"]), float(facts["best"]), rows)


def check_recipe(facts: dict[str, str], recipe: Recipe, path: Path) -> None:
    """Refuse a file that another recipe wrote."""
    if facts.get("recipe") != recipe.digest:
        raise BadInput(
            f"{path} was not written by this recipe (it says {facts.get('recipe')!r}, "
            f"the recipe is {recipe.digest!r}); it was left untouched. Move it away to train again."
        )


def epoch(
    fabric: Fabric, run: Run, task: Task, recipe: Recipe, length: tuple[int, int], machine: Machine
) -> Iterator[Progress]:
    """One pass over the training set and one over the validation set."""
    began, (per_epoch, total) = time.perf_counter(), length
    form, rank, world = FORMULATIONS[recipe.formulation], fabric.global_rank, fabric.world_size
    # All noise of an epoch follows from its number, so a resumed run needs no saved random state.
    torch.manual_seed(seed_of(recipe.seed, run.epoch, rank))
    noise = torch.Generator().manual_seed(seed_of(recipe.seed, run.epoch, rank, 1))
    order = torch.Generator().manual_seed(seed_of(recipe.seed, run.epoch))
    whole = plan(task.train, recipe.batch_size, order)[: total - run.step]
    whole = [rows for rows in whole if len(rows) >= world]  # nobody is left without an example
    mine = [rows[rank::world] for rows in whole]
    tally, examples = Tally.empty(fabric.device), 0
    run.wrapped.train()
    for rows, (x, y) in zip(whole, task.train.batches(mine), strict=True):
        lr = learning_rate(recipe, run.step, per_epoch, total)
        set_learning_rate(run.rule, lr)
        scale = world / len(rows)  # DDP averages over processes; the loss is the global mean
        if recipe.augment == "usual":
            x = task.augment(x, noise)  # noqa: PLW2901
        how = How(form, scale, machine.device_batch, recipe.none_weight)
        backward(fabric, run, task, (x, y), how, tally)
        if recipe.clip:
            fabric.clip_gradients(run.wrapped, run.rule, max_norm=recipe.clip)
        run.rule.step()
        for p in run.weights:
            p.grad = None
        if run.average is not None:
            run.average.update_parameters(run.net)
        run.step += 1
        examples += len(rows)
        yield Progress(run.epoch + 1, run.step, total, examples, tally)
    run.epoch += 1
    loss, accuracy = tally.means(fabric)
    if not isfinite(loss):
        raise Diverged(f"the loss is {loss} in epoch {run.epoch}; a smaller lr or clip=1 may help")
    held_loss, held_accuracy = validate(fabric, run.judged, task, recipe)
    row = {"epoch": run.epoch, "loss": loss, "accuracy": accuracy, "validation_loss": held_loss}
    row |= {"validation_accuracy": held_accuracy, "lr": lr}
    run.log.append({**row, "seconds": round(time.perf_counter() - began, 3)})
    yield Progress(run.epoch, run.step, total, examples, tally, run.log[-1])


@dataclass(frozen=True)
class How:
    """How a batch becomes a gradient."""

    form: Formulation
    scale: float
    piece: int  # examples that a device can hold; 0: all of its share
    none_weight: float


def backward(
    fabric: Fabric, run: Run, task: Task, batch: tuple[Tensor, Tensor], how: How, tally: Tally
) -> None:
    """The gradient of one batch, piece by piece when a device cannot hold its share."""
    x, y = batch
    size = how.piece or max(len(x), 1)
    pieces = [batch] if len(x) <= size else list(zip(x.split(size), y.split(size), strict=True))
    for number, (part, target) in enumerate(pieces, 1):
        early = number < len(pieces)  # processes exchange their gradients once, with the last piece
        with fabric.no_backward_sync(run.wrapped) if early else nullcontext():  # type: ignore[arg-type]
            target = target.to(fabric.device)  # noqa: PLW2901
            z = run.wrapped(task.prepare(part.to(fabric.device)))
            losses = how.form.loss(z, target)
            if how.none_weight != 1:
                losses = torch.where(target < 0, how.none_weight * losses, losses)
            fabric.backward(losses.sum() * how.scale)
        tally.add(losses, z, target)


@torch.no_grad()
def validate(fabric: Fabric, net: nn.Module, task: Task, recipe: Recipe) -> tuple[float, float]:
    """Mean loss and accuracy on the validation set."""
    form, tally = FORMULATIONS[recipe.formulation], Tally.empty(fabric.device)
    net.eval()
    held = plan(task.validation, HELD * fabric.world_size, None)
    for x, y in task.validation.batches(share(fabric, held)):
        z = net(task.prepare(x.to(fabric.device)))
        tally.add(form.loss(z, y.to(fabric.device)), z, y.to(fabric.device))
    return tally.means(fabric)


def store(fabric: Fabric, run: Run, recipe: Recipe, folder: Path) -> None:
    """Save the epoch: the log first, then the best weights, last the checkpoint that makes it count."""
    held = run.log[-1]["validation_loss"]
    better, run.best = held < run.best, min(held, run.best)
    facts = {"recipe": recipe.digest, "epoch": str(run.epoch), "step": str(run.step)}
    if fabric.global_rank == 0:
        write_lines(folder / LOG, run.log, durable=False)  # the checkpoint is what counts
        if better and recipe.keep == "best":
            checkpoint.save(folder / BEST, run.judged.state_dict(), facts)
        tensors = checkpoint.under("net", run.net.state_dict())
        tensors |= checkpoint.under("optimiser", checkpoint.optimiser_tensors(run.rule))
        if run.average is not None:
            tensors |= checkpoint.under("average", run.average.state_dict())
        facts |= {"best": repr(run.best)}
        if scale := fabric.strategy.precision.state_dict():  # what half precision multiplies by
            facts |= {"precision": json.dumps(scale)}
        checkpoint.save(folder / CHECKPOINT, tensors, facts)
    fabric.barrier()


def finish(fabric: Fabric, run: Run, recipe: Recipe, folder: Path, weights: Path) -> None:
    """Leave the weights that predict: their presence ends the training."""
    if fabric.global_rank == 0:
        tensors, facts = run.judged.state_dict(), {"recipe": recipe.digest, "epoch": str(run.epoch)}
        if recipe.keep == "best":
            tensors, facts = checkpoint.load(folder / BEST)
            check_recipe(facts, recipe, folder / BEST)
        checkpoint.save(weights, tensors, facts)
    fabric.barrier()


def trained(task: Task, recipe: Recipe, weights: Path) -> Classifier:
    """The network that a finished training left."""
    tensors, facts = checkpoint.load(weights)
    check_recipe(facts, recipe, weights)
    net = build(recipe, task)
    checkpoint.restore(net, tensors, weights)
    return net.eval()


def seed_of(*parts: int) -> int:
    """One seed for a tuple of numbers, far from the seeds of its neighbours."""
    digest = hashlib.sha256(json.dumps(parts).encode()).digest()
    return int.from_bytes(digest[:7], "big")
