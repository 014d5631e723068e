"""Fidelity to the reference implementation: its arrays on some images, its statistics on all."""

import io
import json

import cv2
import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from ova.corruptions import CORRUPTIONS, SEVERITIES, corrupt
from ova.data.frost import find_textures

FIXED = (  # do not depend on the seed
    *("gaussian_blur", "defocus_blur", "zoom_blur"),
    *("brightness", "contrast", "saturate", "pixelate", "jpeg_compression"),
)
RANDOM = [name for name in CORRUPTIONS if name not in FIXED]
LOOSE = (
    *("frost", "snow", "fog", "spatter"),
    *("elastic_transform", "glass_blur", "motion_blur"),
)
NATURES = ("mean_abs_change", "mean", "std")


@pytest.fixture(scope="module")
def reference(data_dir):
    return data_dir / "corruption-reference"


@pytest.fixture(scope="module")
def textures(data_dir):
    found = find_textures(data_dir)
    assert found.source == "original"
    return found


@pytest.fixture(scope="module")
def clean(data_dir):
    """All 10,000 test images of CIFAR-10."""
    table = pq.read_table(data_dir / "cifar10" / "plain_text" / "test-00000-of-00001.parquet")
    files = (row["bytes"] for row in table["img"].to_pylist())
    return np.stack([np.asarray(Image.open(io.BytesIO(file)).convert("RGB")) for file in files])


def natures(out, clean):
    """Mean absolute change, mean, and standard deviation, in grey levels."""
    a, b = (images.reshape(len(images), -1) for images in (out, clean))
    mean, deviation = (float(value[0, 0]) for value in cv2.meanStdDev(a))
    return cv2.norm(a, b, cv2.NORM_L1) / a.size, mean, deviation


@pytest.mark.parametrize("name", FIXED)
def test_deterministic_corruptions_are_within_a_fifth_of_a_grey_level(reference, name):
    # Half a grey level is what we promise; what is left is whole numbers missed by a rounding.
    for file, severities in (("cifar", SEVERITIES), ("imagenet", (1, 3, 5))):
        with np.load(reference / f"{file}.npz") as arrays:
            clean, expected = arrays["clean"], arrays[name]
        for severity, theirs in zip(severities, expected, strict=True):
            images = clean.reshape(-1, *clean.shape[-3:])
            ours = corrupt(images, name, severity, constants=file).reshape(clean.shape)
            assert np.abs(ours.astype(int) - theirs).mean() < 0.2


@pytest.mark.parametrize("name", ["jpeg_compression", "pixelate", "contrast"])
def test_three_are_equal_to_the_last_bit(reference, name):
    with np.load(reference / "cifar.npz") as arrays:
        ours = [corrupt(arrays["clean"], name, severity) for severity in SEVERITIES]
        assert np.array_equal(ours, arrays[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", CORRUPTIONS)
def test_statistics_over_all_test_images(reference, clean, textures, name):
    rows = json.loads((reference / "cifar-statistics.json").read_text())[name]
    limit = 0.05 if name in LOOSE else 0.03
    for severity, row in zip(SEVERITIES, rows, strict=True):
        out = corrupt(clean, name, severity, textures=textures)
        ours = dict(zip(NATURES, natures(out, clean), strict=True))
        assert ours == pytest.approx({key: row[key] for key in NATURES}, rel=limit)


@pytest.mark.slow
def test_frost_of_our_own_has_the_statistics_of_the_originals(reference, clean):
    rows = json.loads((reference / "cifar-statistics.json").read_text())["frost"]
    for severity, row in zip(SEVERITIES, rows, strict=True):
        ours = dict(zip(NATURES, natures(corrupt(clean, "frost", severity), clean), strict=True))
        assert ours == pytest.approx({key: row[key] for key in NATURES}, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", RANDOM)
def test_large_images_vary_around_the_reference(reference, textures, name):
    """There is one reference image per severity; it must lie where ours of many seeds lie."""
    with np.load(reference / "imagenet.npz") as arrays:
        clean, expected = arrays["clean"], arrays[name]
    for severity, theirs in zip((1, 3, 5), expected, strict=True):
        batch = np.broadcast_to(clean, (24, *clean.shape))
        out = corrupt(batch, name, severity, constants="imagenet", textures=textures)
        ours = np.array([natures(one, clean) for one in out])
        value = np.array(natures(theirs, clean))
        low, high = ours.min(0), ours.max(0)
        room = np.maximum((high - low) / 2, 0.05 * value)
        assert (low - room <= value).all()
        assert (value <= high + room).all()
