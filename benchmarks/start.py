"""What a start is worth: held-out accuracy after 1 and after 8 epochs, from several first values.

An MLP of width 128, Adam at 1e-3, batches of 64, one seed. Data: scikit-learn's digits, and 150
Gaussian classes in 32 dimensions with 32 training examples each.
"""

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from ova.nn.formulations import FORMULATIONS

EPOCHS = 8
CASES = [
    *((name, False) for name in ("softmax", "dm", "ova-zero", "ova", "ova-dm-zero", "ova-dm")),
    ("ova-dm", True),
    ("ova-ball", False),
    ("ova-ball", True),
]
Data = tuple[Tensor, Tensor, Tensor, Tensor]


def digits() -> Data:
    x, y = (torch.tensor(a) for a in load_digits(return_X_y=True))
    rows = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
    x, y = x[rows].float() / 16, y[rows]
    return x[:1200], y[:1200], x[1200:], y[1200:]


def blobs(classes: int = 150, size: int = 32) -> Data:
    draw = torch.Generator().manual_seed(0)
    centres = torch.randn(classes, size, generator=draw)
    y = torch.arange(classes).repeat(64)
    x = centres[y] + 0.7 * torch.randn(len(y), size, generator=draw)
    half = len(y) // 2
    return x[:half], y[:half], x[half:], y[half:]


def accuracies(name: str, targets: bool, data: Data) -> list[float]:
    """Held-out accuracy after each epoch; with `targets` the head starts from what it knows of classes."""
    torch.manual_seed(0)
    x, y, held_x, held_y = data
    form, classes = FORMULATIONS[name], int(y.max()) + 1
    body = nn.Sequential(nn.Linear(x.shape[1], 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU())
    head = form.head(128, classes)
    with torch.no_grad():
        head.start(body(x[:1024]), y[:1024] if targets else None)
    rule = torch.optim.Adam([*body.parameters(), *head.parameters()], 1e-3)
    found = []
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(y)).split(64):
            rule.zero_grad()
            form.loss(head(body(x[rows])), y[rows]).mean().backward()
            rule.step()
        with torch.no_grad():
            found.append(float((head(body(held_x)).argmax(1) == held_y).float().mean()))
    return found


def main() -> None:
    torch.set_num_threads(1)
    print("| | digits, epoch 1 | digits, epoch 8 | blobs, epoch 1 | blobs, epoch 8 |")
    print("|---|---|---|---|---|")
    for name, targets in CASES:
        cells = [
            a
            for data in (digits(), blobs())
            for a in accuracies(name, targets, data)[:: EPOCHS - 1]
        ]
        label = f"`{name}`" + (", knowing the targets" if targets else "")
        print(f"| {label} | " + " | ".join(f"{a:.3f}" for a in cells) + " |")


if __name__ == "__main__":
    main()
