"""Shifts of black-and-white drawings: rotation, thickness, elastic and noise in five severities."""

from collections.abc import Callable, Mapping

import numpy as np

# What a step means: degrees, pixels of 105 added on each side of a stroke, pixels of 105 by which
# a point moves (standard deviation), grey levels of 255 (standard deviation). The last steps leave a
# softmax of the recipe right about one drawing in five: an accuracy near zero compares nothing.
LADDERS: Mapping[str, tuple[float, ...]] = {
    "rotation": (6, 11, 16, 21, 26),
    "thickness": (0.5, 1, 1.5, 2, 2.5),
    "elastic": (1, 1.75, 2.5, 3.25, 4),
    "noise": (4, 8, 12, 16, 20),
}
SMOOTH = 10.0  # pixels of 105 over which elastic movement hangs together


def small(ink: np.ndarray, side: int) -> np.ndarray:
    """Drawings N x H x W of 0 and 1 as N x side x side grey levels, 255 where all is ink."""
    import cv2

    grey = (resized(255 * one, side, cv2.INTER_AREA) for one in ink)
    return np.stack(list(grey)) if len(ink) else np.zeros((0, side, side), np.uint8)


def resized(image: np.ndarray, side: int, how: int) -> np.ndarray:
    """One image in another size."""
    import cv2

    return np.asarray(cv2.resize(image, (side, side), interpolation=how), np.uint8)


def rotation(one: np.ndarray, degrees: float, draw: np.random.Generator) -> np.ndarray:
    """Turned by that angle, to the left or to the right."""
    import cv2

    height, width = one.shape
    angle = degrees if draw.random() < 0.5 else -degrees
    turn = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), angle, 1.0)
    return np.asarray(cv2.warpAffine(one, turn, (width, height), flags=cv2.INTER_LINEAR))


def thickness(one: np.ndarray, radius: float, _: np.random.Generator) -> np.ndarray:
    """Every stroke wider by that radius on each side; between whole pixels the border is grey."""
    whole, rest = divmod(radius, 1)
    thinner, thicker = (widened(one, int(whole) + more) for more in (0, 1))
    return np.asarray(((1 - rest) * thinner + rest * thicker).round(), np.uint8)


def widened(one: np.ndarray, radius: int) -> np.ndarray:
    """Every stroke wider by whole pixels."""
    import cv2

    size = 2 * radius + 1
    return np.asarray(cv2.dilate(one, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))))


def elastic(one: np.ndarray, pixels: float, draw: np.random.Generator) -> np.ndarray:
    """Every point moved by a smooth random field (Simard et al., 2003)."""
    import cv2

    height, width = one.shape
    coarse = draw.standard_normal((round(height / SMOOTH), round(width / SMOOTH), 2))
    field = np.asarray(cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC))
    field = (field * (pixels / field.std())).astype(np.float32)
    rows, columns = np.mgrid[:height, :width].astype(np.float32)
    return np.asarray(
        cv2.remap(one, columns + field[..., 0], rows + field[..., 1], cv2.INTER_LINEAR)
    )


CHANGES: Mapping[str, Callable[[np.ndarray, float, np.random.Generator], np.ndarray]] = {
    "rotation": rotation,
    "thickness": thickness,
    "elastic": elastic,
}


def changed(ink: np.ndarray, ladder: str, severity: int, side: int) -> np.ndarray:
    """All drawings changed by one step of a ladder, as N x side x side grey levels.

    The draws of a row are the same at every severity: a drawing goes on in the same direction.
    """
    import cv2

    step = LADDERS[ladder][severity - 1]
    made = []
    for row, one in enumerate(ink):
        draw = np.random.default_rng([list(LADDERS).index(ladder), row])
        if ladder == "noise":  # at the size the network sees, where averaging cannot remove it
            grey = resized(255 * one, side, cv2.INTER_AREA)
            noisy = grey + step * draw.standard_normal((side, side))
            made.append(noisy.round().clip(0, 255).astype(np.uint8))
        else:
            made.append(resized(CHANGES[ladder](255 * one, step, draw), side, cv2.INTER_AREA))
    return np.stack(made)
