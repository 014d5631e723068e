"""Steps per second with many classes: head, loss, backward and update on random features.

    python benchmarks/large_k.py [--rounds 7] [--only softmax,ova,ova-dm,ova-ball]

The formulations take turns; "x softmax" is the ratio of the median times. Memory is the peak of a
step above parameters and features, also as a multiple of one B x K matrix of logits: it grows with
that matrix and with nothing else.
"""

import argparse
from statistics import median

import torch

from heads import Step, peak_bytes, seconds  # type: ignore[import-not-found]  # beside this file
from ova.nn.formulations import FORMULATIONS

BATCH, FEATURES = 256, 128
CLASSES = (964, 20_000, 100_000)


def training_step(name: str, classes: int) -> Step:
    """A step of SGD on one random batch."""
    draw = torch.Generator().manual_seed(0)
    f = torch.randn(BATCH, FEATURES, generator=draw).requires_grad_()
    y = torch.randint(classes, (BATCH,), generator=draw)
    form = FORMULATIONS[name]
    head = form.head(FEATURES, classes)
    head.start(f.detach(), y)
    rule = torch.optim.SGD(head.parameters(), lr=1e-3)

    def step() -> None:
        rule.zero_grad()
        f.grad = None
        form.loss(head(f), y).mean().backward()
        rule.step()

    return step


def measure(classes: int, names: list[str], rounds: int) -> None:
    steps = {name: training_step(name, classes) for name in names}
    for step in steps.values():
        step()
    taken: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name, step in steps.items():
            taken[name].append(seconds(step))
    matrix = 4 * BATCH * classes
    print(f"\nK {classes:,}; batch {BATCH}, D {FEATURES}; median of {rounds}")
    print(f"{'':<12}{'steps / s':>10}{'x softmax':>11}{'MiB':>9}{'x logits':>10}")
    for name in names:
        t, peak = median(taken[name]), peak_bytes(steps[name])
        ratio = t / median(taken[names[0]])
        print(f"{name:<12}{1 / t:>10.1f}{ratio:>11.2f}{peak / 2**20:>9.1f}{peak / matrix:>10.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="softmax,ova,ova-dm,ova-ball", help="the first is 1")
    chosen = parser.parse_args()
    torch.set_flush_denormal(True)
    for classes in CLASSES:
        torch.manual_seed(0)
        measure(classes, chosen.only.split(","), chosen.rounds)


if __name__ == "__main__":
    main()
