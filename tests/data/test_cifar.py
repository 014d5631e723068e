"""The real CIFAR and SVHN: counts, balance, shift and OOD; and `ova data`, which lists them."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from ova.corruptions import CORRUPTIONS
from ova.data import DATASETS, cifar, shift
from ova.data.images import load_images
from ova.data.sources import locate
from ova.data.task import InMemory, Task
from ova.errors import BadInput

OUTSIDE = {
    "cifar10": {"ood/cifar100": 10_000, "ood/svhn": 26_032},
    "cifar100": {"ood/cifar10": 10_000, "ood/svhn": 26_032},
}


@pytest.fixture(scope="module", params=OUTSIDE)
def named(request: pytest.FixtureRequest, data_dir: Path) -> tuple[str, Task]:
    return request.param, DATASETS[request.param](data_dir)


def test_counts_and_balance(named: tuple[str, Task]) -> None:
    name, task = named
    k = len(task.classes)
    assert k == {"cifar10": 10, "cifar100": 100}[name]
    assert task.train.y.bincount().tolist() == [45_000 // k] * k
    assert task.validation.y.bincount().tolist() == [5_000 // k] * k
    test = task.evaluations["test"]()
    assert isinstance(test, InMemory)
    assert test.y.bincount().tolist() == [10_000 // k] * k
    assert test.x.shape == (10_000, 3, 32, 32)
    assert test.x.dtype == torch.uint8


def test_evaluations_are_the_papers(named: tuple[str, Task]) -> None:
    name, task = named
    shifts = {f"shift/{c}/{s}" for c in CORRUPTIONS for s in range(1, 6)}
    assert set(task.evaluations) == {"test", *shifts, *OUTSIDE[name]}
    for outside, count in OUTSIDE[name].items():
        examples = task.evaluations[outside]()
        assert len(examples) == count
        assert examples.y.unique().tolist() == [-1]


def test_training_and_validation_share_no_image(named: tuple[str, Task]) -> None:
    _, task = named
    assert isinstance(task.train, InMemory)
    assert isinstance(task.validation, InMemory)
    # CIFAR itself repeats a few images; a split that overlaps would share thousands.
    train = {row.tobytes() for row in task.train.x.numpy()}
    assert sum(row.tobytes() in train for row in task.validation.x.numpy()) < 25


def test_prepared_pixels_are_about_standard(named: tuple[str, Task]) -> None:
    _, task = named
    (x, _), *_ = task.train.batches([torch.arange(2000)])
    z = task.prepare(x)
    assert float(z.mean().abs()) < 0.15
    assert 0.9 < float(z.std()) < 1.4


def test_shift_goes_by_row_and_grows(named: tuple[str, Task]) -> None:
    _, task = named
    clean = task.evaluations["test"]()
    rows = torch.arange(100)
    (x, y), *_ = clean.batches([rows])
    change = []
    for severity in (1, 5):
        examples = task.evaluations[f"shift/gaussian_noise/{severity}"]()
        (whole, targets), *_ = examples.batches([rows])
        (part, _), *_ = examples.batches([torch.tensor([42, 7])])
        assert torch.equal(targets, y)
        assert torch.equal(part, whole[[42, 7]])
        change.append(float((whole.float() - x.float()).abs().mean()))
    assert 0 < change[0] < change[1]


@pytest.mark.parametrize("form", ["pickle", "binary"])
def test_the_official_files_pass_the_check_of_content(
    form: str, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real test images, written in the official forms, are recognised as the published ones."""
    expected = cifar.TEN.expected["test"]
    images = load_images(locate(cifar.origin(cifar.TEN, "test"), data_dir), expected)
    rows = images.x.reshape(10_000, -1)
    if form == "pickle":
        data = pickle.dumps({b"data": rows, b"labels": images.y.tolist()}, 2)
        file = tmp_path / cifar.TEN.pickled["test"][0]
    else:
        data = np.concatenate([images.y.astype(np.uint8)[:, None], rows], axis=1).tobytes()
        file = tmp_path / cifar.TEN.binary["test"][0]
    file.parent.mkdir()
    file.write_bytes(data)
    monkeypatch.setenv("OVA_CACHE", str(tmp_path / "cache"))
    found = locate(cifar.origin(cifar.TEN, "test"), tmp_path)
    assert load_images(found, expected).digest() == images.digest()


