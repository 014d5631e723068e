"""A module as an ONNX file, which is kept only where ONNX Runtime says the same as PyTorch."""

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ova.errors import require
from ova.files import write_beside

MOST_ROWS = 2**20  # of a batch


@contextmanager
def written(
    module: nn.Module, example: Tensor, outputs: Sequence[str], facts: Mapping[str, str], path: Path
) -> Iterator[Any]:
    """The file in a session of ONNX Runtime, to compare; an error there and it is not kept.

    Its input is called `input`, a batch of any size; `facts` are its metadata.
    """
    require("onnx")
    import onnx
    import onnxruntime

    with write_beside(path) as beside:
        with quiet(), torch.no_grad():
            program = torch.onnx.export(
                module,
                (example,),
                dynamo=True,
                input_names=["input"],
                output_names=list(outputs),
                dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=MOST_ROWS)},),
                verbose=False,
            )
        assert program is not None
        proto = program.model_proto
        for key, value in facts.items():
            proto.metadata_props.add(key=key, value=value)
        onnx.checker.check_model(proto)
        onnx.save_model(proto, beside)
        yield onnxruntime.InferenceSession(str(beside), providers=["CPUExecutionProvider"])


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
