"""A contact sheet: every corruption at every severity on one picture."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ova.corruptions.constants import CONSTANTS
from ova.corruptions.table import CORRUPTIONS, SEVERITIES, corrupt
from ova.corruptions.textures import Textures
from ova.tables import pick

CELL, LABEL, HEAD, GAP = 112, 132, 30, 3
INK, PAPER = (34, 34, 34), (255, 255, 255)


def contact_sheet(
    image: NDArray[np.uint8],
    *,
    seed: int = 0,
    constants: str = "cifar",
    textures: Textures | None = None,
) -> Image.Image:
    """Draw an H x W x 3 image under all corruptions, two columns of five severities each.

    An image larger than the constants were made for is scaled and cropped to their size first.
    """
    fitted = fit(image, pick(CONSTANTS, constants, "set of constants").size)
    names = list(CORRUPTIONS)
    rows = -(-(len(names) + 1) // 2)
    block = LABEL + len(SEVERITIES) * (CELL + GAP) + 3 * GAP
    sheet = Image.new("RGB", (2 * block, HEAD + rows * (CELL + GAP)), PAPER)
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(13)
    for place, name in enumerate(["", *names]):  # the first place is the image as it is
        left, top = place // rows * block, HEAD + place % rows * (CELL + GAP)
        label = name.replace("_", "\n") or "original"
        pen.multiline_text((left + 8, top + CELL // 2 - 16), label, INK, font)
        for column, severity in enumerate(SEVERITIES if name else SEVERITIES[:1]):
            shown = fitted
            if name:
                how = {"seed": seed, "constants": constants, "textures": textures}
                shown = corrupt(fitted[None], name, severity, **how)[0]  # type: ignore[arg-type]
            sheet.paste(cell(shown), (left + LABEL + column * (CELL + GAP), top))
    for side in range(2):
        for column, severity in enumerate(SEVERITIES):
            x = side * block + LABEL + column * (CELL + GAP)
            pen.text((x + 2, 8), f"severity {severity}", INK, font)
    return sheet


def fit(image: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """The centre, size x size, of an image scaled to 8/7 of that; a smaller image as it is."""
    height, width = image.shape[:2]
    if min(height, width) <= size:
        return image
    scale = size * 8 / 7 / min(height, width)
    scale = scale if scale < 1 else 1.0
    wide, high = max(size, round(width * scale)), max(size, round(height * scale))
    picture = Image.fromarray(image).resize((wide, high), Image.Resampling.BILINEAR)
    left, top = (wide - size) // 2, (high - size) // 2
    return np.asarray(picture.crop((left, top, left + size, top + size)), np.uint8)


def cell(image: NDArray[np.uint8]) -> Image.Image:
    """An image in the size of a cell; small pixels stay square, sides keep their proportion."""
    height, width = image.shape[:2]
    scale = CELL / max(height, width)
    how = Image.Resampling.NEAREST if scale > 1 else Image.Resampling.LANCZOS
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return Image.fromarray(image).resize(size, how)
