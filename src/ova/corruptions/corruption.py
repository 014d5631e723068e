"""What a corruption is: a function of images and a strength, with the strengths of five severities.

The strengths are facts of Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to
Common Corruptions and Perturbations" (2019), and of the program they published with it.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ova.corruptions.draws import Keys
from ova.corruptions.textures import Textures

Images = NDArray[np.uint8]  # N x H x W x 3

CONSTANTS = {"cifar": 32, "imagenet": 224}  # set of strengths -> the image size it was chosen for


@dataclass(frozen=True)
class Work:
    """One share of a batch, small enough for one thread."""

    images: Images
    keys: Keys
    strength: Any  # of the severity
    size: int  # the image size for which the strengths were chosen
    textures: Textures

    @property
    def flat(self) -> tuple[int, ...]:
        """The shape of the images as one long row each."""
        return len(self.images), -1

    @property
    def lines(self) -> tuple[int, ...]:
        """The shape N x H x 3W: the pixels of a row one after the other."""
        return (*self.images.shape[:2], -1)

    def through(
        self, loop: Callable[..., None], *how: Any, shape: tuple[int, ...] | None = None
    ) -> Images:
        """What `loop(images, *how, out)` makes, both arrays seen in that shape."""
        out = np.empty_like(self.images)
        shape = shape or out.shape
        loop(self.images.reshape(shape), *how, out.reshape(shape))
        return out


@dataclass(frozen=True)
class Corruption:
    """One way to spoil an image, and how strong each of the five severities is."""

    apply: Callable[[Work], Images]
    cifar: tuple[Any, ...]  # for images of 32 px
    imagenet: tuple[Any, ...]  # for images of 224 px

    @property
    def about(self) -> str:
        """What it does, in a sentence."""
        return (inspect.getdoc(self.apply) or "").split("\n")[0]

    def strength(self, constants: str, severity: int) -> Any:
        """The strength of a severity from 1 to 5 in a set of constants."""
        return getattr(self, constants)[severity - 1]
