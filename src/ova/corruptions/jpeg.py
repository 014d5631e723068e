"""JPEG compression without the file: what quantising the cosine transform does to an image.

Entropy coding is lossless, so coding and decoding it would be work for nothing. What is left is
the baseline codec of ITU T.81 with half-size chroma: colour transform, averaged chroma, 8 x 8
cosine transform, quantisation, and all of it backwards with triangle-filtered chroma.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ova.corruptions.compiled import compiled
from ova.corruptions.filters import Row
from ova.corruptions.work import Images, Work

Plane = NDArray[np.int32]

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


# The constants of the fast cosine transform, times 2^13.
C298, C390, C541, C765, C899, C1175, C1501, C1847, C1961, C2053, C2562, C3072 = (
    round(c * 2**13)
    for c in (
        *(0.298631336, 0.390180644, 0.541196100, 0.765366865, 0.899976223, 1.175875602),
        *(1.501321110, 1.847759065, 1.961570560, 2.053119869, 2.562915447, 3.072711026),
    )
)


def jpeg_compression(work: Work) -> Images:
    """The image after JPEG compression at a quality."""
    luma, chroma = quantisers(int(work.strength))
    out = np.empty_like(work.images)
    code_all(work.images, luma, chroma, out)
    return out


@lru_cache(maxsize=10)
def quantisers(quality: int) -> tuple[Row, Row]:
    """The two quantisation tables of a quality, row by row.

    >>> quantisers(50)[0][:3]
    array([16., 11., 10.], dtype=float32)
    """
    scale = 5000 // quality if quality < 50 else 200 - 2 * quality
    tables = (np.array(table.split(), int) for table in (LUMA, CHROMA))
    luma, chroma = (np.clip((t * scale + 50) // 100, 1, 255).astype(np.float32) for t in tables)
    return luma, chroma


@compiled
def code_all(x: NDArray[np.uint8], luma: Row, chroma: Row, out: NDArray[np.uint8]) -> None:
    """Code and decode each image."""
    height, width = x.shape[1:3]
    tall, wide = (height + 15) // 16 * 16, (width + 15) // 16 * 16
    full = np.empty((3, tall, wide), np.int32)
    half = np.empty((2, tall // 2, wide // 2), np.int32)
    for n in range(x.shape[0]):
        to_luma_chroma(x[n], full)
        for c in range(2):
            halve(full[c + 1], (height + 1) // 2, half[c])
            code_plane(half[c], chroma)
        code_plane(full[0], luma)
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
def code_plane(plane: Plane, quantiser: Row) -> None:
    """Each 8 x 8 block through cosine transform, quantisation, and back, in place."""
    block = np.empty((8, 8), np.int32)
    for y in range(0, plane.shape[0], 8):
        for x in range(0, plane.shape[1], 8):
            for j in range(8):
                for i in range(8):
                    block[i, j] = plane[y + j, x + i] - 128
            forward(block, False)
            turn(block)
            forward(block, True)
            quantise(block.reshape(64), quantiser)
            inverse(block, 11)
            turn(block)
            inverse(block, 18)
            for j in range(8):
                for i in range(8):
                    plane[y + j, x + i] = min(max(block[i, j] + 128, 0), 255)


@compiled
def turn(block: Plane) -> None:
    """Swap rows and columns."""
    for j in range(8):
        for i in range(j):
            block[i, j], block[j, i] = block[j, i], block[i, j]


@compiled
def quantise(block: Plane, quantiser: Row) -> None:
    """Nearest multiple of the quantiser, ties away from zero.

    The transform is scaled by 8 and whole, so a quarter more decides no case that is not a tie.
    """
    for i in range(64):
        q = quantiser[i]
        level = np.int32((np.float32(abs(block[i])) + 4 * q + np.float32(0.25)) * (1 / (8 * q)))
        whole = level * np.int32(q)
        block[i] = whole if block[i] >= 0 else -whole


@compiled
def shift(value: int, places: int) -> int:
    """Divide by a power of two and round."""
    return (value + (1 << (places - 1))) >> places


@compiled
def forward(a: Plane, last: bool) -> None:
    """The cosine transform of the eight columns, in whole numbers.

    Loeffler, Ligtenberg, Moschytz, "Practical fast 1-D DCT algorithms with 11 multiplications",
    1989, with 13 bits after the point. The first pass keeps two bits more than the last.
    """
    down = 15 if last else 11
    for i in range(8):
        s0, s1, s2, s3 = a[0, i] + a[7, i], a[1, i] + a[6, i], a[2, i] + a[5, i], a[3, i] + a[4, i]
        d4, d5, d6, d7 = a[3, i] - a[4, i], a[2, i] - a[5, i], a[1, i] - a[6, i], a[0, i] - a[7, i]
        e0, e1, e2, e3 = s0 + s3, s1 + s2, s1 - s2, s0 - s3
        a[0, i] = (e0 + e1 + 2) >> 2 if last else (e0 + e1) << 2
        a[4, i] = (e0 - e1 + 2) >> 2 if last else (e0 - e1) << 2
        z = (e2 + e3) * C541
        a[2, i] = shift(z + e3 * C765, down)
        a[6, i] = shift(z - e2 * C1847, down)
        o7, o5, o3, o1 = odd_part(d4, d5, d6, d7)
        a[7, i], a[5, i] = shift(o7, down), shift(o5, down)
        a[3, i], a[1, i] = shift(o3, down), shift(o1, down)


@compiled
def odd_part(t0: int, t1: int, t2: int, t3: int) -> tuple[int, int, int, int]:
    """The odd half, the same forwards and backwards."""
    z3, z4 = t0 + t2, t1 + t3
    z5 = (z3 + z4) * C1175
    z1, z2 = -(t0 + t3) * C899, -(t1 + t2) * C2562
    z3, z4 = z5 - z3 * C1961, z5 - z4 * C390
    return t0 * C298 + z1 + z3, t1 * C2053 + z2 + z4, t2 * C3072 + z2 + z3, t3 * C1501 + z1 + z4


@compiled
def inverse(a: Plane, places: int) -> None:
    """The inverse transform of the eight columns; `places` bits are rounded off."""
    for i in range(8):
        z = (a[2, i] + a[6, i]) * C541
        t2, t3 = z - a[6, i] * C1847, z + a[2, i] * C765
        t0, t1 = (a[0, i] + a[4, i]) << 13, (a[0, i] - a[4, i]) << 13
        e0, e1, e2, e3 = t0 + t3, t1 + t2, t1 - t2, t0 - t3
        o0, o1, o2, o3 = odd_part(a[7, i], a[5, i], a[3, i], a[1, i])
        a[0, i], a[7, i] = shift(e0 + o3, places), shift(e0 - o3, places)
        a[1, i], a[6, i] = shift(e1 + o2, places), shift(e1 - o2, places)
        a[2, i], a[5, i] = shift(e2 + o1, places), shift(e2 - o1, places)
        a[3, i], a[4, i] = shift(e3 + o0, places), shift(e3 - o0, places)


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
