"""Digital damage: pixelation and JPEG compression, by the libraries that define them."""

import cv2
import numpy as np
from PIL import Image

from ova.corruptions.corruption import Corruption, Images, Work


def pixelate(work: Work) -> Images:
    """Shrink by averaging boxes, enlarge by repeating."""
    height, width = work.images.shape[1:3]
    small = max(1, int(width * work.strength)), max(1, int(height * work.strength))
    out = np.empty_like(work.images)
    for image, changed in zip(work.images, out, strict=True):
        shrunk = Image.fromarray(image).resize(small, Image.Resampling.BOX)
        changed[:] = shrunk.resize((width, height), Image.Resampling.BOX)
    return out


def jpeg_compression(work: Work) -> Images:
    """The image after JPEG compression at a quality."""
    # OpenCV and Pillow, which the reference uses, code by the same library: the pixels are equal.
    quality = [cv2.IMWRITE_JPEG_QUALITY, work.strength]
    out = np.empty_like(work.images)
    for image, changed in zip(work.images, out, strict=True):
        file = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), quality)[1]
        decoded = np.asarray(cv2.imdecode(file, cv2.IMREAD_COLOR))
        changed[:] = cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB)
    return out


CORRUPTIONS = {
    "pixelate": Corruption(  # size of the small image
        pixelate, (0.95, 0.9, 0.85, 0.75, 0.65), (0.6, 0.5, 0.4, 0.3, 0.25)
    ),
    "jpeg_compression": Corruption(  # quality
        jpeg_compression, (80, 65, 58, 50, 40), (25, 18, 15, 10, 7)
    ),
}
