"""Run folders made from drawn predictions: every curve and number is computed, none invented."""

import json
from pathlib import Path
from typing import Any

import numpy as np

CHARACTER = {  # quality of answers, over-confidence, confidence outside
    "softmax": (0.91, 0.055, 0.74),
    "dm": (0.90, -0.06, 0.66),
    "ova": (0.912, 0.01, 0.55),
    "ova-dm": (0.905, -0.015, 0.60),
}
TYPES = [
    *("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise", "gaussian_blur"),
    *("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "snow", "frost", "fog"),
    *("brightness", "contrast", "saturate", "spatter", "elastic_transform", "pixelate"),
    "jpeg_compression",
]
GRID = [i / 100 for i in range(100)] + [i / 1000 for i in range(991, 1000)] + [0.9999, 1.0]


def six(values: Any) -> list[Any]:
    return [None if v is None or not np.isfinite(v) else float(f"{v:.6g}") for v in values]


def predictions(rng: np.random.Generator, name: str, n: int, harm: float) -> tuple[Any, Any]:
    """Confidences, and whether each answer is right; `harm` is how far from the training data."""
    quality, excess, _ = CHARACTER[name]
    chance = rng.beta(6 * (quality - 0.35 * harm), 6 * (1 - quality + 0.35 * harm), n)
    right = rng.random(n) < chance
    confidence = np.clip(chance + excess * (1 + 2 * harm) + rng.normal(0, 0.03, n), 0.001, 1.0)
    return confidence, right


def outside(rng: np.random.Generator, name: str, n: int) -> Any:
    return rng.beta(5 * CHARACTER[name][2], 5 * (1 - CHARACTER[name][2]), n)


def reliability(c: Any, right: Any, bins: int = 15) -> dict[str, list[Any]]:
    where = np.minimum((c * bins).astype(int), bins - 1)
    rows = [(b / bins, (b + 1) / bins, c[where == b], right[where == b]) for b in range(bins)]
    mean = [
        (lo, hi, len(x), x.mean() if len(x) else None, r.mean() if len(x) else None)
        for lo, hi, x, r in rows
    ]
    names = ("lower", "upper", "count", "confidence", "accuracy")
    return {k: six(v) for k, v in zip(names, zip(*mean, strict=True), strict=True)}


def ece(curve: dict[str, list[Any]]) -> float:
    n = sum(curve["count"])
    rows = zip(curve["count"], curve["confidence"], curve["accuracy"], strict=True)
    return float(sum(k / n * abs(a - c) for k, c, a in rows if k))


def accuracy_confidence(c: Any, right: Any) -> dict[str, list[Any]]:
    kept = [(c >= t) for t in GRID]
    return {
        "threshold": GRID,
        "kept": [int(k.sum()) for k in kept],
        "accuracy": six(right[k].mean() if k.any() else None for k in kept),
        "answered": six(k.mean() for k in kept),
    }


def ranking(inside: Any, out: Any) -> tuple[dict[str, Any], dict[str, Any], float, float]:
    """ROC and precision-recall with the known positive: answered when the confidence is high."""
    cuts = np.quantile(np.concatenate([inside, out]), np.linspace(1, 0, 300))
    tpr = np.array([0.0] + [(inside >= t).mean() for t in cuts])
    fpr = np.array([0.0] + [(out >= t).mean() for t in cuts])
    hits, false = tpr * len(inside), fpr * len(out)
    precision = np.where(hits + false > 0, hits / np.maximum(hits + false, 1), 1.0)
    auroc = float(((tpr[1:] + tpr[:-1]) / 2 * np.diff(fpr)).sum())
    order = np.argsort(np.concatenate([out, inside]), kind="stable")
    is_out = (order < len(out)).astype(float)
    found = np.cumsum(is_out) / np.arange(1, len(order) + 1)
    aupr = float((found * is_out).sum() / len(out))
    roc = {"fpr": six(fpr), "tpr": six(tpr)}
    return roc, {"recall": six(tpr), "precision": six(precision)}, auroc, aupr


def aurc(inside: Any, right: Any, out: Any) -> float:
    """The mean risk of the k surest of both; outside answers are wrong."""
    wrong = np.concatenate([~right, np.ones(len(out), bool)])
    order = np.argsort(-np.concatenate([inside, out]), kind="stable")
    return float((np.cumsum(wrong[order]) / np.arange(1, len(order) + 1)).mean())


def one_run(
    name: str, seed: int, *, n: int, shift: bool, ood: tuple[str, ...], scored: bool = False
) -> tuple[list, list]:
    """Measurements and curves of one run."""
    rng = np.random.default_rng([seed, sum(map(ord, name))])
    rows: list[dict[str, Any]] = []
    curves: list[dict[str, Any]] = []

    def say(dataset: str, metric: str, value: float, **more: Any) -> None:
        rows.append(
            {"dataset": dataset, "metric": metric, "value": float(f"{value:.6g}"), "n": n, **more}
        )

    def draw(dataset: str, curve: str, columns: dict[str, Any], **more: Any) -> None:
        curves.append({"dataset": dataset, "curve": curve, "columns": columns, **more})

    c, right = predictions(rng, name, n, 0.0)
    say("test", "accuracy", right.mean())
    curve = reliability(c, right)
    say("test", "ece", ece(curve), bins=15, rule="equal-width")
    draw("test", "reliability", curve, bins=15, rule="equal-width")
    draw("test", "accuracy_confidence", accuracy_confidence(c, right))
    rank = np.argsort(-c)
    risk = np.cumsum(~right[rank]) / np.arange(1, n + 1)
    at = np.unique(np.linspace(0, n - 1, 400).astype(int))
    draw("test", "risk_coverage", {"coverage": six((at + 1) / n), "risk": six(risk[at])})
    for each in ood:
        out = outside(rng, name, n)
        roc, pr, auroc, aupr = ranking(c, out)
        say(f"ood/{each}", "auroc", auroc, score="max_p")
        say(f"ood/{each}", "aupr_outside", aupr, score="max_p")
        say(f"test+ood/{each}", "aurc", aurc(c, right, out), score="max_p")
        if scored:  # a second score, which sees the outside better and right answers no better
            free, far = c + 0.1, out - 0.1
            roc2, pr2, auroc2, aupr2 = ranking(free, far)
            say(f"ood/{each}", "auroc", auroc2, score="energy")
            say(f"ood/{each}", "aupr_outside", aupr2, score="energy")
            say(f"test+ood/{each}", "aurc", aurc(free, right, far), score="energy")
            draw(f"ood/{each}", "roc", roc2, score="energy")
            draw(f"ood/{each}", "precision_recall", pr2, score="energy")
        draw(f"ood/{each}", "roc", roc, score="max_p")
        draw(f"ood/{each}", "precision_recall", pr, score="max_p")
        both, good = np.concatenate([c, out]), np.concatenate([right, np.zeros(n, bool)])
        draw(f"test+ood/{each}", "accuracy_confidence", accuracy_confidence(both, good))
        edges = np.linspace(0, 1, 31)
        draw(
            f"test+ood/{each}",
            "histogram",
            {"lower": six(edges[:-1]), "upper": six(edges[1:])}
            | {
                k: np.histogram(v, edges)[0].tolist()
                for k, v in (("right", c[right]), ("wrong", c[~right]), ("outside", out))
            },
        )
    pooled: dict[int, list[Any]] = {}
    for kind in TYPES if shift else ():
        for severity in range(1, 6):
            c, right = predictions(rng, name, 1000, severity / 5 * (0.4 + 0.6 * rng.random()))
            pooled.setdefault(severity, []).append((c, right))
            say(f"shift/{kind}/{severity}", "accuracy", right.mean())
            for how, claimed in (("none", c), ("top", (c + right.mean()) / 2)):
                error, more = ece(reliability(claimed, right)), {"calibration": how}
                say(f"shift/{kind}/{severity}", "ece", error, bins=15, rule="equal-width", **more)
    for severity, parts in pooled.items():
        claimed, right = (np.concatenate(part) for part in zip(*parts, strict=True))
        points = reliability(claimed, right)
        draw(f"shift/*/{severity}", "reliability", points, bins=15, rule="equal-width")
    return rows, curves


def toy_curves(name: str, seed: int) -> list[dict[str, Any]]:
    """A landscape of ten classes on a circle, and its embedding."""
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * np.arange(10) / 10
    centres = 20 * np.stack([np.cos(angle), np.sin(angle)], 1)
    axis = np.linspace(-40, 40, 81)
    x, y = (g.ravel() for g in np.meshgrid(axis, axis))
    d = np.sqrt(((np.stack([x, y], 1)[:, None] - centres) ** 2).sum(-1))
    if name in ("ova-dm", "ova"):
        p = (2 / (1 + np.exp(d / 4))).max(1)
    else:
        e = np.exp(-d + d.min(1, keepdims=True))
        p = (e / e.sum(1, keepdims=True)).max(1)
    label = rng.integers(0, 10, 1000)
    at = centres[label] + rng.normal(0, 1.4, (1000, 2))
    return [
        {
            "dataset": "test",
            "curve": "landscape",
            "columns": {"x": six(x), "y": six(y), "confidence": six(p)},
        },
        {
            "dataset": "test",
            "curve": "embedding",
            "columns": {
                "x": six([*at[:, 0], *centres[:, 0]]),
                "y": six([*at[:, 1], *centres[:, 1]]),
                "label": [*label.tolist(), *range(10)],
                "kind": ["point"] * 1000 + ["centre"] * 10,
            },
        },
    ]


def log_rows(name: str, seed: int, epochs: int = 30) -> list[dict[str, Any]]:
    rng = np.random.default_rng([seed, len(name)])
    rows = []
    for epoch in range(1, epochs + 1):
        loss = 2.3 * np.exp(-epoch / 8) + 0.1 + rng.normal(0, 0.02)
        rows.append(
            {
                "epoch": epoch,
                "loss": round(loss, 4),
                "accuracy": round(0.95 - 0.8 * np.exp(-epoch / 6), 4),
                "validation_loss": round(loss * 1.15 + 0.05, 4),
                "validation_accuracy": round(0.91 - 0.78 * np.exp(-epoch / 6), 4),
                "lr": 0.1,
                "seconds": 1.5,
            }
        )
    return rows


def write_run(folder: Path, recipe: dict[str, Any], rows: list, curves: list, log: list) -> Path:
    folder.mkdir(parents=True)
    lines = lambda rows: "".join(json.dumps(row) + "\n" for row in rows)  # noqa: E731
    (folder / "recipe.json").write_text(json.dumps(recipe))
    (folder / "measurements.jsonl").write_text(lines(rows))
    (folder / "curves.json").write_text(json.dumps(curves))
    (folder / "log.jsonl").write_text(lines(log))
    manifest = {
        "ova": "0.1.0",
        "versions": {"torch": "2.13.0", "numpy": "2.4.6"},
        "command": f"ova run {recipe['experiment']}",
        "seed": recipe["seed"],
        "data": {"test.parquet": "ab" * 32},
        "started": "2026-01-02T03:04:05Z",
        "seconds": {"training": 12.5, "prediction": 1.5, "measurement": 0.5},
        "host": {"system": "Linux", "machine": "x86_64", "cpus": 2, "device": "cpu"},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def make(
    root: Path,
    experiment: str = "cifar10-desk",
    *,
    names: tuple[str, ...] = tuple(CHARACTER),
    seeds: int = 3,
    shift: bool = True,
    ood: tuple[str, ...] = ("cifar100", "svhn"),
    toy: bool = False,
    n: int = 2000,
    scored: bool = False,
) -> Path:
    """The folder of an experiment, written below `root`."""
    for name in names:
        for seed in range(seeds):
            recipe: dict[str, Any] = {
                "experiment": experiment,
                "data": experiment.partition("-")[0],
                "model": "resnet20",
            }
            recipe |= {
                "formulation": name,
                "seed": seed,
                "epochs": 30,
                "batch_size": 128,
                "lr": 0.1,
            }
            rows, curves = one_run(name, seed, n=n, shift=shift, ood=ood, scored=scored)
            curves += toy_curves(name, seed) if toy else []
            folder = root / experiment / f"{name}-s{seed}"
            write_run(folder, recipe, rows, curves, log_rows(name, seed))
            if scored:
                told = json.loads((folder / "manifest.json").read_text())
                told["score"] = {"chosen": "energy" if seed else "max_p", "why": "", "areas": {}}
                (folder / "manifest.json").write_text(json.dumps(told))
    history = root / f"{experiment}-tune"
    history.mkdir()
    trials = [
        {"experiment": experiment, "formulation": name, "trial": i, "lr": 0.1 * i}
        | ({"state": "failed", "value": None} if i == 3 else {"state": "complete", "value": 1 / i})
        for name in names
        for i in range(1, 9)
    ]
    (history / "history.jsonl").write_text("".join(json.dumps(row) + "\n" for row in trials))
    return root / experiment


if __name__ == "__main__":
    import sys

    make(Path(sys.argv[1]))
    make(Path(sys.argv[1]), "toy", toy=True, shift=False, ood=("ring",))
