"""Where a swapped last layer trains: optimisers x rates x networks, for every formulation of `convert`.

A drop-in must train wherever cross-entropy does. Networks of a few layers on the 8 x 8 digits of scikit-learn,
each with the last layer of the formulation put in by `convert`; the numbers are test accuracies in
percent; 10 is chance.

    python benchmarks/convert_rates.py              # what users pick from; about 5 minutes on a core
    python benchmarks/convert_rates.py --all        # every formulation
"""

import argparse
from collections.abc import Callable, Iterator

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from ova.nn.convert import convert
from ova.nn.formulations import FORMULATIONS, PAPER

EPOCHS, BATCH, FAIR = (
    8,
    64,
    0.9,
)  # and the share of the accuracy of cross-entropy that is to be reached
SHORT = (*PAPER, "ova-ball", "ova-roof", "ova-horizon", "ova-island")


def cnn() -> nn.Module:
    """Without any norm, as first networks are."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip


def normed() -> nn.Module:
    """The same with batch norm."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(128, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip


def mlp() -> nn.Module:
    """Two wide layers."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
    )  # fmt: skip


NETWORKS: dict[str, Callable[[], nn.Module]] = {"cnn": cnn, "cnn + batch norm": normed, "mlp": mlp}
Rule = Callable[[Iterator[nn.Parameter], float], torch.optim.Optimizer]
RULES: dict[str, tuple[Rule, tuple[float, ...]]] = {
    "sgd": (lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9), (0.1, 0.05, 0.03, 0.01)),
    "adam": (torch.optim.Adam, (1e-2, 1e-3)),
}


def digits() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The last third is for testing."""
    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16, torch.tensor(y)
    return x[:1200], y[:1200], x[1200:], y[1200:]


def accuracy(network: str, rule: str, lr: float, formulation: str | None, seed: int) -> float:
    """Train and test; without a formulation the plain network with cross-entropy."""
    torch.manual_seed(seed)
    net: nn.Module = NETWORKS[network]()
    loss: nn.Module = nn.CrossEntropyLoss()
    if formulation is not None:
        net, loss = convert(net, formulation)
    x, y, tests, answers = digits()
    optimiser = RULES[rule][0](net.parameters(), lr)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(x)).split(BATCH):
            optimiser.zero_grad()
            loss(net(x[rows]), y[rows]).backward()
            optimiser.step()
    with torch.inference_mode():
        return float((net.eval()(tests).argmax(1) == answers).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="every formulation")
    parser.add_argument("--only", nargs="+", help="these formulations")
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    names = args.only or (list(FORMULATIONS) if args.all else SHORT)
    for network in NETWORKS:
        columns = [(rule, lr) for rule, (_, rates) in RULES.items() for lr in rates]
        print(f"\n{network}: worst accuracy of {args.seeds} seeds\n")
        print(f"| | {' | '.join(f'{rule} {lr:g}' for rule, lr in columns)} |")
        print(f"|---|{'---|' * len(columns)}", flush=True)
        for name in (None, *names):
            found = [
                min(accuracy(network, *column, name, seed) for seed in range(args.seeds))
                for column in columns
            ]
            print(
                f"| {name or 'cross-entropy'} | {' | '.join(f'{100 * a:.0f}' for a in found)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
