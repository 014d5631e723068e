"""JPEG compression without the file: what quantising the cosine transform does to an image.

Entropy coding is lossless, so coding and decoding it would be work for nothing. What is left is
the baseline codec of ITU T.81 with half-size chroma: colour transform, averaged chroma, 8 x 8
cosine transform, quantisation, and all of it backwards with triangle-filtered chroma.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ova.corruptions.compiled import compiled
from ova.corruptions.filters import Plane
from ova.corruptions.work import Images, Work

# Tables K.1 and K.2 of the standard.
LUMA = """
16 11 10 16 24 40 51 61  12 12 14 19 26 58 60 55  14 13 16 24 40 57 69 56  14 17 22 29 51 87 80 62
18 22 37 56 68 109 103 77  24 35 55 64 81 104 113 92  49 64 78 87 103 121 120 101
72 92 95 98 112 100 103 99
"""
CHROMA = """
17 18 24 47 99 99 99 99  18 21 26 66 99 99 99 99  24 26 56 99 99 99 99 99  47 66 99 99 99 99 99 99
99 99 99 99 99 99 99 99  99 99 99 99 99 99 99 99  99 99 99 99 99 99 99 99  99 99 99 99 99 99 99 99
"""


def jpeg_compression(work: Work) -> Images:
    """The image after JPEG compression at a quality."""
    luma, chroma, cosine = tables(int(work.strength))
    out = np.empty_like(work.images)
    code_all(work.images, luma, chroma, cosine, np.ascontiguousarray(cosine.T), out)
    return out


@lru_cache(maxsize=10)
def tables(quality: int) -> tuple[Plane, Plane, Plane]:
    """The two quantisation tables of a quality, and the 8 x 8 cosine transform.

    >>> tables(50)[0][0, :3]
    array([16., 11., 10.], dtype=float32)
    """
    scale = 5000 // quality if quality < 50 else 200 - 2 * quality
    luma, chroma = (np.array(table.split(), int).reshape(8, 8) for table in (LUMA, CHROMA))
    quantisers = [
        np.clip((t * scale + 50) // 100, 1, 255).astype(np.float32) for t in (luma, chroma)
    ]
    k, i = np.mgrid[:8, :8]
    cosine = np.cos((2 * i + 1) * k * np.pi / 16) * np.where(k == 0, np.sqrt(1 / 8), 0.5)
    return quantisers[0], quantisers[1], cosine.astype(np.float32)


@compiled
def code_all(
    x: NDArray[np.uint8],
    luma: Plane,
    chroma: Plane,
    cosine: Plane,
    turned: Plane,
    out: NDArray[np.uint8],
) -> None:
    height, width = x.shape[1:3]
    tall, wide = (height + 15) // 16 * 16, (width + 15) // 16 * 16
    full = np.empty((3, tall, wide), np.int32)
    half = np.empty((2, tall // 2, wide // 2), np.int32)
    for n in range(x.shape[0]):
        to_luma_chroma(x[n], full)
        for c in range(2):
            halve(full[c + 1], (height + 1) // 2, half[c])
            code_plane(half[c], chroma, cosine, turned)
        code_plane(full[0], luma, cosine, turned)
        for c in range(2):
            double(half[c], (height + 1) // 2, (width + 1) // 2, full[c + 1])
        to_rgb(full, out[n])


@compiled
def to_luma_chroma(x: NDArray[np.uint8], out: NDArray[np.int32]) -> None:
    """Y, Cb, Cr in 16-bit fixed point; beyond the image its last row and column go on."""
    height, width = x.shape[:2]
    for j in range(out.shape[1]):
        y = min(j, height - 1)
        for i in range(out.shape[2]):
            k = min(i, width - 1)
            r, g, b = np.int32(x[y, k, 0]), np.int32(x[y, k, 1]), np.int32(x[y, k, 2])
            out[0, j, i] = (19595 * r + 38470 * g + 7471 * b + 32768) >> 16
            out[1, j, i] = (-11059 * r - 21709 * g + 32768 * b + 8421375) >> 16
            out[2, j, i] = (32768 * r - 27439 * g - 5329 * b + 8421375) >> 16


@compiled
def halve(plane: NDArray[np.int32], rows: int, out: NDArray[np.int32]) -> None:
    """Means of 2 x 2, ties broken down and up in turn; rows beyond the image repeat the last mean."""
    for j in range(out.shape[0]):
        y = 2 * min(j, rows - 1)
        for i in range(out.shape[1]):
            total = (
                plane[y, 2 * i]
                + plane[y, 2 * i + 1]
                + plane[y + 1, 2 * i]
                + plane[y + 1, 2 * i + 1]
            )
            out[j, i] = (total + 1 + (i & 1)) >> 2


@compiled
def code_plane(plane: NDArray[np.int32], quantiser: Plane, cosine: Plane, turned: Plane) -> None:
    """Each 8 x 8 block through cosine transform, quantisation, and back, in place."""
    a, b = np.empty((8, 8), np.float32), np.empty((8, 8), np.float32)
    for y in range(0, plane.shape[0], 8):
        for x in range(0, plane.shape[1], 8):
            for j in range(8):
                for i in range(8):
                    a[j, i] = plane[y + j, x + i] - 128
            product(cosine, a, b)
            product(b, turned, a)
            for j in range(8):
                for i in range(8):
                    q = quantiser[j, i]
                    # A tie goes away from zero; the little more keeps it a tie in float32.
                    level = np.floor(abs(a[j, i]) / q + np.float32(0.5001))
                    a[j, i] = q * level if a[j, i] > 0 else -q * level
            product(turned, a, b)
            product(b, cosine, a)
            for j in range(8):
                for i in range(8):
                    v = np.int32(np.floor(a[j, i] + np.float32(128.5)))
                    plane[y + j, x + i] = min(max(v, 0), 255)


@compiled
def product(a: Plane, b: Plane, out: Plane) -> None:
    """out = a b for 8 x 8 matrices, row by row."""
    for i in range(8):
        for j in range(8):
            out[i, j] = a[i, 0] * b[0, j]
        for k in range(1, 8):
            w = a[i, k]
            for j in range(8):
                out[i, j] += w * b[k, j]


@compiled
def double(plane: NDArray[np.int32], rows: int, columns: int, out: NDArray[np.int32]) -> None:
    """Twice the size by a triangle filter: 3/4 of the nearer and 1/4 of the farther neighbour."""
    for j in range(2 * rows):
        near = j // 2
        far = min(max(near - 1 if j % 2 == 0 else near + 1, 0), rows - 1)
        for i in range(columns):
            this = 3 * plane[near, i] + plane[far, i]
            before = 3 * plane[near, max(i - 1, 0)] + plane[far, max(i - 1, 0)]
            after = 3 * plane[near, min(i + 1, columns - 1)] + plane[far, min(i + 1, columns - 1)]
            out[j, 2 * i] = (3 * this + before + 8) >> 4
            out[j, 2 * i + 1] = (3 * this + after + 7) >> 4


@compiled
def to_rgb(full: NDArray[np.int32], out: NDArray[np.uint8]) -> None:
    """R, G, B in 16-bit fixed point."""
    for j in range(out.shape[0]):
        for i in range(out.shape[1]):
            y, cb, cr = full[0, j, i], full[1, j, i] - 128, full[2, j, i] - 128
            r = y + ((91881 * cr + 32768) >> 16)
            g = y + ((-22554 * cb - 46802 * cr + 32768) >> 16)
            b = y + ((116130 * cb + 32768) >> 16)
            out[j, i, 0] = min(max(r, 0), 255)
            out[j, i, 1] = min(max(g, 0), 255)
            out[j, i, 2] = min(max(b, 0), 255)
