"""Each fast kernel against a slow and obvious version of the same operation."""

import colorsys
import io
import math

import cv2
import numpy as np
import pytest
import scipy.ndimage as ndi
import scipy.stats
from PIL import Image

from ova.corruptions import CORRUPTIONS, corrupt
from ova.corruptions.blur import displace, motion_paths, motion_weights
from ova.corruptions.draws import bits, keys, normal_table, uniform
from ova.corruptions.elastic import affine_maps, sample, warp
from ova.corruptions.filters import gaussian_matrix, smooth, zoom_lerp
from ova.corruptions.weather import fill_plasma

CIFAR = {name: corruption.cifar for name, corruption in CORRUPTIONS.items()}
IMAGENET = {name: corruption.imagenet for name, corruption in CORRUPTIONS.items()}
RANDOM = np.random.default_rng(0)
SIZES = [(8, 8), (9, 13), (15, 34), (32, 32), (33, 47)]
KEY = keys(0, "test", 1, np.array([5]))[0]


def image(height, width):
    coarse = RANDOM.integers(0, 256, (height // 3 + 1, width // 3 + 1, 3))
    fine = RANDOM.integers(-30, 30, (height, width, 3))
    return np.clip(coarse.repeat(3, 0).repeat(3, 1)[:height, :width] + fine, 0, 255).astype(
        np.uint8
    )


def far(ours, theirs):
    return np.abs(ours.astype(int) - theirs.astype(int)).mean()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("constants", "qualities"), [("cifar", CIFAR), ("imagenet", IMAGENET)])
def test_jpeg_equals_a_written_and_read_file(size, constants, qualities):
    x = image(*size)
    for severity, quality in enumerate(qualities["jpeg_compression"], 1):
        file = io.BytesIO()
        Image.fromarray(x).save(file, "JPEG", quality=quality)
        ours = corrupt(x[None], "jpeg_compression", severity, constants=constants)[0]
        assert np.array_equal(ours, np.asarray(Image.open(file)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("constants", "shares"), [("cifar", CIFAR), ("imagenet", IMAGENET)])
def test_pixelate_equals_two_box_filters(size, constants, shares):
    x = image(*size)
    height, width = size
    for severity, share in enumerate(shares["pixelate"], 1):
        small = Image.fromarray(x).resize(
            (int(width * share), int(height * share)), Image.Resampling.BOX
        )
        ours = corrupt(x[None], "pixelate", severity, constants=constants)[0]
        assert np.array_equal(ours, np.asarray(small.resize((width, height), Image.Resampling.BOX)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("constants", "sigmas"), [("cifar", CIFAR), ("imagenet", IMAGENET)])
def test_gaussian_blur(size, constants, sigmas):
    x = image(*size)
    for severity, sigma in enumerate(sigmas["gaussian_blur"], 1):
        slow = ndi.gaussian_filter(x / 255.0, (sigma, sigma, 0), mode="nearest") * 255
        assert far(corrupt(x[None], "gaussian_blur", severity, constants=constants)[0], slow) < 0.02


@pytest.mark.parametrize("size", [(12, 12), (32, 32), (33, 47)])
@pytest.mark.parametrize(("constants", "disks"), [("cifar", CIFAR), ("imagenet", IMAGENET)])
def test_defocus_blur(size, constants, disks):
    x = image(*size)
    for severity, (radius, edge) in enumerate(disks["defocus_blur"], 1):
        reach, soft = (8, 3) if radius <= 8 else (radius, 5)
        y, i = np.mgrid[-reach : reach + 1, -reach : reach + 1]
        disk = np.float64(i**2 + y**2 <= radius**2)
        disk = cv2.GaussianBlur((disk / disk.sum()).astype(np.float32), (soft, soft), edge)
        slow = np.stack([ndi.correlate(x[..., c] / 1.0, disk, mode="mirror") for c in range(3)], -1)
        ours = corrupt(x[None], "defocus_blur", severity, constants=constants)[0]
        assert far(ours, np.clip(slow + 1e-4, 0, 255)) < 0.02


@pytest.mark.parametrize("size", [(8, 8), (15, 34), (32, 32)])
def test_zoom_blur(size):
    x = image(*size)
    for constants, table in (("cifar", CIFAR), ("imagenet", IMAGENET)):
        for severity, (end, step) in enumerate(table["zoom_blur"], 1):
            layers = [x / 255.0]
            for factor in np.arange(1, end, step):
                centre = x / 255.0
                for axis in (0, 1):
                    length = math.ceil(size[axis] / factor)
                    start = (size[axis] - length) // 2
                    centre = centre.take(range(start, start + length), axis)
                big = ndi.zoom(centre, (factor, factor, 1), order=1)
                top, left = ((big.shape[a] - size[a]) // 2 for a in (0, 1))
                layers.append(big[top : top + size[0], left : left + size[1]])
            ours = corrupt(x[None], "zoom_blur", severity, constants=constants)[0]
            assert far(ours, np.mean(layers, axis=0) * 255 + 1e-4) < 0.02


def test_zoom_lerp_looks_where_scipy_looks():
    for size, factor in ((32, 1.75), (32, 2.25), (224, 4.5), (224, 3.0), (9, 2.5)):
        ramp = np.arange(size, dtype=float)
        length = math.ceil(size / factor)
        start = (size - length) // 2
        big = ndi.zoom(ramp[start : start + length], factor, order=1)
        trim = (len(big) - size) // 2
        left, weight = zoom_lerp(size, factor)
        np.testing.assert_allclose(left + weight, big[trim : trim + size], atol=1e-4)


def test_brightness_and_saturation_equal_colorsys():
    x = image(16, 16)
    x[0, :8], x[1, :4] = 77, 0  # grey, and black
    for severity in range(1, 6):
        added = CIFAR["brightness"][severity - 1]
        factor, more = CIFAR["saturate"][severity - 1]
        light, rich = np.empty(x.shape), np.empty(x.shape)
        for place in np.ndindex(16, 16):
            h, s, v = colorsys.rgb_to_hsv(*(x[place] / 255.0))
            light[place] = colorsys.hsv_to_rgb(h, s, min(v + added, 1))
            rich[place] = colorsys.hsv_to_rgb(h, min(s * factor + more, 1), v)
        # A whole number that misses itself by a rounding is cut to the one below, on either side.
        assert far(corrupt(x[None], "brightness", severity)[0], light * 255 + 1e-9) < 0.1
        assert far(corrupt(x[None], "saturate", severity)[0], rich * 255 + 1e-9) < 0.2


def test_contrast():
    x = image(17, 23)
    for severity, kept in enumerate(CIFAR["contrast"], 1):
        mean = x.mean((0, 1))
        slow = (x - mean) * kept + mean
        assert far(corrupt(x[None], "contrast", severity)[0], slow + 1e-9) < 1e-3


@pytest.mark.parametrize(("reach", "rounds"), [(1, 1), (1, 2), (2, 3), (4, 2)])
def test_glass_copies_pixels_in_sequence_and_never_swaps(reach, rounds):
    x = image(20, 17)
    fast = x.reshape(20, -1).copy()
    displace(fast, KEY, reach, rounds)
    slow = x.copy()
    for turn in range(rounds):
        for h in range(20 - reach, reach, -1):
            for w in range(17 - reach, reach, -1):
                b = int(bits(KEY, (turn * 20 + h) * 17 + w))
                dx, dy = (((b >> s) & 0xFFFF) * 2 * reach // 65536 - reach for s in (0, 16))
                assert -reach <= min(dx, dy) <= max(dx, dy) < reach
                slow[h, w] = slow[h + dy, w + dx]
    assert np.array_equal(fast.reshape(x.shape), slow)
    assert len(np.unique(slow.reshape(-1, 3), axis=0)) < len(np.unique(x.reshape(-1, 3), axis=0))


def test_motion_blur_adds_shifted_images():
    x = image(32, 32)
    for severity, (radius, sigma) in enumerate(CIFAR["motion_blur"], 1):
        ours = corrupt(x[None], "motion_blur", severity)[0]
        angle = math.radians(
            90 * float(uniform(keys(0, "motion_blur", severity, np.array([0]))[0], 0)) - 45
        )
        weights = np.exp(-(np.arange(2 * radius + 1) ** 2) / (2 * sigma**2))
        slow = np.zeros(x.shape)
        for i, w in enumerate(weights / weights.sum()):
            down, right = (math.ceil(i * f(angle) - 0.5) for f in (math.sin, math.cos))
            rows, columns = (np.clip(np.arange(32) + by, 0, 31) for by in (down, right))
            slow += w * x[rows][:, columns]
        assert far(ours, slow + 1e-4) < 0.01


def test_motion_weights_and_path():
    weights = motion_weights(20, 15)
    assert len(weights) == 41
    assert weights.sum() == pytest.approx(1, abs=1e-6)
    across, up = motion_paths(np.array([0, -90], np.float32), 4) - 4
    assert across.tolist() == [[0, 0], [0, 1], [0, 2], [0, 3]]
    assert up.tolist() == [[0, 0], [-1, 0], [-2, 0], [-3, 0]]


def test_plasma_is_the_diamond_square_algorithm():
    size, decay = 16, 1.7
    fast = np.empty((size, size), np.float32)
    fill_plasma(KEY, decay, fast)
    slow = np.zeros((size, size))
    step, wide = size, 100.0
    draw = np.array(
        [[2 * uniform(KEY, y * size + x) - 1 for x in range(size)] for y in range(size)]
    )
    while step >= 2:
        half = step // 2
        corner = slow[::step, ::step]
        total = corner + np.roll(corner, -1, 0)
        total = total + np.roll(total, -1, 1)
        square = np.s_[half::step, half::step]
        slow[square] = total / 4 + wide**2 * draw[square]
        middle = slow[half::step, half::step]
        for place, sums in (
            (
                np.s_[::step, half::step],
                middle + np.roll(middle, 1, 0) + corner + np.roll(corner, -1, 1),
            ),
            (
                np.s_[half::step, ::step],
                middle + np.roll(middle, 1, 1) + corner + np.roll(corner, -1, 0),
            ),
        ):
            slow[place] = sums / 4 + wide**2 * draw[place]
        step, wide = half, wide / decay
    np.testing.assert_allclose(fast, slow, rtol=1e-4, atol=0.05)


@pytest.mark.parametrize(("edge", "truncate"), [("edge", 4.0), ("symmetric", 3.0)])
@pytest.mark.parametrize("sigma", [0.5, 2.0, 30.0])
def test_smooth_is_a_gaussian_filter_also_wider_than_the_image(edge, truncate, sigma):
    field = RANDOM.normal(size=(13, 21)).astype(np.float32)
    down, across = (gaussian_matrix(size, sigma, truncate, edge) for size in field.shape)
    out = np.empty_like(field)
    smooth(field, down, across, np.empty_like(field), out)
    theirs = {"edge": "nearest", "symmetric": "reflect"}[edge]  # as scipy calls them
    slow = ndi.gaussian_filter(field.astype(float), sigma, mode=theirs, truncate=truncate)
    np.testing.assert_allclose(out, slow, atol=1e-5)


def test_warp_and_sample_interpolate_like_scipy():
    x = image(23, 31)
    m = np.array([[0.9, 0.2, 3.0], [-0.3, 1.1, -9.0]])
    warped = np.empty(x.shape, np.float32)
    warp(x, m, warped)
    row, column = np.mgrid[:23, :31]
    there = [m[k, 0] * column + m[k, 1] * row + m[k, 2] for k in (1, 0)]
    slow = [ndi.map_coordinates(x[..., c] / 1.0, there, order=1, mode="mirror") for c in range(3)]
    np.testing.assert_allclose(warped, np.stack(slow, -1), atol=1e-2)

    dx, dy = (RANDOM.uniform(-9, 9, (23, 31)).astype(np.float32) for _ in range(2))
    out = np.empty_like(x)
    sample(warped, dx, dy, 2.0, out)
    there = [row + 2 * dy, column + 2 * dx]
    slow = [ndi.map_coordinates(warped[..., c], there, order=1, mode="reflect") for c in range(3)]
    assert far(out, np.stack(slow, -1) + 1e-3) < 0.02


def test_affine_maps_send_the_moved_corners_back():
    found = affine_maps(keys(0, "test", 1, np.arange(5)), 32, 32, 2.5)
    none = affine_maps(keys(0, "test", 1, np.arange(5)), 32, 32, 0.0)
    np.testing.assert_allclose(none, np.broadcast_to(np.eye(2, 3), none.shape), atol=1e-12)
    assert np.abs(found - none).max() > 0.05
    assert np.abs(found[:, :, :2] - np.eye(2)).max() < 1


def test_shot_noise_is_poisson():
    c = IMAGENET["shot_noise"][2]
    level = 100
    x = np.full((200, 32, 32, 3), level, np.uint8)
    out = corrupt(x, "shot_noise", 3, constants="imagenet")
    counts = np.bincount(np.round(out.ravel() / 255 * c).astype(int), minlength=c + 1)
    expected = scipy.stats.poisson.pmf(np.arange(c + 1), level / 255 * c)
    expected[c] += 1 - expected.sum()  # all beyond white are white
    keep = expected * counts.sum() > 5
    assert (
        scipy.stats.chisquare(
            counts[keep], expected[keep] / expected[keep].sum() * counts[keep].sum()
        ).pvalue
        > 1e-3
    )


def test_impulse_noise_is_half_black_half_white():
    grey = np.full((300, 32, 32, 3), 128, np.uint8)
    out = corrupt(grey, "impulse_noise", 5)
    black, white = (out == 0).mean(), (out == 255).mean()
    assert black == pytest.approx(0.035, rel=0.02)
    assert white == pytest.approx(0.035, rel=0.02)
    assert black + white + (out == 128).mean() == 1


def test_draws_are_uniform_normal_and_uncorrelated():
    table = normal_table().astype(float)
    assert table.mean() == pytest.approx(0, abs=1e-6)
    assert table.var() == pytest.approx(1, abs=1e-6)
    assert (table**4).mean() == pytest.approx(3, abs=0.01)
    u = np.array([[uniform(k, i) for i in range(400)] for k in keys(3, "x", 2, np.arange(200))])
    assert scipy.stats.kstest(u.ravel(), "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(u[:, :-1].ravel(), u[:, 1:].ravel())[0, 1]) < 0.02
    assert abs(np.corrcoef(u[:-1].ravel(), u[1:].ravel())[0, 1]) < 0.02


def test_keys_differ_in_everything_that_names_an_image():
    several = [
        int(keys(seed, name, severity, np.array([i]))[0])
        for seed in (0, 1, -1)
        for name in ("fog", "snow")
        for severity in (1, 2)
        for i in (0, 1, 2**40)
    ]
    assert len(set(several)) == len(several)
