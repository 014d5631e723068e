"""Whole-batch augmentation against one image at a time, and preparation against its formula."""

import numpy as np
import pytest
import torch

from ova.data.augmentation import CropFlip, normalise


def crops(x: np.ndarray, pad: int, mode: str) -> dict[bytes, tuple[int, int, bool]]:
    """Every image that padding, cropping and mirroring one image can give."""
    _, h, w = x.shape
    large = np.pad(x, ((0, 0), (pad, pad), (pad, pad)), mode)  # type: ignore[call-overload]
    return {
        (part[:, :, ::-1] if mirror else part).tobytes(): (top, left, mirror)
        for top in range(2 * pad + 1)
        for left in range(2 * pad + 1)
        for part in [large[:, top : top + h, left : left + w]]
        for mirror in (False, True)
    }


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 8, 11)])
@pytest.mark.parametrize(("pad", "mode"), [(4, "constant"), (4, "reflect"), (2, "reflect")])
def test_every_result_is_a_crop_and_all_crops_come(
    shape: tuple[int, int, int], pad: int, mode: str
) -> None:
    generator = torch.Generator().manual_seed(0)
    image = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    possible = crops(image.numpy(), pad, mode)
    assert len(possible) == 2 * (2 * pad + 1) ** 2
    many = image.expand(100 * len(possible), *shape)
    made = CropFlip(pad=pad, reflect=mode == "reflect")(many, generator)
    counts = dict.fromkeys(possible.values(), 0)
    for one in made.numpy():
        counts[possible[one.tobytes()]] += 1
    # A hundred of each expected; six standard deviations on either side.
    assert min(counts.values()) > 40
    assert max(counts.values()) < 160


def test_each_image_stays_in_its_row() -> None:
    images = torch.arange(200, dtype=torch.uint8).view(200, 1, 1, 1).expand(200, 3, 32, 32)
    made = CropFlip()(images, torch.Generator().manual_seed(0))
    assert torch.equal(made.amax((1, 2, 3)), images[:, 0, 0, 0])


def test_the_generator_decides() -> None:
    images = torch.randint(0, 256, (50, 3, 32, 32), dtype=torch.uint8)
    first, again, other = (
        CropFlip()(images, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_normalise_is_its_formula() -> None:
    mean, std = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
    x = torch.randint(0, 256, (5, 3, 8, 8), dtype=torch.uint8)
    kept = x.clone()
    exact = (x.double() / 255 - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)
    torch.testing.assert_close(normalise(mean, std)(x), exact.float(), rtol=1e-5, atol=1e-6)
    assert torch.equal(x, kept)


def test_who_is_mirrored_can_be_said() -> None:
    images = torch.randint(0, 256, (50, 3, 8, 8), dtype=torch.uint8)
    mirror = torch.arange(50) % 2
    noise = torch.Generator().manual_seed(0)
    made = CropFlip(pad=0)(images, noise, mirror)
    assert torch.equal(made[0::2], images[0::2])
    assert torch.equal(made[1::2], images[1::2].flip(-1))
    assert torch.equal(CropFlip(pad=0, flip=False)(images, noise, mirror), images)
