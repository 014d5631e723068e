"""The training loop: epochs with early stopping, a checkpoint after each, progress as it happens."""

import json
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, inf, isfinite
from pathlib import Path
from shutil import rmtree
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from ova.data.task import Task, plan
from ova.errors import BadInput
from ova.files import write_lines
from ova.nn.formulations import FORMULATIONS
from ova.training import checkpoint, full_batch
from ova.training.augment import changes
from ova.training.balance import Held, class_weights, decide
from ova.training.classifier import Classifier, build, start, together
from ova.training.drawing import seed_of
from ova.training.engine import Machine, share
from ova.training.optimisation import learning_rate, optimiser, set_learning_rate
from ova.training.recipe import Recipe
from ova.training.run_folder import BALANCE, BEST, CHECKPOINT, LOG, MEMBER, MODEL, read_log
from ova.training.together import members_of

HELD = 512  # validation examples that one process takes at a time


class Diverged(BadInput):
    """The loss is no number any more: the recipe cannot be trained as it is."""


class Tally:
    """Sums over the examples seen so far; they stay on the device until somebody looks."""

    def __init__(self, device: torch.device) -> None:
        self.loss = torch.zeros((), dtype=torch.float64, device=device)
        self.hits = torch.zeros((), dtype=torch.int64, device=device)
        self.seen = 0

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


def fit(
    fabric: Fabric,
    task: Task,
    recipe: Recipe,
    folder: Path,
    machine: Machine,
    weights: Path | None = None,
) -> Iterator[Progress]:
    """Train, or go on training, what the recipe says; ends with the weights in the folder, or there."""
    if recipe.members > 1:
        yield from fit_members(fabric, task, recipe, folder, machine, weights or folder / MODEL)
        return
    if recipe.balance == "auto":
        yield from fit_both(fabric, task, recipe, folder, machine, weights or folder / MODEL)
        return
    if recipe.optimiser == "lbfgs":
        yield from fit_head(fabric, task, recipe, folder, weights or folder / MODEL)
        return
    run = Training(fabric, task, recipe, folder, machine)
    while (
        run.step < run.steps
        and run.epoch < recipe.epochs
        and not stops_early(run.log, recipe.patience)
        and not run.over()
    ):
        yield from run.train_epoch()
        if run.cut:
            break
        run.store()
    run.finish(weights or folder / MODEL)


def fit_members(
    fabric: Fabric, task: Task, recipe: Recipe, folder: Path, machine: Machine, weights: Path
) -> Iterator[Progress]:
    """Train every member in a folder of its own, then put their weights into one file."""
    found = {folder / MEMBER / str(k): each for k, each in enumerate(members_of(recipe))}
    machine = for_each(machine, len(found))
    for home, each in found.items():
        home.mkdir(parents=True, exist_ok=True)
        if not (home / MODEL).exists():
            yield from fit(fabric, task, each, home, machine)
    if fabric.global_rank == 0:
        nets = [trained(task, each, home / MODEL) for home, each in found.items()]
        whole = together(nets, recipe.formulation)
        checkpoint.save(weights, whole.state_dict(), {"recipe": recipe.digest})
        for home in found:  # of no more use, but for the log
            for name in (CHECKPOINT, BEST, MODEL):
                (home / name).unlink(missing_ok=True)
    fabric.barrier()


def fit_head(
    fabric: Fabric, task: Task, recipe: Recipe, folder: Path, weights: Path
) -> Iterator[Progress]:
    """Fit a head on all rows at once. That takes seconds, so what was cut short begins anew."""
    log: list[dict[str, Any]] = []
    for net, row in full_batch.fit(task, recipe, fabric):
        log.append({"epoch": len(log) + 1, **row})
        tensors = net.state_dict()  # the last are those to keep
        tally, n = Tally(fabric.device), len(task.train)
        tally.loss += row["loss"] * n
        tally.hits += round(row["accuracy"] * n)
        tally.seen = n
        yield Progress(len(log), len(log), len(full_batch.WEAKER) + 1, n, tally, log[-1])
    if fabric.global_rank == 0:
        write_lines(folder / LOG, log)
        facts = {"recipe": recipe.digest, "epoch": str(len(log))}
        checkpoint.save(weights, tensors, facts)
    fabric.barrier()