def small_test() -> InMemory:
    draw = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8, generator=draw)
    return InMemory(x, torch.arange(4))


def write_published(folder: Path, labels: list[int]) -> np.ndarray:
    folder.mkdir(parents=True)
    array = np.random.default_rng(0).integers(0, 256, (20, 32, 32, 3), dtype=np.uint8)
    np.save(folder / "fog.npy", array)
    np.save(folder / "labels.npy", np.array(labels * 5))
    return array


def test_published_arrays_give_each_severity(tmp_path: Path) -> None:
    array = write_published(tmp_path / "CIFAR-10-C", [0, 1, 2, 3])
    made = shift.published("CIFAR-10-C", small_test, tmp_path)
    assert made is not None
    entries, sources = made
    assert set(entries) == {f"shift/fog/{s}" for s in range(1, 6)}
    assert set(sources) == {"CIFAR-10-C/fog.npy"}
    examples = entries["shift/fog/4"]()
    assert isinstance(examples, InMemory)
    np.testing.assert_array_equal(examples.x.permute(0, 2, 3, 1).numpy(), array[12:16])
    assert examples.y.tolist() == [0, 1, 2, 3]


def test_published_arrays_of_another_order_are_refused(tmp_path: Path) -> None:
    write_published(tmp_path / "CIFAR-10-C", [1, 0, 2, 3])
    made = shift.published("CIFAR-10-C", small_test, tmp_path)
    assert made is not None
    with pytest.raises(BadInput, match=r"labels\.npy"):
        made[0]["shift/fog/1"]()


@pytest.mark.parametrize("damage", ["truncated", "shape", "pickled"])
def test_damaged_published_arrays_are_named(damage: str, tmp_path: Path) -> None:
    write_published(tmp_path / "CIFAR-10-C", [0, 1, 2, 3])
    file = tmp_path / "CIFAR-10-C" / "fog.npy"
    if damage == "truncated":
        file.write_bytes(file.read_bytes()[:5000])
    elif damage == "shape":
        np.save(file, np.zeros((5, 32, 32, 3), np.uint8))
    else:
        np.save(file, np.array([{}], dtype=object), allow_pickle=True)
    made = shift.published("CIFAR-10-C", small_test, tmp_path)
    assert made is not None
    with pytest.raises(BadInput, match=r"fog\.npy"):
        made[0]["shift/fog/1"]()


def listed(*options: str) -> list[dict[str, object]]:
    from ova.cli.app import app

    result = CliRunner().invoke(app, ["data", "--json", *options])
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.slow
def test_the_list_counts_and_hashes_what_is_there(data_dir: Path) -> None:
    rows = {str(row["name"]): row for row in listed("--data-dir", str(data_dir))}
    counts = {name: row["count"] for name, row in rows.items() if row["state"] == "present"}
    assert counts["CIFAR-10 train"] == counts["CIFAR-100 train"] == 50_000
    assert counts["SVHN test"] == 26_032
    assert counts["CLINC150"] == 23_700
    assert counts["BERT vocabulary"] == 30_522
    assert rows["ImageNet"]["state"] == "missing"
    assert all(len(d) == 64 for row in rows.values() for d in row["sources"].values())  # type: ignore[attr-defined]


def test_the_list_names_what_is_damaged_or_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVA_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data_full.json").write_text("{")
    rows = {str(row["name"]): str(row["state"]) for row in listed("--data-dir", str(tmp_path))}
    assert "data_full.json is damaged" in rows["CLINC150"]
    assert rows["CIFAR-10 train"] == rows["SVHN test"] == "missing"
    from ova.cli.app import app

    shown = CliRunner().invoke(app, ["data", "--data-dir", str(tmp_path)]).output
    assert "missing" in shown
    assert "damaged" in shown
