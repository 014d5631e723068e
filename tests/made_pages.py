"""What the page of a model shows, of a model that nobody trained."""

import numpy as np

from ova.metrics.evaluate import evaluate
from ova.posthoc.threshold import Promise, Threshold
from ova.predictions import Predictions
from ova.report.inspection import OWN, Confusion, Example, Inspection, Sweep
from ova.report.model import ModelFacts
from ova.training.run_folder import Run

PIXEL = bytes.fromhex("89504e470d0a1a0a")


def confusions(classes: int, n: int, seed: int = 0) -> Confusion:
    """Rows of which a third is taken for another class, most of them for the next but one."""
    draw = np.random.default_rng(seed)
    y = draw.integers(0, classes, n)
    kind = draw.random(n)
    k = np.where(
        kind < 0.7, y, np.where(kind < 0.9, (y + 2) % classes, draw.integers(0, classes, n))
    )
    return Confusion(target=y, guess=k, answered=draw.random(n) < 0.5)


def model_facts() -> ModelFacts:
    threshold = Threshold(0.8125, Promise(accuracy=0.95), n=400, answered=0.8, accuracy=0.97)
    calibration = {"method": "top", "n": 400, "a": 1.2, "b": -0.3}
    return ModelFacts(threshold=threshold, calibrated=0.75, calibration=calibration, ece=0.04)


def example(**more: object) -> Example:
    said = {"place": "row 7 of mails.csv", "label": "cat", "guess": "dog", "confidence": 0.91}
    return Example(**{**said, "text": "felix", "answered": True, **more})  # type: ignore[arg-type]


def made_page(classes: int = 3, n: int = 300, scale: str = "confidence") -> Inspection:
    """What a page shows of a model that nobody trained."""
    names = [f"class {k}" for k in range(classes)]
    found = confusions(classes, n)
    p = np.full((n, classes), 0.1)
    p[np.arange(n), found.guess] = np.random.default_rng(1).uniform(0.3, 1, n)
    rows, curves = evaluate({"test": Predictions.from_probs(p, found.target, normalised=False)})
    log = [
        {"epoch": e, "loss": 1 / e, "accuracy": 0.5, "validation_loss": 1 / e, "validation_accuracy": 0.5}
        for e in (1, 2, 3)
    ]  # fmt: skip
    grid = [-2.0, -0.5, 1.25, 7.5] if scale != "confidence" else [0.0, 0.25, 0.75, 0.9]
    bins = [
        {"scale": scale, "set": name, "lower": a, "upper": b, "count": 3, "share": 0.5}
        for name in ("right", "wrong", "moon")
        for a, b in ((grid[0], grid[1]), (grid[1], grid[3]))
    ]
    sweep = Sweep(
        scale=scale,
        grid=grid,
        start=2,
        answered=[1.0, 0.9, 0.5, 0.0],
        accuracy=[0.7, 0.8, 0.95, None],
        through={"ood/moon": [1.0, 0.4, 0.125, 0.0]},
        bins=bins,
    )
    return Inspection(
        title="mails",
        about="A classifier.",
        run=Run("mails", "run", OWN, 0, {"lr": 0.1}, rows, curves, log, manifest={"seed": 0}),
        classes=names,
        sweep=sweep,
        confusion=found,
        mistakes=[example()],
        doubtful=[example(guess="cat", answered=False, confidence=0.2)],
        outside={"ood/moon": [example(label="none of the above", known=False, picture=PIXEL)]},
        suspects=[],
        facts={"network": "mlp-256"},
    )
