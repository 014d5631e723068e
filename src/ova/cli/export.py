"""`ova export`: a trained model for other programs."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from ova.cli import options
from ova.errors import require
from ova.modelfolder import outputs


def export(
    model: options.ModelFolder,
    onnx: Annotated[Path, Option(help="The ONNX file to write.")] = Path("model.onnx"),
) -> None:
    """Write an ONNX file with probabilities, the threshold's decision, confidence and score inside.

    Its outputs are `probs` (one per class, uncalibrated; one-vs-all, they do not sum to one),
    `label` (the number of the class, or -1 for none of the above), `confidence` (calibrated, as
    `ova predict` prints it) and `score` (what the threshold is compared with). It is kept only if onnxruntime and PyTorch agree to
    1e-5. Classes, preparation and threshold are in its metadata.

        ova export model/ --onnx model.onnx
    """
    require("onnx")
    outputs.check_files({"--onnx": onnx}, [])
    from ova.modelfolder.export import export as write
    from ova.modelfolder.folder import load

    difference = write(load(model), onnx)
    size = onnx.stat().st_size / 1e6
    typer.echo(f"{onnx}: {size:.1f} MB; agrees with PyTorch to {difference:.1g}")
