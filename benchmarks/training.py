"""What `fit` costs beside a bare PyTorch loop, and what channels-last and compilation are worth.

The bare loop has one batch in memory, ready for the network: forward, loss, backward, update. `fit`
also draws the batch from the data set, augments and normalises it, counts loss and hits, sets the
learning rate and yields its progress. Both take turns in one process, the median of the turns counts.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from lightning_fabric import Fabric
from torch import Tensor

from ova.data.augmentation import CropFlip, normalise
from ova.data.task import InMemory, Task
from ova.nn.formulations import FORMULATIONS
from ova.training.classifier import build
from ova.training.engine import Machine
from ova.training.loop import fit
from ova.training.optimisation import optimiser
from ova.training.recipe import Recipe

TURNS, STEPS = 9, 2
MEAN, STD = (0.49, 0.48, 0.45), (0.20, 0.20, 0.20)


@dataclass(frozen=True)
class Case:
    """A network with data of its shape."""

    name: str
    recipe: Recipe
    task: Task


def made(shape: tuple[int, ...], train: InMemory, **more: object) -> Task:
    """A task with hardly any validation: what is timed is training."""
    classes = tuple(map(str, range(150)))
    one = InMemory(train.x[:1], train.y[:1], None if train.lengths is None else train.lengths[:1])
    return Task(classes, shape, train, one, {}, **more)  # type: ignore[arg-type]


def cases() -> list[Case]:
    """The networks of the desk recipes, on images as CIFAR's and on sentences as CLINC's."""
    draw, n = torch.Generator().manual_seed(0), 100_000
    y = torch.randint(10, (n,), generator=draw)
    pixels = torch.randint(256, (n, 3, 32, 32), dtype=torch.uint8, generator=draw)
    images = made(
        (3, 32, 32), InMemory(pixels, y), prepare=normalise(MEAN, STD), augment=CropFlip()
    )
    # One length for all: a bucket would give the loops different work.
    tokens = torch.randint(1, 5000, (n, 12), generator=draw)
    text = made((5000, 32), InMemory(tokens, y, torch.full((n,), 12)), prepare=lambda x: x)
    return [
        Case("ResNet-20, batch 128", recipe("cifar10", "resnet20", 128), images),
        Case("WRN-16-2, batch 128", recipe("cifar100", "wrn-16-2", 128), images),
        Case("BERT-Mini, batch 64", recipe("clinc", "bert-mini-mean", 64), text),
    ]


def recipe(data: str, model: str, batch_size: int) -> Recipe:
    """`ova` with Adam, longer than anybody waits."""
    return Recipe(
        experiment="bench",
        data=data,
        model=model,
        formulation="ova",
        epochs=1000,
        batch_size=batch_size,
        optimiser="adam",
        lr=1e-3,
    )


def first_batch(case: Case) -> tuple[Tensor, Tensor]:
    """A batch, prepared."""
    rows = torch.arange(case.recipe.batch_size)
    ((x, y),) = case.task.train.batches([rows])
    return case.task.prepare(x), y


def bare(case: Case, last: bool = True, compiled: bool = False) -> Iterator[None]:
    """The bare loop; `last`: with the channels last."""
    net = build(case.recipe, case.task).train()
    form, (x, y) = FORMULATIONS[case.recipe.formulation], first_batch(case)
    if x.ndim == 4:
        layout = torch.channels_last if last else torch.contiguous_format
        net, x = net.to(memory_format=layout), x.contiguous(memory_format=layout)  # type: ignore[call-overload]
    if compiled:
        net.backbone.compile()
    rule = optimiser(net, case.recipe)
    while True:
        form.loss(net(x), y).mean().backward()
        rule.step()
        rule.zero_grad()
        yield


def ours(case: Case) -> Iterator[object]:
    """`fit`, step by step."""
    with tempfile.TemporaryDirectory() as folder:
        fabric = Fabric(accelerator="cpu", devices=1)
        yield from fit(fabric, case.task, case.recipe, Path(folder), Machine())


def in_turns(loops: dict[str, Callable[[], Iterator[object]]]) -> dict[str, float]:
    """Median seconds per step of each loop; they take turns, so that a busy machine hits all alike."""
    running = {name: start() for name, start in loops.items()}
    for loop in running.values():
        for _ in range(2):
            next(loop)
    seconds: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(TURNS):
        for name, loop in running.items():
            began = time.process_time() if "--cpu" in sys.argv else time.perf_counter()
            for _ in range(STEPS):
                next(loop)
            now = time.process_time() if "--cpu" in sys.argv else time.perf_counter()
            seconds[name].append((now - began) / STEPS)
    return {name: statistics.median(times) for name, times in seconds.items()}


def main() -> None:
    """Print both comparisons; `--cpu` counts processor time, for machines with other work."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    print(f"{'case':24}{'loop':24}{'ms / step':>12}{'of bare':>10}")
    for case in cases():
        loops: dict[str, Callable[[], Iterator[object]]] = {
            "bare": lambda case=case: bare(case),  # type: ignore[misc]
            "fit": lambda case=case: ours(case),  # type: ignore[misc]
        }
        if len(case.task.shape) == 3:
            loops["bare, channels first"] = lambda case=case: bare(case, last=False)  # type: ignore[misc]
        loops["bare, compiled"] = lambda case=case: bare(case, compiled=True)  # type: ignore[misc]
        times = in_turns(loops)
        for name, seconds in times.items():
            share = times["bare"] / seconds
            print(f"{case.name:24}{name:24}{1000 * seconds:12.1f}{share:10.1%}", flush=True)


if __name__ == "__main__":
    main()
