"""The corruptions by name, the subsets people report, and `corrupt`, which applies one."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from ova.corruptions.corruption import CONSTANTS, Corruption, Images, Work
from ova.corruptions.draws import keys
from ova.corruptions.textures import Textures, generated_textures
from ova.errors import BadInput, pick
from ova.files import cores

SEVERITIES = (1, 2, 3, 4, 5)
SMALLEST = 8  # pixels on the shorter side
SHARE = 1 << 18  # pixels that one thread takes at a time; this bounds the working memory
FEW = 1 << 15  # pixels for which starting threads would take longer than the work


_FILES = (  # each has entries in its CORRUPTIONS
    "noise",
    "blur",
    "weather",
    "colour",
    "spatter",
    "elastic",
    "digital",
)
CORRUPTIONS: dict[str, Corruption] = {
    name: corruption
    for file in _FILES
    for name, corruption in import_module(f"ova.corruptions.{file}").CORRUPTIONS.items()
}


def without(*names: str) -> tuple[str, ...]:
    """All corruptions but some."""
    return tuple(name for name in CORRUPTIONS if name not in names)


SUBSETS = {
    "all-19": without(),
    "paper-17": without("motion_blur", "snow"),  # what the paper's CIFAR-100-C has
    "standard-15": without("speckle_noise", "gaussian_blur", "spatter", "saturate"),
}


def corrupt(  # noqa: PLR0913 -- everything a result depends on stands here, by name
    images: Images,
    name: str,
    severity: int,
    *,
    seed: int = 0,
    ids: Sequence[int] | NDArray[np.integer] | None = None,
    constants: str = "cifar",
    textures: Textures | None = None,
    workers: int | None = None,
) -> Images:
    """Corrupt uint8 images (N x H x W x 3, at least 8 px) in the way of ImageNet-C and CIFAR-C.

    The result for an image depends on the seed, the name, the severity and the image's id (its
    row number unless `ids` are given), not on the batch it is in nor on the number of workers.
    Frost uses generated textures unless given others (`ova.data.frost.find_textures`).

    Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and
    Perturbations", 2019.

    >>> white = np.full((2, 32, 32, 3), 255, np.uint8)
    >>> int(corrupt(white, "contrast", 5).min())
    255
    """
    corruption = pick(CORRUPTIONS, name, "corruption")
    size = pick(CONSTANTS, constants, "set of constants")
    check_severity(severity)
    check_images(images)
    order = np.arange(len(images)) if ids is None else check_ids(ids, len(images))
    work = Work(
        own(images),
        keys(seed, name, severity, order),
        corruption.strength(constants, severity),
        size,
        generated_textures() if textures is None else textures,
    )
    return in_shares(corruption.apply, work, cores() if workers is None else workers)


def own(images: Images) -> Images:
    """The images in one block that may be written to: the compiled code knows no other kind."""
    block = np.ascontiguousarray(images)
    return block if block.flags.writeable else block.copy()


def in_shares(apply: Callable[[Work], Images], work: Work, workers: int) -> Images:
    """Give each thread a few images at a time; results come back in order."""
    count, height, width, _ = work.images.shape
    out = np.empty_like(work.images)
    if count * height * width <= FEW:
        workers = 1
    step = max(1, min(SHARE // (height * width), -(-count // workers)))

    def run(start: int) -> None:
        part = slice(start, start + step)
        out[part] = apply(replace(work, images=work.images[part], keys=work.keys[part]))

    starts = range(0, count, step)
    if workers == 1 or len(starts) <= 1:
        for start in starts:
            run(start)
        return out
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(run, starts))
    return out


def check_severity(severity: int) -> None:
    """Refuse what is not 1 to 5."""
    if isinstance(severity, bool) or severity not in SEVERITIES:
        raise BadInput(f"severity {severity!r}; it must be 1, 2, 3, 4 or 5")


def check_images(images: Images) -> None:
    """Refuse what is not N x H x W x 3 in uint8."""
    if not isinstance(images, np.ndarray):
        raise BadInput(f"images must be a numpy array, not {type(images).__name__}")
    if images.dtype != np.uint8:
        raise BadInput(f"images must be uint8 (0 to 255), not {images.dtype}")
    if images.ndim != 4 or images.shape[3] != 3:
        hint = channels_hint(images.shape)
        raise BadInput(f"images must be N x H x W x 3 (RGB), not {images.shape}{hint}")
    if min(images.shape[1:3]) < SMALLEST:
        raise BadInput(f"images must be at least {SMALLEST} px on each side, not {images.shape}")


def channels_hint(shape: tuple[int, ...]) -> str:
    """What to do with a shape that is nearly right."""
    if len(shape) == 4 and shape[1] == 3:
        return "; move the channels last with images.transpose(0, 2, 3, 1)"
    if len(shape) == 4 and shape[3] == 1:
        return "; repeat the grey channel with images.repeat(3, axis=3)"
    if len(shape) == 4 and shape[3] == 4:
        return "; drop the alpha channel with images[..., :3]"
    if len(shape) == 3:
        return "; one image needs a first axis of length 1, grey images a last axis of length 3"
    return ""


def check_ids(ids: Sequence[int] | NDArray[np.integer], count: int) -> NDArray[np.integer]:
    """One whole number per image."""
    order = np.asarray(ids)
    if order.shape != (count,) or not np.issubdtype(order.dtype, np.integer):
        raise BadInput(
            f"ids must be {count} whole numbers, one per image, not {order.dtype} {order.shape}"
        )
    return order
