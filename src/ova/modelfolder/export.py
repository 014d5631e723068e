"""A model folder as one ONNX file: encoded inputs in, probabilities, decision and confidence out."""

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ova.errors import BadInput, require
from ova.files import write_beside
from ova.modelfolder.confidence import confidence_of
from ova.modelfolder.folder import Model
from ova.predictions import NONE

TOLERANCE = 1e-5
CHECKED = (1, 2, 7)  # batch sizes that are compared


class Deciding(nn.Module):
    """Three outputs: probs (N x K), label and confidence.

    The label is the class of the largest p, or -1 when that is not above the threshold. The
    confidence is that of the largest p, calibrated where the model is, also when it is refused.
    """

    value: Tensor

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.net, self.prepare, self.form = model.net, model.preparation.prepare, model.form
        self.calibration = model.calibration
        # Infinities as numbers that decide alike.
        value = max(-1.0, min(model.threshold.value, 2.0))
        self.register_buffer("value", torch.tensor(value, dtype=torch.float32))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        z = self.net(self.prepare(x)).float()
        p = self.form.probs(z)
        largest, label = p.amax(-1), z.argmax(-1)  # two p may round to one value, their z do not
        confidence = confidence_of(self.calibration, self.form, z, label)
        return p, torch.where(largest > self.value, label, NONE), confidence


def export(model: Model, path: Path) -> float:
    """Write the ONNX file, checked against PyTorch; gives the largest difference that was seen."""
    require("onnx")
    import onnx
    import onnxruntime

    deciding = Deciding(model).eval()
    with write_beside(path) as beside:
        with quiet(), torch.no_grad():
            program = torch.onnx.export(
                deciding,
                (example(model, 3),),
                dynamo=True,
                input_names=["input"],
                output_names=["probs", "label", "confidence"],
                dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=2**20)},),
                verbose=False,
            )
        assert program is not None
        proto = program.model_proto
        for key, value in described(model).items():
            proto.metadata_props.add(key=key, value=value)
        onnx.checker.check_model(proto)
        onnx.save_model(proto, beside)
        session = onnxruntime.InferenceSession(str(beside), providers=["CPUExecutionProvider"])
        return compare(session, deciding, model)


def described(model: Model) -> dict[str, str]:
    """What a reader of the file needs besides the graph."""
    return {
        "ova.classes": json.dumps(model.classes, ensure_ascii=False),
        "ova.kind": model.kind,
        "ova.preparation": json.dumps(model.preparation.to_json(), ensure_ascii=False),
        "ova.threshold": json.dumps(model.threshold.to_json()),
        "ova.threshold.calibrated": json.dumps(model.shown.to_json()),
    }


def example(model: Model, count: int) -> Tensor:
    """Encoded inputs of the right type: random pixels, word pieces or numbers."""
    return model.preparation.example(count, torch.Generator().manual_seed(count))


@torch.no_grad()
def compare(session: Any, deciding: Deciding, model: Model) -> float:
    """The largest difference of a number; an error above the tolerance, or a wrong label."""
    worst = 0.0
    for count in CHECKED:
        x = example(model, count)
        p, label, confidence = deciding(x)
        q, said, sure = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        here, there = torch.cat([p, confidence[:, None]], 1), np.c_[q, sure]
        worst = max(worst, float(np.abs(here.numpy() - there).max()))
        # Where two classes or the threshold are nearer than rounding, either answer is right.
        first, second = p.topk(2).values.T
        clear = (first - second).minimum((first - deciding.value).abs()) > TOLERANCE
        if worst > TOLERANCE or (label != torch.from_numpy(said))[clear].any():
            raise BadInput(f"the ONNX file differs from PyTorch by {worst:.2g}; it was not kept")
    return worst


@contextmanager
def quiet() -> Iterator[None]:
    """Without the exporter's remarks about itself."""
    loud = logging.getLogger("torch.onnx")
    level = loud.level
    loud.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        loud.setLevel(level)
