"""A fitted `OneVsAllClassifier` as an ONNX file: a table in, probabilities, decision, confidence and score out."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from ova.errors import BadInput
from ova.metrics.choice import LARGEST
from ova.nn.formulations import FORMULATIONS
from ova.posthoc.calibration import Calibration, Temperature, Top
from ova.posthoc.calibration.beta import Beta
from ova.posthoc.calibration.scores import MAX_LOGIT
from ova.posthoc.threshold import Threshold
from ova.predictions.columns import NONE, Array
from ova.scores.graph import Scored, exported
from ova.training.onnx_file import written
from ova.training.worded import names_of

if TYPE_CHECKING:
    from ova.training.estimator import OneVsAllClassifier

OUTPUTS = ("probs", "label", "confidence", "score")
TOLERANCE = 1e-6  # of probabilities, and between two scores or logits that are apart
SCORES = 1e-4  # of a score, relative to its size: those of neighbours are looked up in float32
CHECKED = (1, 2, 200)  # batch sizes that are compared
FAR = 10  # deviations from the mean that rows which are compared may be


@dataclass(frozen=True)
class Answers:
    """What a classifier says of rows: the four outputs, and how far ahead the largest logit is."""

    probs: Array
    label: Array
    confidence: Array
    score: Array
    lead: Array


def export(model: "OneVsAllClassifier", answers: Callable[[Array], Answers], path: Path) -> float:
    """Write the file, checked against what the model answers; gives the largest difference seen."""
    if model.evidence_ is not None and model.decide_by not in exported():
        raise BadInput(
            f"the score {model.decide_by} cannot be written as ONNX; fit again with decide_by= one of "
            f"{', '.join(exported())}"
        )
    answering = Answering(model).eval()
    rows = torch.from_numpy(examples(model, 3))
    bound = TOLERANCE if model.evidence_ is None else SCORES
    with written(answering, rows, OUTPUTS, described(model), path) as session:
        worst = 0.0
        for count in CHECKED:
            x = examples(model, count)
            found = session.run(None, {"input": x})
            worst = max(worst, difference(found, answers(x), limit_of(model), bound))
        return worst


def described(model: "OneVsAllClassifier") -> dict[str, str]:
    """What a reader of the file needs besides the graph."""
    limit = model.threshold_
    facts: dict[str, Any] = {
        "classes": model.classes_.tolist(),
        "reject_label": model.reject_label_,
        "columns": columns(model),
        "score": model.decide_by,
        "threshold": limit.to_json() if isinstance(limit, Threshold) else limit,
    }
    return {
        f"ova.{name}": json.dumps(value, ensure_ascii=False, default=str)
        for name, value in facts.items()
    }


def columns(model: "OneVsAllClassifier") -> list[str]:
    """The names of the columns of the input."""
    if model.columns_:
        return names_of(model.columns_)
    names = getattr(model, "feature_names_in_", None)
    return [f"x{k}" for k in range(len(model.mean_))] if names is None else [*map(str, names)]


def examples(model: "OneVsAllClassifier", count: int) -> Array:
    """Rows amid the training rows and far from them, one in ten numbers missing where some were."""
    draw = np.random.default_rng(count)
    away = np.where(np.arange(count) % 2, FAR, 1)[:, None]
    scale = np.where(np.isinf(model.scale_), 1, model.scale_)
    x = model.mean_ + away * scale * draw.normal(size=(count, len(model.mean_)))
    gone = np.zeros(x.shape, bool)
    gone[:, model.marked_] = draw.random((count, len(model.marked_))) < 0.1
    return np.where(gone, np.nan, x)


def difference(found: Sequence[Array], said: Answers, limit: float | None, bound: float) -> float:
    """The largest difference of a number; an error above the tolerance, or a wrong label."""
    p, label, confidence, score = found
    size = np.maximum(np.abs(said.score), 1)
    off = float(max(np.abs(p - said.probs).max(), np.abs(confidence - said.confidence).max()))
    apart = float((np.abs(score - said.score) / size).max())
    # Where two classes or the threshold are nearer than rounding, either answer is right.
    far = np.full(len(label), np.inf) if limit is None else np.abs(said.score - limit) / size
    clear = (said.lead > TOLERANCE) & (far > bound)
    if off > TOLERANCE or apart > bound or (label != said.label)[clear].any():
        raise BadInput(
            f"the ONNX file differs from predict by {max(off, apart):.2g}; it was not kept"
        )
    return off


class Answering(nn.Module):
    """Four outputs in float64: probs (N x K) as `predict_proba`, label, confidence and score.

    The label is the place of the class in `classes_`, or -1 where `predict` refuses.
    """

    column_fill: Tensor  # no shorter names: the exporter calls what it computes `mean`
    column_mean: Tensor
    column_scale: Tensor

    def __init__(self, model: "OneVsAllClassifier") -> None:
        super().__init__()
        self.net, self.form = model.network_, FORMULATIONS[model.formulation]
        self.shared, self.marked = model.normalised, model.marked_.tolist()
        self.calibration, self.limit = model.calibration_, limit_of(model)
        self.scored = None if model.evidence_ is None else Scored(model.evidence_)
        for name in ("fill", "mean", "scale"):
            self.register_buffer(
                f"column_{name}", torch.from_numpy(getattr(model, f"{name}_").copy())
            )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        gaps = x.isnan()
        x = (torch.where(gaps, self.column_fill, x) - self.column_mean) / self.column_scale
        if self.marked:
            x = torch.cat([x, gaps[:, self.marked].double()], 1)
        f = self.net[:-1](x)
        z = self.net[-1](f).double()
        log_p = self.form.log_probs(z)
        probs = log_p.exp()
        label, top = z.argmax(-1), log_p.amax(-1)
        confidence = sure(self.calibration, top, z.amax(-1))
        score = confidence
        if self.scored is not None:
            score = self.scored(f, z, log_p, self.form.normalised).clamp(-LARGEST, LARGEST)
        if self.limit is not None:
            label = torch.where(score > self.limit, label, NONE)
        if self.shared:
            probs = probs / probs.sum(-1, keepdim=True)
        return probs, label, confidence, score


def limit_of(model: "OneVsAllClassifier") -> float | None:
    """What the score must be above, as a finite number; None where nothing is refused."""
    found = model.threshold_
    if found is None:
        return None
    value = found.value if isinstance(found, Threshold) else float(found)
    return float(np.clip(value, -LARGEST, LARGEST))


def sure(calibration: Calibration | None, log_p: Tensor, z: Tensor) -> Tensor:
    """The calibrated confidence of top answers, from log max p and max z."""
    p = log_p.exp()
    if calibration is None:
        return p
    if isinstance(calibration, Top) and calibration.score == MAX_LOGIT:
        return torch.sigmoid(calibration.a * z + calibration.b)
    kind = torch.finfo(torch.float64)  # the bounds of `posthoc.calibration.scores.logs`
    p = p.clamp(kind.tiny, float(np.nextafter(1.0, 0.0)))
    yes, no = p.log(), (-p).log1p()
    if isinstance(calibration, Top):
        return torch.sigmoid(calibration.a * (yes - no) + calibration.b)
    if isinstance(calibration, Beta):
        return torch.sigmoid(calibration.a * yes - calibration.b * no + calibration.c)
    assert isinstance(calibration, Temperature)  # the third that keeps the order
    return torch.sigmoid((yes - no) / calibration.temperature)
