"""A model measured on rows with labels and on rows of none of the classes."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ova.data.task import InMemory
from ova.files import Row, read_object
from ova.metrics.evaluate import evaluate
from ova.metrics.measured import Evaluation
from ova.modelfolder.answer import as_outputs, outputs
from ova.modelfolder.asking import wanted
from ova.modelfolder.folder import Model
from ova.modelfolder.names import MANIFEST
from ova.posthoc.calibration import Top
from ova.predictions import NONE, Predictions, SetName
from ova.predictions.columns import Array
from ova.predictions.sets import TEST
from ova.userdata.gather import OUTSIDE, STRANGE, sets_of, tested, usable
from ova.userdata.given import in_words_of_python, unlabelled, written
from ova.userdata.request import Request
from ova.userdata.rows import whole

Judged = tuple[Predictions, Array]  # what the model says of a set, and which inputs it answers


def judge(
    model: Model, folder: Path, test: tuple[Any, Any], outside: Any, label: str = ""
) -> Evaluation:
    """Every metric of the predictions, and what the threshold does.

    Which columns are meant is what the training was told, unless `label` says otherwise.
    """
    told = read_object(folder / MANIFEST).get("data", {})
    named = () if model.preparation.column else wanted(model)
    text, none = model.preparation.column, str(told.get("--none", ""))
    with tempfile.TemporaryDirectory(prefix="ova-") as place:
        files = {
            Path(place) / f"{name}.parquet": f"the {name} rows" for name in ("test", "outside")
        }
        at, far = files
        with in_words_of_python(files):
            held = written(*test, (text, label or str(told.get("--label", ""))), at, named)
            request = Request(data=held.path, text=text, label=held.label, none=none)
            sets = tested(request, held.path, model.classes, model.preparation)[0]
            if outside is not None:
                sets[OUTSIDE] = strange(model, request, unlabelled(outside, text, far, named))
    said = {name: judged(model, examples) for name, examples in sets.items()}
    calibration = model.calibration if isinstance(model.calibration, Top) else None
    rows, curves = evaluate({name: p for name, (p, _) in said.items()}, calibration=calibration)
    return Evaluation([*rows, *decisions(said, model.evidence.name)], curves)


def strange(model: Model, request: Request, path: Path) -> InMemory:
    """Every row of none of the classes."""
    encoded = model.preparation.encode(whole(path))
    rows, _ = usable(path, request, encoded.bad, len(encoded.x))
    target = torch.full((len(encoded.x),), NONE)
    return sets_of(encoded, target, {OUTSIDE: rows})[OUTSIDE]


def judged(model: Model, examples: InMemory) -> Judged:
    """The predictions on a set, and which of its inputs are answered."""
    f, z = outputs(model, examples.x, examples.lengths)
    rows = as_outputs(model, f, z)
    assert rows.log_p is not None
    y, normalised = examples.y.numpy(), model.form.normalised
    p = Predictions.from_logits(z.numpy(), rows.log_p, y, normalised=normalised)
    return p, model.threshold.answers(model.evidence(rows), p.prediction)


def decisions(said: Mapping[str, Judged], score: str) -> Iterator[Row]:
    """The share of each set that is answered, and of the answers the share that is right.

    Answers to test rows of none of the classes are wrong ones among those of the test set.
    """
    for name, (p, answered) in said.items():
        kept, right = answered, p.correct
        if name == TEST and STRANGE in said:
            other, also = said[STRANGE]
            kept, right = np.append(kept, also), np.append(right, other.correct)
        about = {"n": len(kept), "score": score}
        yield {"dataset": name, "metric": "answered", "value": float(kept.mean()), **about}
        if not SetName(name).outside:
            value = float(right[kept].mean()) if kept.any() else None
            yield {"dataset": name, "metric": "answered_accuracy", "value": value, **about}
