"""What every corruption is given: some images, their keys, and how strong to be."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ova.corruptions.draws import Keys
from ova.corruptions.textures import Textures

Images = NDArray[np.uint8]  # N x H x W x 3


@dataclass(frozen=True)
class Work:
    """One share of a batch, small enough for one thread."""

    images: Images
    keys: Keys
    strength: Any  # the severity's entry in the table of constants
    size: int  # the image size for which the constants were chosen
    textures: Textures
