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
        value = max(
            -1.0, min(model.threshold.value, 2.0)
        )  # infinities as numbers that decide alike
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
    draw = torch.Generator().manual_seed(count)
    shape = model.preparation.shape
    if model.kind == "image":
        return torch.randint(0, 256, (count, *shape), generator=draw, dtype=torch.uint8)
    if model.kind == "text":
        x = torch.randint(5, shape[0], (count, shape[1]), generator=draw)
        pad: Any = getattr(model.preparation, "pad", 0)
        lengths = torch.randint(2, shape[1] + 1, (count, 1), generator=draw)
        return torch.where(torch.arange(shape[1]) < lengths, x, pad)
    preparation: Any = model.preparation
    noise = torch.randn(count, *shape, generator=draw, dtype=torch.float64)
    mean, scale = (
        torch.tensor(v, dtype=torch.float64) for v in (preparation.mean, preparation.scale)
    )
    return mean + scale * noise


@torch.no_grad()
def compare(session: Any, deciding: Deciding, model: Model) -> float:
    """The largest difference of a number; an error above the tolerance, or a wrong label."""
    worst = 0.0
    for count in CHECKED:
        x = example(model, count)
        p, label, confidence = deciding(x)
        q, said, sure = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        worst = max(worst, float(np.abs(p.numpy() - q).max()))
        worst = max(worst, float(np.abs(confidence.numpy() - sure).max()))
        # Where two classes or the threshold are nearer than rounding, either answer is right.
        top = p.topk(2).values
        clear = ((top[:, 0] - top[:, 1]) > TOLERANCE) & (
            (top[:, 0] - deciding.value).abs() > TOLERANCE
        )
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
