"""What is shown of a training while it goes on."""

import io

import torch
from rich.console import Console

from ova.training.loop import Progress, Tally
from ova.training.progress import Lines


def test_a_line_has_the_validation_numbers_of_the_last_epoch() -> None:
    file = io.StringIO()
    lines, tally = Lines("run", Console(file=file, width=200)), Tally(torch.device("cpu"))
    row = {"epoch": 1, "validation_loss": 0.25, "validation_accuracy": 0.875}
    for step in (Progress(1, 1, 3, 8, tally), Progress(1, 2, 3, 16, tally, row)):
        lines.see(step)
    lines.said = -1e9  # as if ten seconds had passed
    lines.see(Progress(2, 3, 3, 8, tally))
    first, last = file.getvalue().splitlines()
    assert "validation" not in first
    assert last.endswith("validation loss 0.2500 accuracy 0.8750")
