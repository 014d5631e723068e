"""A handful of examples per class on a frozen encoder, beside methods that need no held-out rows.

CLINC150 with 3, 5, 10 and 20 sentences of each of the 150 intents, drawn three times; the test sentences
and the 1,000 out-of-scope ones are the same in all. `ova train --hold-out` holds a quarter of the rows back:
for the strength, the score that decides and the promise; `--cross-fit` none, and promises nothing. Logistic regression (of standardised features, strength
.01 of the mean loss) and the cosine to the nearest class mean are fitted on all rows and promise nothing.
AUROC is of out-of-scope against test sentences: ours by the score that decides, of the regression by its
energy and its largest p.
Command: python benchmarks/few.py [FOLDER] [ENCODER], after benchmarks/frozen_clinc.py, which leaves the
features; some minutes of a core. SIZES and DRAWS are at the top.
"""

import csv
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from ova.data.clinc import origin
from ova.data.encoders import encoder_folder
from ova.data.sources import locate
from ova.data.task import Examples, InMemory
from ova.metrics.ranking import auroc, rank
from ova.modelfolder import crossed
from ova.modelfolder.deciding import decided, judged
from ova.modelfolder.evidence import forward_of, head_of, outputs
from ova.modelfolder.frozen import on_features
from ova.modelfolder.promise import lowest
from ova.nn.formulations import FORMULATIONS
from ova.predictions import Predictions
from ova.predictions.sets import VALIDATION
from ova.training import full_batch
from ova.training.classifier import Classifier
from ova.training.engine import Machine, launch
from ova.training.progress import carry_out
from ova.userdata.gather import Gathered, gather
from ova.userdata.request import Request

SIZES, DRAWS, STRENGTH = (3, 5, 10, 20), 3, 1e-2
SETS = ("test", "ood/test")
Found = tuple[str, float, float]  # what, accuracy, AUROC


