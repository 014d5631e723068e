"""A contact sheet: every corruption at every severity on one picture."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ova.corruptions.corruption import CONSTANTS
from ova.corruptions.table import CORRUPTIONS, SEVERITIES, corrupt
from ova.corruptions.textures import Textures
from ova.errors import pick

LABEL, HEAD, GAP = 132, 30, 3
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
    fitted = fit(image, pick(CONSTANTS, constants, "set of constants"))
    names = ["", *CORRUPTIONS]  # the first place is the image as it is
    rows, step = -(-len(names) // 2), side(fitted) + GAP
    block = LABEL + len(SEVERITIES) * step + 3 * GAP
    sheet = Image.new("RGB", (2 * block, HEAD + rows * step), PAPER)
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(13)
    for place, name in enumerate(names):
        left, top = place // rows * block, HEAD + place % rows * step
        label = name.replace("_", "\n") or "original"
        pen.multiline_text((left + 8, top + step // 2 - 16), label, INK, font)
        for column, severity in enumerate(SEVERITIES if name else SEVERITIES[:1]):
            shown = fitted
            if name:
                how = {"seed": seed, "constants": constants, "textures": textures}
                shown = corrupt(fitted[None], name, severity, **how)[0]  # type: ignore[arg-type]
            sheet.paste(cell(shown), (left + LABEL + column * step, top))
    for x in (LABEL + GAP, block + LABEL + GAP):
        for column, severity in enumerate(SEVERITIES):
            pen.text((x + column * step, 8), f"severity {severity}", INK, font)
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


def side(image: NDArray[np.uint8]) -> int:
    """The longer side of an image on the sheet: small pixels become whole squares of several."""
    longer = max(image.shape[:2])
    return longer * max(1, 112 // longer) if longer < 224 else 224


def cell(image: NDArray[np.uint8]) -> Image.Image:
    """An image in its size on the sheet."""
    height, width = image.shape[:2]
    scale = side(image) / max(height, width)
    if scale == 1:
        return Image.fromarray(image)
    how = Image.Resampling.NEAREST if scale > 1 else Image.Resampling.LANCZOS
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return Image.fromarray(image).resize(size, how)