def fit_both(
    fabric: Fabric, task: Task, recipe: Recipe, folder: Path, machine: Machine, weights: Path
) -> Iterator[Progress]:
    """Train without and with class weights, each in a folder of its own, and keep what helps."""
    found = {way: replace(recipe, balance=way) for way in ("off", "on")}
    homes, machine = {way: folder / BALANCE / way for way in found}, for_each(machine, len(found))
    for way, each in found.items():
        homes[way].mkdir(parents=True, exist_ok=True)
        if not (homes[way] / MODEL).exists():
            yield from fit(fabric, task, each, homes[way], machine)
    if fabric.global_rank == 0:
        nets = {way: trained(task, each, homes[way] / MODEL) for way, each in found.items()}
        kept = decide(folder, {way: partial(held, task, net) for way, net in nets.items()})
        write_lines(folder / LOG, read_log(homes[kept]))
        checkpoint.save(weights, nets[kept].state_dict(), {"recipe": recipe.digest})
        rmtree(folder / BALANCE)
    fabric.barrier()


def for_each(machine: Machine, trainings: int) -> Machine:
    """The machine with the time that each of several trainings has."""
    return replace(machine, minutes=machine.minutes / trainings) if machine.minutes else machine


@torch.no_grad()
def held(task: Task, net: Classifier) -> Held:
    """What a network reaches on the validation rows."""
    rows = plan(task.validation, HELD, None)
    said = [net(task.prepare(x)).argmax(-1) for x, _ in task.validation.batches(rows)]
    return Held.of(torch.cat(said), task.validation.y[torch.cat(rows)])


def stops_early(log: Sequence[dict[str, Any]], patience: int) -> bool:
    """Whether the last `patience` epochs brought no better validation loss; the log knows it all.

    >>> stops_early([{"validation_loss": loss} for loss in (0.9, 0.5, 0.6, 0.7)], patience=2)
    True
    """
    losses = [row["validation_loss"] for row in log]
    return bool(patience and losses) and len(losses) - 1 - losses.index(min(losses)) >= patience


