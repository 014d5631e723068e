"""Image files as arrays of red, green and blue, whatever their format."""

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ova.errors import BadInput

MOST = 1 << 27  # pixels: cameras have fewer, and a few kilobytes can hold very many more


def decode(data: bytes) -> NDArray[np.uint8]:
    """H x W x 3, turned as EXIF says; an error where the bytes are no whole image, or too large a one."""
    import cv2  # five times as fast as Pillow on small WebP

    width, height = size_of(data)
    if width * height > MOST:
        raise BadInput(
            f"an image of {width} x {height} pixels; up to {MOST >> 20} million are read"
        )
    try:
        image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    except cv2.error:
        image = None
    if image is None:
        raise BadInput("not a whole image")
    return np.asarray(image[:, :, ::-1], np.uint8)  # from BGR


def size_of(data: bytes) -> tuple[int, int]:
    """Width and height as the file's first bytes say, before anything is unpacked."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as image:
            return image.size
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise BadInput(f"an image of too many pixels ({error})") from None
    except Exception as error:  # a damaged image can raise nearly anything
        raise BadInput("not an image") from error


def read_rgb(path: Path) -> NDArray[np.uint8]:
    """H x W x 3 as stored, not turned; grey is repeated, transparency dropped."""
    from PIL import Image

    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"), np.uint8)
