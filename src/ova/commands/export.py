"""`ova export`: a trained model for other programs."""

from pathlib import Path
from typing import Annotated

import typer


def export(
    model: Annotated[Path, typer.Argument(help="Folder that `ova train` wrote.")],
    onnx: Annotated[Path, typer.Option(help="The ONNX file to write.")] = Path("model.onnx"),
) -> None:
    """Write an ONNX file with the probabilities and the threshold's decision inside.

    Its outputs are `probs` (one per class, one-vs-all, not summing to one) and `label` (the number
    of the class, or -1 for none of the above). It is kept only if onnxruntime and PyTorch agree to
    1e-5. Classes, preparation and threshold are in its metadata.

        ova export model/ --onnx model.onnx
    """
    from ova.own.exporting import export as write
    from ova.own.folder import load

    difference = write(load(model), onnx)
    size = onnx.stat().st_size / 1e6
    typer.echo(f"{onnx}: {size:.1f} MB; agrees with PyTorch to {difference:.1g}")