class Training:
    """A training under way: the network, its optimiser and how far they are.

    It begins anew, or where the last checkpoint in the folder left off.
    """

    def __init__(
        self, fabric: Fabric, task: Task, recipe: Recipe, folder: Path, machine: Machine
    ) -> None:
        self.fabric, self.task, self.recipe, self.folder = fabric, task, recipe, folder
        self.form, self.device_batch = FORMULATIONS[recipe.formulation], machine.device_batch
        self.changed = changes(task, recipe)
        self.counts = None
        if recipe.balance == "on":
            weights = class_weights(task.train.y, len(task.classes))
            self.counts = fabric.to_device(weights)
        self.per_epoch = ceil(len(task.train) / recipe.batch_size)
        longest = recipe.epochs * self.per_epoch
        self.steps = min(recipe.steps or longest, longest)
        self.epoch, self.step, self.best = 0, 0, inf
        self.limit, self.asked = 60 * (machine.minutes or inf), machine.asked
        self.began, self.cut = time.perf_counter(), False  # the epoch; whether it was cut short
        self.log: list[dict[str, Any]] = []
        self.net, path = build(recipe, task), folder / CHECKPOINT
        tensors, facts = checkpoint.load(path) if path.exists() else ({}, {})
        if facts:
            check_recipe(facts, recipe, path)
            checkpoint.restore(self.net, checkpoint.below("net", tensors), path)
        else:
            start(self.net, task, recipe)
        if machine.compile:
            self.net.backbone.compile(dynamic=True)
        self.wrapped, self.rule = fabric.setup(self.net, optimiser(self.net, recipe))
        self.weights = list(self.net.parameters())  # walking the modules at every step costs more
        self.average = None
        if recipe.ema:
            rule = get_ema_multi_avg_fn(recipe.ema)
            self.average = AveragedModel(self.net, multi_avg_fn=rule, use_buffers=True)
        if not facts:
            return
        checkpoint.restore_optimiser(self.rule, checkpoint.below("optimiser", tensors))
        if "precision" in facts:
            fabric.strategy.precision.load_state_dict(json.loads(facts["precision"]))
        if self.average is not None:
            checkpoint.restore(self.average, checkpoint.below("average", tensors), path)
        self.epoch, self.step = int(facts["epoch"]), int(facts["step"])
        self.best = float(facts["best"])
        self.log = [row for row in read_log(folder) if row["epoch"] <= self.epoch]

    @property
    def judged(self) -> nn.Module:
        """The network that validation and prediction use."""
        return self.net if self.average is None else self.average.module

    def over(self) -> bool:
        """Whether the time is up or somebody asks for the end, once there is an epoch to end with."""
        spent = sum(row.get("seconds", 0) for row in self.log) + time.perf_counter() - self.began
        return bool(self.log) and (spent > self.limit or self.asked())

    def train_epoch(self) -> Generator[Progress, None, None]:
        """One pass over the training set and one over the validation set, unless its time is up."""
        began = self.began = time.perf_counter()
        rank, world = self.fabric.global_rank, self.fabric.world_size
        task, recipe = self.task, self.recipe
        # All noise of an epoch follows from its number, so a resumed run needs no saved random state.
        torch.manual_seed(seed_of(recipe.seed, self.epoch, rank))
        noise = torch.Generator().manual_seed(seed_of(recipe.seed, self.epoch, rank, 1))
        order = torch.Generator().manual_seed(seed_of(recipe.seed, self.epoch))
        whole = plan(task.train, recipe.batch_size, order)[: self.steps - self.step]
        whole = [rows for rows in whole if len(rows) >= world]  # nobody is left without an example
        mine = share(self.fabric, whole)
        tally, examples = Tally(self.fabric.device), 0
        self.wrapped.train()
        batches = task.train.batches(mine)
        for rows, own, (x, y) in zip(whole, mine, batches, strict=True):
            # An epoch that is cut counts for nothing, so only where an earlier one was kept.
            if recipe.keep == "best" and world == 1 and self.over():
                self.cut = True
                return
            lr = learning_rate(recipe, self.step, self.per_epoch, self.steps)
            set_learning_rate(self.rule, lr)
            x = self.changed(x, own, self.epoch, noise)  # noqa: PLW2901
            # DDP averages over processes; the loss is the global mean.
            self.backward(x, y, world / len(rows), tally)
            self.update()
            examples += len(rows)
            yield Progress(self.epoch + 1, self.step, self.steps, examples, tally)
        self.epoch += 1
        loss, accuracy = tally.means(self.fabric)
        if not isfinite(loss):
            where = f"in epoch {self.epoch}"
            raise Diverged(f"the loss is {loss} {where}; a smaller lr or clip=1 may help")
        held_loss, held_accuracy = self.validate()
        row = {"epoch": self.epoch, "loss": loss, "accuracy": accuracy}
        row |= {"validation_loss": held_loss, "validation_accuracy": held_accuracy, "lr": lr}
        self.log.append({**row, "seconds": round(time.perf_counter() - began, 3)})
        self.began = time.perf_counter()
        yield Progress(self.epoch, self.step, self.steps, examples, tally, self.log[-1])

    def backward(self, x: Tensor, y: Tensor, scale: float, tally: Tally) -> None:
        """The gradient of one batch, piece by piece when a device cannot hold its share."""
        fabric, none_weight = self.fabric, self.recipe.none_weight
        size = self.device_batch or max(len(x), 1)
        pieces = list(zip(x.split(size), y.split(size), strict=True))
        for number, (part, target) in enumerate(pieces, 1):
            early = number < len(pieces)  # processes exchange gradients once, with the last piece
            with fabric.no_backward_sync(self.wrapped, enabled=early):
                target = target.to(fabric.device)  # noqa: PLW2901
                z = self.wrapped(self.task.prepare(part.to(fabric.device)))
                losses = self.losses(z, target)
                if none_weight != 1:
                    losses = torch.where(target < 0, none_weight * losses, losses)
                fabric.backward(losses.sum() * scale)
            tally.add(losses, z, target)

    def losses(self, z: Tensor, target: Tensor) -> Tensor:
        """The loss of each row, counted by its class where rare classes count more."""
        losses = self.form.loss(z, target)
        if self.counts is None:
            return losses
        return losses * torch.where(target < 0, 1, self.counts[target.clamp(min=0)])

    def clip(self) -> None:
        """No gradient longer than the recipe says."""
        try:
            self.fabric.clip_gradients(self.wrapped, self.rule, max_norm=self.recipe.clip)
        except RuntimeError as error:
            if "non-finite" not in str(error):
                raise
            where = f"in epoch {self.epoch + 1}"
            raise Diverged(f"the gradient is not finite {where}; a smaller lr may help") from error

    def update(self) -> None:
        """One step of the optimiser."""
        if self.recipe.clip:
            self.clip()
        self.rule.step()
        for p in self.weights:
            p.grad = None
        if self.average is not None:
            self.average.update_parameters(self.net)
        self.step += 1

    @torch.no_grad()
    def validate(self) -> tuple[float, float]:
        """Mean loss and accuracy on the validation set."""
        fabric, net, tally = self.fabric, self.judged.eval(), Tally(self.fabric.device)
        held = plan(self.task.validation, HELD * fabric.world_size, None)
        for x, y in self.task.validation.batches(share(fabric, held)):
            z, target = net(self.task.prepare(x.to(fabric.device))), y.to(fabric.device)
            tally.add(self.losses(z, target), z, target)
        return tally.means(fabric)

    def store(self) -> None:
        """Save the epoch: the log first, then the best weights, last the checkpoint that makes it count."""
        held = self.log[-1]["validation_loss"]
        better, self.best = held < self.best, min(held, self.best)
        if self.fabric.global_rank == 0:
            facts = {"recipe": self.recipe.digest, "epoch": str(self.epoch), "step": str(self.step)}
            write_lines(self.folder / LOG, self.log, durable=False)  # the checkpoint is what counts
            if better and self.recipe.keep == "best":
                checkpoint.save(self.folder / BEST, self.judged.state_dict(), facts)
            tensors = checkpoint.under("net", self.net.state_dict())
            tensors |= checkpoint.under("optimiser", checkpoint.optimiser_tensors(self.rule))
            if self.average is not None:
                tensors |= checkpoint.under("average", self.average.state_dict())
            facts |= {"best": repr(self.best)}
            if scale := self.fabric.strategy.precision.state_dict():  # of half precision
                facts |= {"precision": json.dumps(scale)}
            checkpoint.save(self.folder / CHECKPOINT, tensors, facts)
        self.fabric.barrier()

    def finish(self, weights: Path) -> None:
        """Leave the weights that predict: their presence ends the training."""
        if self.fabric.global_rank == 0:
            facts = {"recipe": self.recipe.digest, "epoch": str(self.epoch)}
            tensors = self.judged.state_dict()
            if self.recipe.keep == "best":
                tensors, facts = checkpoint.load(self.folder / BEST)
                check_recipe(facts, self.recipe, self.folder / BEST)
            checkpoint.save(weights, tensors, facts)
        self.fabric.barrier()


def trained(task: Task, recipe: Recipe, weights: Path) -> Classifier:
    """The network that a finished training left."""
    tensors, facts = checkpoint.load(weights)
    check_recipe(facts, recipe, weights)
    net = build(recipe, task)
    checkpoint.restore(net, tensors, weights)
    return net.eval()


def check_recipe(facts: dict[str, str], recipe: Recipe, path: Path) -> None:
    """Refuse a file that another recipe wrote."""
    if facts.get("recipe") != recipe.digest:
        raise BadInput(
            f"{path} was not written by this recipe (it says {facts.get('recipe')!r}, "
            f"the recipe is {recipe.digest!r}); it was left untouched. Move it away to train again."
        )
