"""Draw small figures of the committed results, each beside the runs that it shows.

    python results/figures.py           all experiments
    python results/figures.py digits    those named

The figures of the paper and the one with raw and calibrated errors; `ova report results` draws all
of them, large and to be moved about in.
"""

import sys
import tempfile
from pathlib import Path

from PIL import Image

from ova.files import write_beside
from ova.report.export import write_figures
from ova.training.run_folder import is_collection

HERE = Path(__file__).parent
KEPT = ("landscape", "embedding", "severity", "reliability", "threshold", "histogram", "calibrated")
COLOURS = 64  # of the palette: enough for lines and bars, a quarter of the size


def draw(experiment: Path) -> list[Path]:
    """Write the kept figures of one experiment into its folder."""
    drawn = []
    with tempfile.TemporaryDirectory() as place:
        for large in write_figures([experiment], Path(place)):
            name = large.stem.removeprefix(f"{experiment.name}-")
            if name in KEPT:
                drawn.append(shrink(large, experiment / f"{name}.png"))
    return drawn


def shrink(large: Path, path: Path) -> Path:
    """Half as wide, with few colours."""
    with Image.open(large) as image, write_beside(path) as beside:
        half = image.convert("RGB").resize(
            (image.width // 2, image.height // 2), Image.Resampling.LANCZOS
        )
        half.quantize(COLOURS, dither=Image.Dither.NONE).save(beside, format="PNG", optimize=True)
    return path


def main() -> None:
    names = sys.argv[1:] or sorted(path.name for path in HERE.iterdir() if is_collection(path))
    for name in names:
        drawn = draw(HERE / name)
        size = sum(path.stat().st_size for path in drawn) / 1000
        print(f"{name}: {len(drawn)} figures, {size:.0f} kB", flush=True)


if __name__ == "__main__":
    main()
