"""AugMix and PixMix: each operation against Pillow one image at a time, the mixtures by their promises."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from torch import Tensor

from ova.data.augmix import augmix
from ova.data.fractals import fractals
from ova.data.image_operations import (
    COLOURS,
    MAPS,
    autocontrast,
    equalize,
    posterize,
    randomly_changed,
    rotation,
    shear_x,
    shear_y,
    solarize,
    translate_x,
    translate_y,
    warped,
)
from ova.data.pixmix import added, multiplied, pixmix

MIXES = {"augmix": augmix, "pixmix": pixmix}
EVERY = pytest.mark.parametrize("mix", MIXES.values(), ids=MIXES)


def images(n: int = 6, side: int = 24, channels: int = 3) -> Tensor:
    """Smooth pictures, as photographs are, with some flat ones among them."""
    draw = torch.Generator().manual_seed(0)
    coarse = 255 * torch.rand(n, channels, 4, 4, generator=draw)
    x = torch.nn.functional.interpolate(coarse, (side, side), mode="bicubic").clamp(20, 230)
    x[0] = 77
    return x.round()


def by_pillow(x: Tensor, change: Callable[[Image.Image, int], Image.Image]) -> Tensor:
    found = []
    for number, image in enumerate(x):
        drawn = Image.fromarray(image.permute(1, 2, 0).to(torch.uint8).numpy())
        found.append(torch.from_numpy(np.array(change(drawn, number))).permute(2, 0, 1).float())
    return torch.stack(found)


def levels(n: int = 6) -> Tensor:
    return torch.linspace(0.1, 9.9, n)


def test_autocontrast_and_equalize() -> None:
    x = images()
    close = by_pillow(x, lambda image, _: ImageOps.autocontrast(image))
    assert (autocontrast(x, levels()) - close).abs().max() <= 1  # a rounding
    torch.testing.assert_close(
        equalize(x, levels()),
        by_pillow(x, lambda image, _: ImageOps.equalize(image)),
        rtol=0,
        atol=0,
    )


def test_posterize_and_solarize() -> None:
    x, level = images(), levels()
    bits = [4 - int(v * 4 / 10) for v in level.tolist()]
    slow = by_pillow(x, lambda image, i: ImageOps.posterize(image, bits[i]))
    torch.testing.assert_close(posterize(x, level), slow, rtol=0, atol=0)
    limits = [256 - int(v * 256 / 10) for v in level.tolist()]
    slow = by_pillow(x, lambda image, i: ImageOps.solarize(image, limits[i]))
    torch.testing.assert_close(solarize(x, level), slow, rtol=0, atol=0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_maps(sign: float) -> None:
    x, level = images(side=24), levels()
    signs = torch.full_like(level, sign)
    numbers = level.tolist()

    def affine(*data: float) -> Callable[[Image.Image], Image.Image]:
        return lambda image: image.transform(
            image.size, Image.Transform.AFFINE, data, resample=Image.Resampling.BILINEAR
        )

    moved = [sign * int(v * 24 / 30) for v in numbers]
    pillow = {
        rotation: lambda image, i: image.rotate(
            sign * int(numbers[i] * 3), resample=Image.Resampling.BILINEAR
        ),
        shear_x: lambda image, i: affine(1, sign * 0.03 * numbers[i], 0, 0, 1, 0)(image),
        shear_y: lambda image, i: affine(1, 0, 0, sign * 0.03 * numbers[i], 1, 0)(image),
        translate_x: lambda image, i: affine(1, 0, moved[i], 0, 1, 0)(image),
        translate_y: lambda image, i: affine(1, 0, 0, 0, 1, moved[i])(image),
    }
    assert set(pillow) == set(MAPS)
    for make, change in pillow.items():
        ours, slow = warped(x, make(signs, level, (24, 24))), by_pillow(x, change)
        different = ((ours - slow).abs() > 2).float().mean()
        assert different < 0.02, (
            make.__name__
        )  # a pixel at the border, on one side of it or the other


def test_each_image_has_an_operation_of_its_own() -> None:
    x = images()[1:2].expand(400, -1, -1, -1)
    out = randomly_changed(x, 3.0, torch.Generator().manual_seed(0))
    assert len(out.unique(dim=0)) > len(COLOURS) + len(MAPS)
    assert out.min() >= 0
    assert out.max() <= 255


@EVERY
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("white", [16, 255])
def test_same_seed_same_images_within_their_range(
    mix: Callable[..., Tensor], channels: int, white: int
) -> None:
    x = (images(40, channels=channels) * white / 255).round().to(torch.uint8)
    once, twice, other = (mix(x, torch.Generator().manual_seed(s), white) for s in (0, 0, 1))
    assert once.dtype == torch.uint8
    assert once.shape == x.shape
    assert int(once.max()) <= white
    assert torch.equal(once, twice)
    assert not torch.equal(once, other)
    assert not torch.equal(once, x)


@EVERY
def test_no_images_are_no_images(mix: Callable[..., Tensor]) -> None:
    empty = images().to(torch.uint8)[:0]
    assert mix(empty, torch.Generator().manual_seed(0)).shape == empty.shape


def test_augmix_stays_between_the_image_and_its_changes() -> None:
    """A convex mixture: a flat image can be changed to black borders and to its negative, no more."""
    x = torch.full((200, 3, 8, 8), 77, dtype=torch.uint8)
    out = augmix(x, torch.Generator().manual_seed(0)).float()
    assert out.max() <= 178  # solarized
    assert 40 < out.mean() < 110
    assert (out == 77).all((1, 2, 3)).float().mean() < 0.6


def test_pixmix_adds_and_multiplies() -> None:
    one, other = torch.tensor([0.5, 1.0, 0.25]), torch.tensor([0.5, 0.25, 1.0])
    half = torch.tensor(0.5)
    torch.testing.assert_close(added(one, other, half, half), (one + other) / 2)
    slow = (2 * one).sqrt() * (2 * other).sqrt() / 2
    torch.testing.assert_close(multiplied(one, other, half, half), slow)


def test_fractals_are_pictures_that_differ() -> None:
    found = fractals(16, 32)
    assert found.shape == (16, 3, 32, 32)
    assert torch.equal(found, fractals(16, 32))
    assert len(found.unique(dim=0)) == 16
    assert (found.float().std((2, 3)).amax(1) > 3).all()  # none is flat
