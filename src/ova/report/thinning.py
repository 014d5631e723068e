"""Fewer points, the same picture: a curve keeps every point that an eye could miss."""

from collections.abc import Sequence
from typing import Any

TOLERANCE = 1 / 1000  # of the unit square; a chart of 400 pixels moves by less than half of one


def thin(x: Sequence[float], y: Sequence[float], tolerance: float = TOLERANCE) -> list[int]:
    """The positions to keep, so that no dropped point lies further than the tolerance away.

    Vertical distance from the chord, in parts of the span of y (Douglas and Peucker, 1973).

    >>> thin([0.0, 0.5, 1.0], [0.0, 0.5, 1.0])
    [0, 2]
    >>> thin([0.0, 0.5, 1.0], [0.0, 1.0, 1.0])
    [0, 1, 2]
    """
    if len(x) < 3:
        return list(range(len(x)))
    across, up = (max(x) - min(x)) or 1, (max(y) - min(y)) or 1
    keep, open_spans = {0, len(x) - 1}, [(0, len(x) - 1)]
    while open_spans:
        a, b = open_spans.pop()
        far, at = 0.0, a
        for i in range(a + 1, b):
            away = distance((x[a], y[a]), (x[b], y[b]), (x[i], y[i]), (across, up))
            if away > far:
                far, at = away, i
        if far > tolerance:
            keep.add(at)
            open_spans += [(a, at), (at, b)]
    return sorted(keep)


def distance(
    a: tuple[float, float],
    b: tuple[float, float],
    p: tuple[float, float],
    span: tuple[float, float],
) -> float:
    """How far p lies from the segment a-b, after both axes are scaled to one."""
    dx, dy = (b[0] - a[0]) / span[0], (b[1] - a[1]) / span[1]
    px, py = (p[0] - a[0]) / span[0], (p[1] - a[1]) / span[1]
    length = dx * dx + dy * dy
    along = min(1.0, max(0.0, (px * dx + py * dy) / length)) if length else 0.0
    return float(((px - along * dx) ** 2 + (py - along * dy) ** 2) ** 0.5)


def thinned(
    columns: dict[str, list[Any]], x: str, y: str, tolerance: float = TOLERANCE
) -> dict[str, list[Any]]:
    """The columns x and y of a curve, thinned; a point without a value is left out."""
    points = zip(columns[x], columns[y], strict=True)
    whole = [(a, b) for a, b in points if None not in (a, b)]
    across, up = [a for a, _ in whole], [b for _, b in whole]
    keep = thin(across, up, tolerance)
    return {x: [across[i] for i in keep], y: [up[i] for i in keep]}
