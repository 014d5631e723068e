"""Omniglot: the published counts, the official files against the compact one, and the ladders."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ova.data import omniglot
from ova.data.drawings import LADDERS, changed, small
from ova.data.sources import Blob, locate
from ova.data.task import InMemory, Task
from ova.errors import BadInput


@pytest.fixture(scope="module")
def task(data_dir: Path) -> Task:
    return omniglot.load(data_dir)


@pytest.fixture(scope="module")
def near(data_dir: Path) -> Task:
    return omniglot.near(data_dir)


def test_counts_and_balance(task: Task) -> None:
    assert len(task.classes) == len(set(task.classes)) == 964
    assert task.train.y.bincount().tolist() == [15] * 964
    assert task.validation.y.bincount().tolist() == [1] * 964
    assert task.evaluations["test"]().y.bincount().tolist() == [4] * 964
    outside = task.evaluations["ood/evaluation"]()
    assert (len(outside), outside.y.unique().tolist()) == (13_180, [-1])
    shifts = {f"shift/{ladder}/{s}" for ladder in LADDERS for s in range(1, 6)}
    assert set(task.evaluations) == {"test", "ood/evaluation", *shifts}


def test_near_keeps_a_hundred_characters_out(task: Task, near: Task) -> None:
    assert len(near.classes) == 864
    assert set(near.classes) < set(task.classes)
    assert near.train.y.bincount().tolist() == [15] * 864
    outside = near.evaluations["ood/near"]()
    assert (len(outside), outside.y.unique().tolist()) == (2_000, [-1])


def test_alphabets_to_choose_by_are_not_those_that_judge(task: Task, data_dir: Path) -> None:
    halves = omniglot.aside(data_dir)
    judge, choose = (halves.evaluations[f"{n}/evaluation"]() for n in ("ood", "validation"))
    assert isinstance(judge, InMemory)
    assert isinstance(choose, InMemory)
    whole = task.evaluations["ood/evaluation"]()
    assert isinstance(whole, InMemory)
    assert len(judge) + len(choose) == len(whole)
    images = [{image.numpy().tobytes() for image in part.x} for part in (judge, choose, whole)]
    assert images[0] | images[1] == images[2]
    assert len(images[0] & images[1]) < 20  # a few simple strokes are the same in two scripts
    assert halves.classes == task.classes


def test_prepared_pixels_are_standard(task: Task) -> None:
    assert isinstance(task.train, InMemory)
    z = task.prepare(task.train.x)
    assert abs(float(z.mean())) < 0.02
    assert float(z.std()) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("form", ["folders", "zip"])
def test_official_files_give_what_the_compact_one_gives(
    form: str, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(omniglot.CHARACTERS, "background", 6)
    compact = (data_dir / "omniglot" / "omniglot.npz").read_bytes()
    with np.load(io.BytesIO(compact)) as held:
        ink = np.unpackbits(held["background"][:120], axis=1, count=11025).reshape(-1, 105, 105)
        names = held["background_name"]
    with zipfile.ZipFile(tmp_path / "images_background.zip", "w") as archive:
        for row, one in enumerate(ink):
            name = f"images_background/{names[row // 20]}/00{row // 20:02}_{row % 20 + 1:02}.png"
            file = io.BytesIO()
            Image.fromarray(255 - 255 * one).convert("1").save(file, "png")
            archive.writestr(name, file.getvalue())
    if form == "folders":
        zipfile.ZipFile(tmp_path / "images_background.zip").extractall(tmp_path)
        (tmp_path / "images_background.zip").unlink()
    found = locate(omniglot.origin("background"), tmp_path)
    drawings = found.read()
    assert len(found.sources) == 1
    order = np.argsort(drawings.label * 20 + drawings.drawer)
    np.testing.assert_array_equal(drawings.ink[order], ink)
    assert list(drawings.names) == list(names[:6])


def test_missing_drawing_and_damage_are_named(data_dir: Path) -> None:
    data = (data_dir / "omniglot" / "omniglot.npz").read_bytes()
    with pytest.raises(BadInput, match=r"o\.npz"):
        omniglot.read_npz("background", [Blob("o.npz", data[: len(data) // 2])])
    whole = omniglot.read_npz("background", [Blob("o.npz", data)])
    fewer = omniglot.Drawings(whole.ink[1:], whole.label[1:], whole.drawer[1:], whole.names)
    with pytest.raises(BadInput, match="964 characters with 20 drawings"):
        omniglot.checked("o.npz", "background", fewer)


def cross() -> np.ndarray:
    ink = np.zeros((3, 105, 105), np.uint8)
    ink[:, 50:54, 15:90] = 1
    ink[:, 20:85, 60:64] = 1
    return ink


@pytest.mark.parametrize("ladder", LADDERS)
def test_each_step_changes_more_than_the_one_before(ladder: str) -> None:
    clean = small(cross(), 28).astype(int)
    distance = [np.abs(changed(cross(), ladder, s, 28) - clean).mean() for s in range(1, 6)]
    assert distance == sorted(distance)
    assert distance[0] > 0
    again = changed(cross(), ladder, 5, 28)
    np.testing.assert_array_equal(again, changed(cross(), ladder, 5, 28))
    np.testing.assert_array_equal(again[:2], changed(cross()[:2], ladder, 5, 28))
