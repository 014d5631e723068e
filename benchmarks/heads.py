"""Cost of every formulation beside `nn.Linear` + `F.cross_entropy`, forward and backward.

    python benchmarks/heads.py [--rounds 15] [--only ova,dm,ova-dm]

The variants take turns, so that what else the machine does meets all of them; the ratio is that of
the medians. Memory is the peak of a step above what was there before it (parameters, features), by
the allocations PyTorch records.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from ova.nn.formulations import FORMULATIONS

SHAPES = [(256, 2048, 1000), (256, 2048, 20000)]
SHOWN = "softmax,dm,ova,ova-dm,ova-ball,ova-roof,ova-horizon,ova-island,logitnorm,t2fnorm,isomax+"
Step = Callable[[], None]


def baseline(f: Tensor, y: Tensor, classes: int) -> Step:
    head = nn.Linear(f.shape[1], classes)
    return lambda: one_step(head, lambda z: F.cross_entropy(z, y), f)


def formulated(name: str, f: Tensor, y: Tensor, classes: int) -> Step:
    form = FORMULATIONS[name]
    head = form.head(f.shape[1], classes)
    head.start(f.detach())
    return lambda: one_step(head, lambda z: form.loss(z, y).mean(), f)


def one_step(head: nn.Module, loss: Callable[[Tensor], Tensor], f: Tensor) -> None:
    f.grad = None
    head.zero_grad(set_to_none=True)
    loss(head(f)).backward()


def seconds(step: Step) -> float:
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def peak_bytes(step: Step) -> int:
    """The most that was allocated at one time during a step, from the profiler's records."""
    step()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        step()
    now = lowest = highest = 0
    events = record.profiler.kineto_results.events()
    for event in sorted((e for e in events if e.name() == "[memory]"), key=lambda e: e.start_ns()):
        now += event.nbytes()
        lowest = min(lowest, now)  # the gradients of the step before go first
        highest = max(highest, now - lowest)
    return highest


def measure(shape: tuple[int, int, int], names: list[str], rounds: int) -> None:
    batch, features, classes = shape
    generator = torch.Generator().manual_seed(0)
    f = torch.randn(batch, features, generator=generator).relu().requires_grad_()
    y = torch.randint(classes, (batch,), generator=generator)
    steps = {"linear + cross-entropy": baseline(f, y, classes)}
    steps |= {name: formulated(name, f, y, classes) for name in names}
    for step in steps.values():
        step()
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            taken[name].append(seconds(step))
    memory = {name: peak_bytes(step) for name, step in steps.items()}
    first = next(iter(steps))
    print(f"\nbatch {batch}, D {features}, K {classes}; median of {rounds}")
    print(f"{'':<24}{'ms':>9}{'time x':>9}{'MiB':>9}{'memory x':>10}")
    for name in steps:
        ms, mib = 1e3 * median(taken[name]), memory[name] / 2**20
        time_ratio = median(taken[name]) / median(taken[first])
        print(
            f"{name:<24}{ms:>9.1f}{time_ratio:>9.2f}{mib:>9.1f}{memory[name] / memory[first]:>10.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default=SHOWN, help="comma-separated formulations")
    chosen = parser.parse_args()
    torch.set_flush_denormal(True)
    torch.manual_seed(0)
    for shape in SHAPES:
        measure(shape, chosen.only.split(","), chosen.rounds)


if __name__ == "__main__":
    main()
