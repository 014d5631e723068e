"""How far a training step is from what the processor can do, and what brings it nearer.

    python benchmarks/steps.py [--rounds 7] [--compile]

GFLOP/s on one thread of a large matrix product, of a network's convolutions and linear layers alone,
and of its whole step: forward, loss, backward, update. All variants of a network take turns, so that
what else the machine does meets all alike; processor time, the median of the rounds counts.
Multiplications and additions are counted by PyTorch, those of the layers alone and of the step alike.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from ova.models import model
from ova.nn.formulations import FORMULATIONS
from ova.training.classifier import Classifier, assemble
from ova.training.optimisation import optimiser
from ova.training.recipe import Recipe

SIDE = 2048  # of the matrices of the large product
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
Run = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """A network and a batch for it."""

    name: str
    model: str
    shape: tuple[int, ...]
    batch: int
    dropout: float = 0.0


@dataclass(frozen=True)
class Variant:
    """One way to do the same step."""

    arithmetic: str = "float32"
    compiled: bool = False
    channels_last: bool = True

    def __str__(self) -> str:
        marks = ["compiled"] * self.compiled + ["channels first"] * (not self.channels_last)
        return ", ".join([self.arithmetic, *marks])


CASES = (
    Case("ResNet-20, 128 images", "resnet20", (3, 32, 32), 128),
    Case("quick, 128 images", "quick", (3, 32, 32), 128),
    Case("quick, 512 images", "quick", (3, 32, 32), 512),
    Case("quick, 512 images of 24 x 24", "quick", (3, 24, 24), 512),
    Case(
        "BERT-Mini, 64 x 12 tokens", "bert-mini-mean", (5000, 32), 64, 0.1
    ),  # attention has other ways without
)


def inputs(case: Case) -> Tensor:
    """A random batch as the network takes it."""
    torch.manual_seed(0)
    if len(case.shape) == 2:
        return torch.randint(1, case.shape[0], (case.batch, 12))
    return torch.randn(case.batch, *case.shape)


def network(case: Case) -> Classifier:
    """The network with ten affine yes-or-no answers."""
    torch.manual_seed(0)
    backbone = model(case.model)(case.shape, case.dropout)
    return assemble(backbone, "ova", 10, images=len(case.shape) == 3).train()


def step_of(case: Case, variant: Variant) -> Run:
    """A training step."""
    net, x, y = network(case), inputs(case), torch.arange(case.batch) % 10
    recipe = Recipe(
        experiment="steps", data="toy", model="mlp", formulation="ova", epochs=1, lr=1e-3
    )
    if x.ndim == 4 and not variant.channels_last:
        net = net.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    if variant.compiled:
        net.backbone.compile()
    rule, form = optimiser(net, recipe), FORMULATIONS["ova"]

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=variant.arithmetic == "bfloat16"):
            z = net(x)
        form.loss(z, y).mean().backward()
        rule.step()
        rule.zero_grad()

    return step


def layers_of(case: Case, arithmetic: str) -> Run:
    """Forward and backward of every convolution and linear layer of the backbone, one by one."""
    net = network(case)
    seen: list[tuple[nn.Module, Tensor, bool]] = []

    def note(layer: nn.Module, given: tuple[Tensor, ...], _: Tensor) -> None:
        seen.append((layer, given[0].detach().to(TYPES[arithmetic]), given[0].requires_grad))

    for layer in net.backbone.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_hook(note)
    net.backbone(inputs(case))
    for layer, x, needed in seen:
        layer.to(TYPES[arithmetic])
        layer._forward_hooks.clear()
        x.requires_grad_(needed)

    def run() -> None:
        for layer, x, _ in seen:
            layer(x).sum().backward()
            x.grad = None
            layer.zero_grad()

    return run


def product(arithmetic: str) -> Run:
    """The large matrix product."""
    a = torch.randn(SIDE, SIDE).to(TYPES[arithmetic])
    return partial(torch.mm, a, a)


def seconds(run: Run) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


def in_turns(runs: dict[str, Run], rounds: int) -> dict[str, float]:
    """Median seconds of each."""
    for run in runs.values():
        run(), run()
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            taken[name].append(seconds(run))
    return {name: median(times) for name, times in taken.items()}


def work(run: Run) -> float:
    """Multiplications and additions of a run."""
    with FlopCounterMode(display=False) as counter:
        run()
    return float(counter.get_total_flops())


def main() -> None:
    """Print the large product, then every network."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--compile", action="store_true", help="compiled steps too, a minute each")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    for name, each in in_turns({name: product(name) for name in TYPES}, chosen.rounds).items():
        print(f"product of {SIDE} x {SIDE}, {name}: {2 * SIDE**3 / each / 1e9:.0f} GFLOP/s")
    print(f"\n{'':<32}{'':<28}{'GFLOP/s':>8}{'ms / example':>14}{'x':>7}")
    for case in CASES:
        ways = [Variant(arithmetic) for arithmetic in TYPES]
        if len(case.shape) == 3:
            ways.append(Variant(channels_last=False))
        if chosen.compile:
            ways += [Variant(arithmetic, compiled=True) for arithmetic in TYPES]
        runs = {f"layers alone, {name}": layers_of(case, name) for name in TYPES}
        runs |= {f"step, {way}": step_of(case, way) for way in ways}
        flop = {name: work(run) for name, run in runs.items() if "compiled" not in name}
        took = in_turns(runs, chosen.rounds)
        for name, each in took.items():
            speed = flop.get(name, flop["step, float32"]) / each / 1e9
            against = took["step, float32"] / each
            row = f"{speed:>8.0f}{1e3 * each / case.batch:>14.2f}{against:>7.2f}"
            print(f"{case.name:<32}{name:<28}{row}", flush=True)


if __name__ == "__main__":
    main()
