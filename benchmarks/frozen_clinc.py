"""A head on a frozen encoder against logistic regression on the same features: CLINC150.

The rows of `train` and `val` are the user's CSV, divided as `ova train` does; the test sentences and the
1,000 out-of-scope ones are kept away. The strength of scikit-learn's logistic regression is chosen by its
log-loss on our validation rows, as ours is. AUROC is of out-of-scope against test sentences. Seconds are
those of one core for everything after the embedding: ours with scores, calibration, promise and page, of
the regression the fits alone.
Command: python benchmarks/frozen_clinc.py [FOLDER] [ENCODER] [formulation ...]; six minutes of one core for
the embedding with MiniLM, which is kept, then seconds.
"""

import csv
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from ova.data.clinc import origin
from ova.data.encoders import encoder_folder
from ova.data.sources import locate
from ova.data.task import InMemory, Task
from ova.metrics.choice import PLAIN
from ova.metrics.ranking import auroc, rank
from ova.modelfolder.deciding import judged
from ova.modelfolder.evidence import Evidence, forward_of
from ova.modelfolder.folder import load
from ova.modelfolder.frozen import HEAD, on_features
from ova.modelfolder.train import train
from ova.nn.formulations import DEFAULT_FROZEN
from ova.posthoc.threshold import Promise
from ova.predictions import read
from ova.training.engine import Machine, launch
from ova.training.loop import trained
from ova.training.progress import carry_out
from ova.userdata.gather import Gathered, gather
from ova.userdata.request import Request

SETS = ("test", "ood/test")
STRENGTHS = 10.0 ** np.arange(-3, 3)  # C of scikit-learn, on standardised features
ROW = "| {} | {} | {:.4f} | {:.4f} | {:.1f} |"


def write(path: Path, rows: list[tuple[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("sentence", "intent"), *rows])
    return path


def ours(folder: Path, request: Request) -> None:
    """Train with a formulation and print what it does."""
    machine, gathered = Machine(accelerator="cpu"), gather(request)
    fabric = launch(machine)
    quick = carry_out(on_features(gathered, fabric.device), lambda _: None)
    began, out = time.process_time(), folder / f"frozen-{gathered.recipe.formulation}"
    for _ in train(fabric, gathered, out, machine, Promise()):
        pass
    seconds = time.process_time() - began
    forward = forward_of(trained(quick.task, quick.recipe, out / "run" / HEAD), quick.task.prepare)
    sets = {name: read(out / f"run/predictions/{name}.parquet") for name in SETS}
    for by in (load(out).evidence, Evidence(PLAIN)):
        said, outside = judged(by, forward, quick, sets).values()
        area = auroc(rank(said.confidence, outside.confidence))
        name = f"`{gathered.recipe.formulation}`"
        print(ROW.format(name, by.name, said.correct.mean(), area, seconds), flush=True)


def regression(task: Task) -> None:
    """Logistic regression on the same features and rows."""
    sets = [task.train, task.validation, *(task.evaluations[name]() for name in SETS)]
    x, held, *tests = (each.x.numpy() for each in sets if isinstance(each, InMemory))
    y, of, target, _ = (each.y.numpy() for each in sets)
    scale = StandardScaler().fit(x)
    began = time.process_time()
    found: dict[float, Any] = {}
    for c in STRENGTHS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = LogisticRegression(C=c, max_iter=200).fit(scale.transform(x), y)
        loss = log_loss(of, fitted.predict_proba(scale.transform(held)), labels=fitted.classes_)
        if found and loss > min(found):
            break
        found[loss] = fitted
    seconds, best = time.process_time() - began, found[min(found)]
    z = [best.decision_function(scale.transform(each)) for each in tests]
    right = (best.classes_[z[0].argmax(1)] == target).mean()
    energy = [np.logaddexp.reduce(each, axis=1) for each in z]
    top = [each.max(1) - e for each, e in zip(z, energy, strict=True)]
    for name, (inside, strange) in (("max_p", top), ("energy", energy)):
        print(ROW.format("logistic regression", name, right, auroc(rank(inside, strange)), seconds))


def main() -> None:
    folder, encoder, *formulations = [
        *sys.argv[1:],
        *["clinc-frozen", "minilm"][len(sys.argv) - 1 :],
    ]
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    rows = locate(origin(), None).read()
    data = write(place / "clinc.csv", [*rows["train"], *rows["val"]])
    test = write(place / "clinc-test.csv", [*rows["test"], *rows["oos_test"]])
    wish: dict[str, Any] = {"data": data, "text": "sentence", "label": "intent", "test": test}
    wish |= {"encoder": encoder_folder(encoder), "frozen": True}
    gathered: Gathered = gather(Request(**wish))
    began, fabric = time.perf_counter(), launch(Machine(accelerator="cpu"))
    embedded = carry_out(on_features(gathered, fabric.device), lambda _: None)
    print(f"embedding: {time.perf_counter() - began:.0f} s (what was kept takes none)\n")
    print("| head | score | accuracy | AUROC | seconds |\n|---|---|---|---|---|", flush=True)
    for formulation in formulations or [DEFAULT_FROZEN]:
        ours(place, Request(**wish, formulation=formulation))
    regression(embedded.task)


if __name__ == "__main__":
    main()