def write(path: Path, rows: list[tuple[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("sentence", "intent"), *rows])
    return path


def drawn(rows: list[tuple[str, str]], size: int, seed: int) -> list[tuple[str, str]]:
    """So many sentences of each intent."""
    order = np.random.default_rng([size, seed]).permutation(len(rows))
    left: dict[str, int] = {}
    kept = []
    for i in order:
        left[rows[i][1]] = left.get(rows[i][1], size) - 1
        if left[rows[i][1]] >= 0:
            kept.append(rows[i])
    return kept


def ours(quick: Gathered) -> Iterator[Found]:
    """The head that `ova train` fits, by the score that it chooses."""
    *_, (net, _) = full_batch.fit(quick.task, quick.recipe, launch(Machine(accelerator="cpu")))
    forward = forward_of(net.eval(), quick.task.prepare)
    rows = told(net, quick, (*SETS, VALIDATION))
    evidence = decided(forward, head_of(net), quick, rows, "")
    yield found("`ova train --hold-out`, its score", judged(evidence, forward, quick, rows))


def crossfitted(quick: Gathered, run: Path) -> Iterator[Found]:
    """The head that `ova train --cross-fit` fits to all rows, by the score that it chooses."""
    fabric = launch(Machine(accelerator="cpu"))
    judges = carry_out(crossed.judges(quick, fabric), lambda _: None)
    quick = crossed.with_strength(quick, judges)
    *_, (net, _) = full_batch.fit(crossed.to_train(judges, run), quick.recipe, fabric)
    rows = crossed.said(judges) | told(net.eval(), quick, SETS)
    _, by_score = crossed.decided(net, judges, rows, "")
    yield found("`ova train --cross-fit`, its score", by_score)
    c, right = (getattr(by_score[VALIDATION], n) for n in ("confidence", "correct"))
    kept = by_score["test"].confidence > lowest(c.astype(np.float64))
    print(f"    cross-fitted: {right.mean():.3f} right; of the test {kept.mean():.3f} answered",
          file=sys.stderr)  # fmt: skip


def found(what: str, by_score: Mapping[str, Predictions]) -> Found:
    """Accuracy and AUROC of predictions by the score that decides."""
    inside, outside = (by_score[name] for name in SETS)
    return what, float(inside.correct.mean()), auroc(rank(inside.confidence, outside.confidence))


def told(net: Classifier, quick: Gathered, names: Sequence[str]) -> dict[str, Predictions]:
    """What a network says of some sets."""
    forward, form = forward_of(net, quick.task.prepare), FORMULATIONS[quick.recipe.formulation]

    def said(examples: Examples) -> Predictions:
        z = np.concatenate([each.logits for each in outputs(forward, form, examples)])
        log_p = form.log_probs(torch.from_numpy(z)).numpy()
        y = examples.y.numpy()
        return Predictions.from_logits(z, log_p, y, normalised=form.normalised)

    sets = {name: make for name, make in quick.task.evaluations.items() if name in names}
    sets |= {VALIDATION: lambda: quick.task.validation} if VALIDATION in names else {}
    return {name: said(make()) for name, make in sets.items()}


def others(quick: Gathered) -> Iterator[Found]:
    """Logistic regression and class means, on all rows."""
    task = quick.task
    sets = [task.train, task.validation, task.evaluations["calibration"]()]
    tests = [task.evaluations[name]() for name in SETS]
    x = np.concatenate([each.x.numpy() for each in sets if isinstance(each, InMemory)])
    y = np.concatenate([each.y.numpy() for each in sets])
    inside, outside = (each.x.numpy() for each in tests if isinstance(each, InMemory))
    x, y = x[y >= 0], y[y >= 0]
    scale = StandardScaler().fit(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = LogisticRegression(C=1 / (STRENGTH * len(y)), max_iter=200)
        fitted.fit(scale.transform(x), y)
    z = [fitted.decision_function(scale.transform(each)) for each in (inside, outside)]
    right = float((fitted.classes_[z[0].argmax(1)] == tests[0].y.numpy()).mean())
    energy = [np.logaddexp.reduce(each, axis=1) for each in z]
    top = [each.max(1) - e for each, e in zip(z, energy, strict=True)]
    yield "logistic regression, energy", right, auroc(rank(*energy))
    yield "logistic regression, max_p", right, auroc(rank(*top))
    classes = np.unique(y)
    unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (x, inside, outside)]
    means = np.stack([unit[0][y == k].mean(0) for k in classes])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    near = [each @ means.T for each in unit[1:]]
    right = float((classes[near[0].argmax(1)] == tests[0].y.numpy()).mean())
    yield "nearest class mean, cosine", right, auroc(rank(*(each.max(1) for each in near)))


def main() -> None:
    folder, encoder = [*sys.argv[1:], *["clinc-frozen", "minilm"][len(sys.argv) - 1 :]]
    place, table = Path(folder), dict[tuple[int, str], list[tuple[float, float]]]()
    place.mkdir(parents=True, exist_ok=True)
    rows = locate(origin(), None).read()
    test = write(place / "clinc-test.csv", [*rows["test"], *rows["oos_test"]])
    print("| rows per class | head, score | accuracy | AUROC |\n|---|---|---|---|", flush=True)
    for size in SIZES:
        for seed in range(DRAWS):
            data = write(place / "few.csv", drawn([*rows["train"], *rows["val"]], size, seed))
            wish = Request(data=data, text="sentence", label="intent", test=test, seed=seed,
                           encoder=encoder_folder(encoder), frozen=True)  # fmt: skip
            quick = carry_out(on_features(gather(wish), torch.device("cpu")), lambda _: None)
            every = replace(wish, cross_fit=True)
            all_ = carry_out(on_features(gather(every), torch.device("cpu")), lambda _: None)
            for what, *numbers in (*ours(quick), *crossfitted(all_, place), *others(quick)):
                table.setdefault((size, what), []).append((numbers[0], numbers[1]))
        for (of, what), each in table.items():
            if of == size:
                accuracy, area = np.mean(each, axis=0)
                print(f"| {size} | {what} | {accuracy:.3f} | {area:.3f} |", flush=True)


if __name__ == "__main__":
    main()
