"""A model folder as one ONNX file: encoded inputs in, probabilities, decision, confidence and score out."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ova.errors import BadInput
from ova.metrics.choice import LARGEST
from ova.modelfolder.answer import as_outputs
from ova.modelfolder.confidence import confidence_of
from ova.modelfolder.folder import Model
from ova.posthoc.per_class import Thresholds
from ova.predictions import NONE
from ova.scores.graph import Scored
from ova.training.onnx_file import written

TOLERANCE = 1e-5
SCORES = 1e-4  # of a score, relative to its size: distances are sums of many features
CHECKED = (1, 2, 7)  # batch sizes that are compared


class Deciding(nn.Module):
    """Four outputs: probs (N x K), label, confidence and score.

    The label is the class of the largest p, or -1 when the score is not above the threshold. The
    confidence is that of the largest p, calibrated where the model is, also when it is refused. The
    score is what decides, by default of old models the largest p itself.
    """

    value: Tensor

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.net, self.prepare, self.form = model.net, model.preparation.prepare, model.form
        self.calibration = model.calibration
        scores = model.evidence.scores
        self.scored = None if scores is None else Scored(scores)
        # Infinities as numbers that decide alike, in the type of what is compared.
        kind = torch.float32 if scores is None else torch.float64
        limit, each = model.threshold, np.arange(len(model.classes))
        value = limit.values(each) if isinstance(limit, Thresholds) else limit.value
        self.register_buffer("value", torch.as_tensor(value, dtype=kind).clamp(-LARGEST, LARGEST))

    def above(self, label: Tensor) -> Tensor:
        """What the score must be above, by the class that would be answered where each has its own."""
        return self.value[label] if self.value.ndim else self.value

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        f, z = (t.float() for t in self.net.both(self.prepare(x)))
        p = self.form.probs(z)
        label = z.argmax(-1)  # two p may round to one value, their z do not
        score = p.amax(-1)
        if self.scored is not None:
            score = self.scored(f, z, self.form.log_probs(z), self.form.normalised)
        confidence = confidence_of(self.calibration, self.form, z, label)
        return p, torch.where(score > self.above(label), label, NONE), confidence, score


def export(model: Model, path: Path) -> float:
    """Write the ONNX file, checked against PyTorch; gives the largest difference that was seen."""
    deciding = Deciding(model).eval()
    outputs = ("probs", "label", "confidence", "score")
    with written(deciding, example(model, 3), outputs, described(model), path) as session:
        return compare(session, deciding, model)


def described(model: Model) -> dict[str, str]:
    """What a reader of the file needs besides the graph."""
    return {
        "ova.classes": json.dumps(model.classes, ensure_ascii=False),
        "ova.kind": model.kind,
        "ova.input": model.preparation.takes,
        "ova.preparation": json.dumps(model.preparation.to_json(), ensure_ascii=False),
        "ova.score": model.evidence.name,
        "ova.threshold": json.dumps(model.threshold.to_json()),
        "ova.threshold.calibrated": json.dumps(model.shown.to_json()),
    }


def example(model: Model, count: int) -> Tensor:
    """Encoded inputs of the right type: random pixels, word pieces or numbers."""
    return model.preparation.example(count, torch.Generator().manual_seed(count))


@torch.no_grad()
def compare(session: Any, deciding: Deciding, model: Model) -> float:
    """The largest difference of a number; an error above the tolerance, or a wrong label.

    Scores are compared with those of `ova predict`, relative to their size.
    """
    worst = 0.0
    for count in CHECKED:
        x = example(model, count)
        p, label, confidence, _ = deciding(x)
        q, said, sure, value = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        score = torch.from_numpy(model.evidence(as_outputs(model, *model.outputs(x)))).double()
        apart = (score - torch.from_numpy(value)).abs() / score.abs().clamp(min=1)
        here, there = torch.cat([p, confidence[:, None]], 1), np.c_[q, sure]
        worst = max(worst, float(np.abs(here.numpy() - there).max()))
        # Where two classes or the threshold are nearer than rounding, either answer is right.
        (first, second), top = p.topk(2).values.T, p.argmax(1)
        near = (score - deciding.above(top)).abs() / score.abs().clamp(min=1)
        clear = (first - second > TOLERANCE) & (near > SCORES)
        if apart.max() > SCORES:
            raise BadInput(
                f"in the ONNX file the score {model.evidence.name} differs by {apart.max():.2g}; it "
                "was not kept. With --score max_p another decides"
            )
        if worst > TOLERANCE or (label != torch.from_numpy(said))[clear].any():
            raise BadInput(f"the ONNX file differs from PyTorch by {worst:.2g}; it was not kept")
    return worst
