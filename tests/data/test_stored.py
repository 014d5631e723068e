"""Images on disk: class folders or Arrow, read by workers, always the same for the same plan."""

import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from ova.data import imagenet
from ova.data.stored import centre_box, inception_box
from ova.data.task import Examples, Task, plan
from ova.errors import BadInput

CLASSES = ("n01", "n02", "n03")


def picture(path: Path, seed: int, size: tuple[int, int] = (60, 48)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(seed)
    small = draw.integers(0, 256, (6, 5, 3), dtype=np.uint8)
    Image.fromarray(small).resize(size, Image.Resampling.BICUBIC).save(path, quality=95)


def make(root: Path, train: int = 12, test: int = 4) -> Path:
    """A small folder in ImageNet's form; every class has an image with an odd size or mode."""
    for k, name in enumerate(CLASSES):
        for i in range(train):
            picture(root / "train" / name / f"{i}.JPEG", 100 * k + i)
        for i in range(test):
            picture(root / "val" / name / f"v{i}.JPEG", 1000 + 100 * k + i, (300, 200))
        Image.new("CMYK", (50, 40)).save(root / "train" / name / "cmyk.JPEG")
        Image.new("L", (40, 90), 7).save(root / "train" / name / "grey.png")
    return root


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("OVA_WORKERS", "0")


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return imagenet.load(make(tmp_path / "imagenet"), 32)


def everything(examples: Examples, batch: int = 5) -> torch.Tensor:
    return torch.cat([x for x, _ in examples.batches(plan(examples, batch, None))])


def test_splits_and_shapes(task: Task) -> None:
    assert task.classes == CLASSES
    assert (len(task.train), len(task.validation)) == (39, 3)
    assert sorted(task.validation.y.tolist()) == [0, 1, 2]
    test = task.evaluations["test"]()
    assert test.y.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert len([name for name in task.evaluations if name.startswith("shift/")]) == 95
    for x, y in task.train.batches(plan(task.train, 16, torch.Generator().manual_seed(0))):
        assert x.shape == (len(y), 3, 32, 32)
        assert x.dtype == torch.uint8
        assert task.prepare(x).isfinite().all()


def test_workers_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make(tmp_path / "imagenet")
    alone = imagenet.load(root, 32)
    monkeypatch.setenv("OVA_WORKERS", "2")
    shared = imagenet.load(root, 32)
    for name in ("test", "shift/gaussian_noise/3"):
        assert torch.equal(
            everything(alone.evaluations[name]()), everything(shared.evaluations[name]())
        )
    batches = plan(alone.train, 10, torch.Generator().manual_seed(3))
    for (x, y), (x2, y2) in zip(
        alone.train.batches(batches), shared.train.batches(batches), strict=True
    ):
        assert torch.equal(x, x2)
        assert torch.equal(y, y2)


def test_crops_repeat_with_the_plan_and_change_with_it(task: Task) -> None:
    rows = torch.arange(10)
    first, again = (next(iter(task.train.batches([rows])))[0] for _ in range(2))
    assert torch.equal(first, again)
    other = next(iter(task.train.batches([rows.flip(0)])))[0].flip(0)
    assert not torch.equal(first, other)


def test_corruption_goes_by_row(task: Task) -> None:
    shifted = task.evaluations["shift/gaussian_noise/5"]()
    clean = everything(task.evaluations["test"]())
    whole = everything(shifted)
    assert not torch.equal(whole, clean)
    (part, _), *_ = shifted.batches([torch.tensor([7, 2])])
    assert torch.equal(part, whole[[7, 2]])


def test_centre_is_the_centre(tmp_path: Path) -> None:
    """A marked middle square: after the crop only its border is left outside."""
    root = make(tmp_path / "imagenet")
    pixels = np.zeros((256, 320, 3), np.uint8)
    pixels[16:240, 48:272] = 200  # 224 x 224 in the middle of 256 x 320
    Image.fromarray(pixels).save(root / "val" / "n01" / "a.png")
    x = everything(imagenet.load(root, 224).evaluations["test"]())[0]
    assert int(x.min()) == int(x.max()) == 200


def test_inception_boxes_lie_inside_with_the_promised_area_and_shape() -> None:
    draw = np.random.default_rng(0)
    for width, height in ((500, 375), (30, 400), (7, 7)):
        for _ in range(300):
            left, top, right, bottom = inception_box(width, height, draw)
            assert 0 <= left < right <= width
            assert 0 <= top < bottom <= height
            if (width, height) == (500, 375):
                w, h = right - left, bottom - top
                assert 0.075 < w * h / (width * height) <= 1
                assert 0.74 < w / h < 1.35


def test_centre_box_of_a_square_is_all_of_it() -> None:
    assert centre_box(10, 10, 1.0) == (0, 0, 10, 10)


def damaged(root: Path, count: int) -> None:
    for i in range(count):
        file = root / "train" / "n02" / f"{i}.JPEG"
        file.write_bytes(file.read_bytes()[:300])


def test_one_unreadable_image_in_a_hundred_is_named_and_left_grey(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = make(tmp_path / "imagenet", train=60)
    damaged(root, 1)
    split, _ = imagenet.find(root)
    examples = imagenet.stored(split, np.arange(len(split.y)), 32, "centre")
    with caplog.at_level(logging.WARNING):
        x = everything(examples)
        everything(examples)  # named once, not in each epoch
    (row,) = examples.unreadable
    assert int(x[row].min()) == int(x[row].max()) == 128
    assert [r.getMessage() for r in caplog.records if "n02/0.JPEG" in r.getMessage()] != []
    assert len(caplog.records) == 1


def test_more_unreadable_images_are_fatal_and_named(tmp_path: Path) -> None:
    root = make(tmp_path / "imagenet", train=60)
    damaged(root, 4)
    split, _ = imagenet.find(root)
    with pytest.raises(BadInput, match=r"2 of 186 images are unreadable.*n02/0\.JPEG"):
        everything(imagenet.stored(split, np.arange(len(split.y)), 32, "centre"), 64)[:0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("rm train/n02 train/n03", "at least two class folders"),
        ("empty train/n02", "no image in this class folder"),
        ("rm val/n03", "not those to train on"),
        ("rm val", "ImageNet is not here"),
        ("one train/n01", "class n01 has 1 training images"),
    ],
)
def test_wrong_folders_are_named(tmp_path: Path, change: str, message: str) -> None:
    import shutil

    root = make(tmp_path / "imagenet")
    verb, *folders = change.split()
    for folder in folders:
        files = sorted((root / folder).iterdir())
        if verb == "rm":
            shutil.rmtree(root / folder)
        for file in files[1 if verb == "one" else 0 :]:
            file.unlink(missing_ok=True) if verb != "rm" else None
    with pytest.raises(BadInput, match=message):
        imagenet.load(root, 32)


@pytest.mark.parametrize("form", ["saved", "parquet"])
def test_arrow_gives_what_folders_give(form: str, tmp_path: Path, task: Task) -> None:
    import datasets

    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=list(CLASSES))}
    )
    other = tmp_path / "other"
    (other / "data").mkdir(parents=True)
    for split, name in (("train", "train"), ("val", "validation")):
        files = sorted((tmp_path / "imagenet" / split).rglob("*.*"))
        rows = {
            "image": [{"bytes": f.read_bytes(), "path": None} for f in files],
            "label": [CLASSES.index(f.parent.name) for f in files],
        }
        made = datasets.Dataset.from_dict(rows, features)
        if form == "saved":
            made.save_to_disk(other / name)
        else:
            made.to_parquet(other / "data" / f"{name}-00000-of-00001.parquet")
    arrow = imagenet.load(other, 32)
    assert arrow.classes == task.classes
    assert torch.equal(
        everything(arrow.evaluations["test"]()), everything(task.evaluations["test"]())
    )
    batches = plan(task.train, 16, torch.Generator().manual_seed(0))
    for (x, y), (x2, y2) in zip(
        arrow.train.batches(batches), task.train.batches(batches), strict=True
    ):
        assert torch.equal(x, x2)
        assert torch.equal(y, y2)


def test_published_corruptions_are_taken_where_they_are(tmp_path: Path) -> None:
    root = tmp_path / "data"
    make(root / "imagenet")
    for k, name in enumerate(CLASSES):
        picture(
            root / "imagenet-c" / "noise" / "gaussian_noise" / "2" / name / "a.JPEG", k, (32, 32)
        )
    task = imagenet.load(root, 32)
    published = task.evaluations["shift/gaussian_noise/2"]()
    assert published.y.tolist() == [0, 1, 2]
    with Image.open(root / "imagenet-c/noise/gaussian_noise/2/n01/a.JPEG") as image:
        expected = np.asarray(image).transpose(2, 0, 1)
    np.testing.assert_array_equal(everything(published)[0].numpy(), expected)
    assert len(task.evaluations["shift/gaussian_noise/3"]()) == 12
