"""A head alone on features that cannot move: what a frozen encoder leaves each formulation to do.

256 random ReLU features of scikit-learn's digits; 0-7 are the classes, 8 and 9 are none of them.
AdamW at 1e-3, batches of 64, 1,000 steps, means over five seeds. Seconds on one core.
"""

import torch
from sklearn.datasets import load_digits
from torch import Tensor

from ova.metrics.ranking import auroc, rank
from ova.nn.formulations import FORMULATIONS

KNOWN, WIDTH, TRAINED, STEPS, SEEDS = 8, 256, 900, 1000, 5


def trial(name: str, seed: int) -> tuple[float, float]:
    """Held-out accuracy, and AUROC of the largest p against the two unknown digits."""
    torch.manual_seed(seed)
    x, y = (torch.tensor(a) for a in load_digits(return_X_y=True))
    f = (x.float() / 16 @ torch.randn(64, WIDTH) / 8).relu()
    rows = torch.randperm(len(y))
    f, y = f[rows], y[rows]
    inside, outside = (f[y < KNOWN], y[y < KNOWN]), f[y >= KNOWN]
    form = FORMULATIONS[name]
    head = form.head(WIDTH, KNOWN)
    head.start(inside[0][:128], inside[1][:128])
    optimiser = torch.optim.AdamW(head.parameters(), 1e-3)
    for _ in range(STEPS):
        batch = torch.randint(TRAINED, (64,))
        optimiser.zero_grad()
        form.loss(head(inside[0][batch]), inside[1][batch]).mean().backward()
        optimiser.step()

    def probs(f: Tensor) -> Tensor:
        return form.probs(head.eval()(f)).detach()

    held, strange = probs(inside[0][TRAINED:]), probs(outside).amax(1)
    right = (held.argmax(1) == inside[1][TRAINED:]).float().mean()
    return float(right), auroc(rank(held.amax(1).numpy(), strange.numpy()))


def main() -> None:
    torch.set_num_threads(1)
    print("| head alone | accuracy | AUROC |\n|---|---|---|")
    for name in ("softmax", "dm", "ova", "ova-smooth", "ova-dm", "ova-ball"):
        numbers = torch.tensor([trial(name, seed) for seed in range(SEEDS)]).mean(0)
        print(f"| `{name}` | {numbers[0]:.3f} | {numbers[1]:.3f} |", flush=True)


if __name__ == "__main__":
    main()
