"""`ova corrupt`: sets as arrays, sets as folders, the contact sheet, and what it says about bad input."""

import hashlib
import json

import numpy as np
import pytest
import torch
import typer
from PIL import Image
from typer.testing import CliRunner

from ova.cli.corrupt import corrupt as command
from ova.corruptions import CORRUPTIONS, corrupt
from ova.data import DATASETS
from ova.data.corrupted import stacks
from ova.data.corrupted.record import MANIFEST
from ova.data.corrupted.trees import SUMS
from ova.data.frost import ORIGINALS
from ova.data.shift import read_severity
from ova.data.task import InMemory, Task, unchanged
from ova.errors import BadInput

APP = typer.Typer()
APP.command()(command)
IMAGES = np.random.default_rng(0).integers(0, 256, (7, 32, 32, 3), np.uint8)
LABELS = np.array([3, 1, 4, 1, 5, 9, 2])


def run(*words):
    """The command's output; an error of the user's comes out as it went in."""
    result = CliRunner().invoke(APP, [str(word) for word in words], catch_exceptions=True)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def small(shape=(3, 32, 32)):
    x = torch.from_numpy(IMAGES).permute(0, 3, 1, 2).contiguous()
    examples = InMemory(x[:, : shape[0]], torch.from_numpy(LABELS))
    classes = tuple(map(str, range(10)))
    evaluations = {"test": lambda: examples}
    return Task(classes, shape, examples, examples, evaluations, lambda x: x.float(), unchanged, {})


@pytest.fixture(autouse=True)
def data_sets(monkeypatch, tmp_path_factory):
    monkeypatch.delenv("OVA_DATA", raising=False)
    nowhere = tmp_path_factory.getbasetemp() / "nowhere"
    monkeypatch.setattr("ova.data.sources.cache_dir", lambda: nowhere)
    monkeypatch.setitem(DATASETS, "small", lambda _: small())
    monkeypatch.setitem(DATASETS, "grey", lambda _: small((1, 32, 32)))


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "photos"
    (root / "cat").mkdir(parents=True)
    for i in range(3):
        Image.fromarray(IMAGES[i]).save(root / "cat" / f"{i}.png")
    return root


def digests(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def test_a_data_set_becomes_the_official_layout(tmp_path):
    out = tmp_path / "small-c"
    said = run("small", "--out", out, "--types", "fog,contrast", "--seed", 5)
    assert "2 types of 7 images" in said
    assert "cifar constants" in said
    assert "generated frost" in said
    assert sorted(digests(out)) == ["contrast.npy", "fog.npy", "labels.npy", MANIFEST]
    fog = np.load(out / "fog.npy", allow_pickle=False)
    assert fog.shape == (35, 32, 32, 3)
    assert fog.dtype == np.uint8
    for severity in range(1, 6):
        part = fog[(severity - 1) * 7 : severity * 7]
        assert np.array_equal(part, corrupt(IMAGES, "fog", severity, seed=5))
    labels = np.load(out / "labels.npy", allow_pickle=False)
    assert labels.dtype == np.uint8
    assert np.array_equal(labels, np.tile(LABELS, 5))


def test_what_is_written_can_be_evaluated_as_published(tmp_path):
    run("small", "--out", tmp_path, "--types", "pixelate")
    read = read_severity(tmp_path / "pixelate.npy", 4, small().evaluations["test"])
    assert np.array_equal(read.x.permute(0, 2, 3, 1).numpy(), corrupt(IMAGES, "pixelate", 4))
    assert np.array_equal(read.y.numpy(), LABELS)


def test_the_manifest_tells_everything_and_its_hashes_hold(tmp_path):
    run(
        "small",
        "--out",
        tmp_path,
        "--types",
        "frost",
        "--severities",
        "2,4",
        "--constants",
        "imagenet",
    )
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    assert manifest["constants"] == "imagenet"
    assert manifest["severities"] == [2, 4]
    assert manifest["seed"] == 0
    assert manifest["frost_textures"]["source"] == "generated"
    assert manifest["data"] == {"small": hashlib.sha256(IMAGES.tobytes()).hexdigest()}
    assert {"numpy", "numba"} <= set(manifest["versions"])
    held = digests(tmp_path)
    assert manifest["files"] == {name: held[name] for name in ("frost.npy", "labels.npy")}


def test_frost_of_the_data_folder_is_used_and_named(tmp_path):
    frost = tmp_path / "data" / "frost"
    frost.mkdir(parents=True)
    for name in ORIGINALS:
        Image.fromarray(np.full((320, 400, 3), 200, np.uint8)).save(frost / name)
    out = tmp_path / "out"
    words = ("--types", "frost", "--severities", "5", "--data-dir", tmp_path / "data")
    assert "original frost" in run("small", "--out", out, *words)
    manifest = json.loads((out / MANIFEST).read_text())
    assert manifest["frost_textures"]["source"] == "original"
    made = np.load(out / "frost.npy")
    assert np.abs(made - (0.75 * IMAGES + 0.45 * 200).clip(0, 255)).max() <= 2


def test_memory_is_bounded_by_the_chunk_and_chunks_change_nothing(tmp_path, monkeypatch):
    seen = []

    def watched(images, *rest, **more):
        seen.append(len(images))
        return corrupt(images, *rest, **more)

    monkeypatch.setattr(stacks, "CHUNK", 3 * 32 * 32)
    monkeypatch.setattr(stacks, "corrupt", watched)
    run("small", "--out", tmp_path, "--types", "shot_noise", "--severities", "1")
    assert seen == [3, 3, 1]
    assert np.array_equal(np.load(tmp_path / "shot_noise.npy"), corrupt(IMAGES, "shot_noise", 1))


def test_an_interrupted_set_goes_on_and_ends_the_same(tmp_path, monkeypatch):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    words = ("small", "--types", "contrast,fog,snow", "--out")
    run(*words, whole)

    def stop(images, name, severity, **more):
        if (name, severity) == ("fog", 3):
            raise KeyboardInterrupt
        return corrupt(images, name, severity, **more)

    with monkeypatch.context() as patch:
        patch.setattr(stacks, "corrupt", stop)
        CliRunner().invoke(APP, [str(word) for word in (*words, broken)])
    assert sorted(digests(broken)) == ["contrast.npy", "labels.npy", MANIFEST]
    stamp = (broken / "contrast.npy").stat().st_mtime_ns
    run(*words, broken)
    assert digests(broken) == digests(whole)
    assert (broken / "contrast.npy").stat().st_mtime_ns == stamp


def test_a_damaged_file_is_made_again_and_leftovers_are_removed(tmp_path):
    run("small", "--out", tmp_path, "--types", "contrast")
    before = digests(tmp_path)
    (tmp_path / "contrast.npy").write_bytes(b"cut short")
    (tmp_path / ".contrast.npy.part").write_bytes(b"of a killed run" * 10_000)
    run("small", "--out", tmp_path, "--types", "contrast")
    assert digests(tmp_path) == before


def test_images_whose_names_differ_in_their_ending_alone_are_all_there(folder, tmp_path):
    names = ["0.png", "0.bmp", "0.bmp.ppm", "0.bmp.png", "0.PNG.webp", "1.png", "2.png"]
    for name in set(names) - {"0.png", "1.png", "2.png"}:
        Image.fromarray(IMAGES[len(name) % 7]).save(folder / "cat" / name)
    run(folder, "--out", tmp_path / "c", "--types", "contrast", "--severities", 1)
    made = [name for name in digests(tmp_path / "c") if name.endswith(".png")]
    assert len(made) == len(names)
    listed = (tmp_path / "c/contrast/1/SHA256SUMS").read_text().splitlines()
    assert len({line.split("  ")[1].lower() for line in listed}) == len(names)


def test_types_can_be_added_but_other_settings_need_another_folder(tmp_path):
    run("small", "--out", tmp_path, "--types", "contrast")
    run("small", "--out", tmp_path, "--types", "saturate")
    assert {"contrast.npy", "saturate.npy"} <= set(digests(tmp_path))
    with pytest.raises(BadInput, match="seed = 0, not 1"):
        run("small", "--out", tmp_path, "--types", "contrast", "--seed", 1)
    (tmp_path / MANIFEST).write_text("{}")
    with pytest.raises(BadInput, match="not the manifest"):
        run("small", "--out", tmp_path, "--types", "contrast")


def test_a_folder_becomes_a_tree_of_lossless_images(folder, tmp_path):
    out = tmp_path / "out"
    said = run(folder, "--out", out, "--types", "fog,elastic_transform", "--severities", "1,5")
    assert "2 types of 3 images" in said
    assert "skipped" not in said
    for name in ("fog", "elastic_transform"):
        for severity in (1, 5):
            part = out / name / str(severity)
            assert sorted(p.name for p in (part / "cat").iterdir()) == ["0.png", "1.png", "2.png"]
            for line in (part / SUMS).read_text().splitlines():
                digest, file = line.split("  ")
                assert hashlib.sha256((part / file).read_bytes()).hexdigest() == digest
    one = np.asarray(Image.open(out / "fog" / "5" / "cat" / "1.png"))
    number = hashlib.blake2b(b"cat/1.png", digest_size=8).digest()
    ids = [int.from_bytes(number, "big") >> 1]
    assert np.array_equal(one, corrupt(IMAGES[1:2], "fog", 5, ids=ids)[0])
    manifest = json.loads((out / MANIFEST).read_text())
    assert len(manifest["files"]) == 4
    assert all(digests(out)[name] == digest for name, digest in manifest["files"].items())


def test_a_tree_goes_on_and_more_images_change_none(folder, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    run(folder, "--out", first, "--types", "snow", "--severities", "3")
    before = digests(first)
    lost = first / "snow" / "3" / "cat" / "1.png"
    lost.unlink()
    (first / "snow" / "3" / SUMS).unlink()
    kept = (first / "snow" / "3" / "cat" / "0.png").stat().st_mtime_ns
    run(folder, "--out", first, "--types", "snow", "--severities", "3")
    assert digests(first) == before
    assert (first / "snow" / "3" / "cat" / "0.png").stat().st_mtime_ns == kept
    Image.fromarray(IMAGES[5]).save(folder / "cat" / "00.png")
    run(folder, "--out", second, "--types", "snow", "--severities", "3")
    after = digests(second)
    pictures = {name: digest for name, digest in before.items() if name.endswith(".png")}
    assert pictures.items() <= after.items()


def test_odd_files_are_converted_with_a_note_or_named_and_counted(folder, tmp_path):
    Image.fromarray(IMAGES[0]).convert("L").save(folder / "grey.png")
    Image.fromarray(IMAGES[0]).convert("RGBA").save(folder / "clear.png")
    Image.fromarray(IMAGES[0, :7]).save(folder / "tiny.png")
    Image.fromarray(IMAGES[..., 0].astype(np.uint16)[0]).save(folder / "deep.png")
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff no jpeg")
    (folder / "empty.png").write_bytes(b"")
    (folder / "notes.txt").write_text("no image, and not meant to be one")
    whole = (folder / "cat" / "0.png").read_bytes()
    (folder / "cut.png").write_bytes(whole[: len(whole) // 2])
    said = run(folder, "--out", tmp_path / "out", "--types", "contrast", "--severities", "1")
    for name in ("tiny.png", "deep.png", "broken.jpg", "empty.png", "cut.png"):
        assert f"skipped {name}: " in said
    assert "notes.txt" not in said
    assert "2 images are grey, transparent or not RGB" in said
    assert "1 types of 5 images" in said
    assert "5 files skipped" in said
    with Image.open(tmp_path / "out" / "contrast" / "1" / "grey.png") as made:
        assert made.mode == "RGB"


def test_two_files_of_one_stem_do_not_overwrite_each_other(folder, tmp_path):
    Image.fromarray(IMAGES[4]).save(folder / "cat" / "0.bmp")
    run(folder, "--out", tmp_path / "out", "--types", "contrast", "--severities", "1")
    made = sorted(p.name for p in (tmp_path / "out" / "contrast" / "1" / "cat").iterdir())
    assert made == ["0.bmp.png", "0.png.png", "1.png", "2.png"]


@pytest.mark.slow
def test_constants_follow_the_size_unless_named(folder, tmp_path):
    big = np.random.default_rng(0).integers(0, 256, (90, 120, 3), np.uint8)
    Image.fromarray(big).save(tmp_path / "big.png")
    picture = tmp_path / "sheet.png"
    assert "imagenet constants" in run("--preview", tmp_path / "big.png", "--out", picture)
    small_one = folder / "cat" / "0.png"
    assert "cifar constants" in run("--preview", small_one, "--out", picture)
    said = run("--preview", small_one, "--out", picture, "--constants", "imagenet")
    assert "imagenet constants" in said


def test_the_contact_sheet_shows_every_corruption(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("--preview", folder / "cat" / "0.png", "--seed", 2)
    sheet = np.asarray(Image.open(tmp_path / "0-corruptions.png"))
    step, block = 96 + 3, sheet.shape[1] // 2
    for place, name in enumerate(["", *CORRUPTIONS]):
        for column in range(5 if name else 1):
            left = place // 10 * block + 132 + column * step
            top = 30 + place % 10 * step
            shown = sheet[top : top + 96 : 3, left : left + 96 : 3]
            expected = corrupt(IMAGES[:1], name, column + 1, seed=2)[0] if name else IMAGES[0]
            assert np.array_equal(shown, expected)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["small"], "SOURCE and an --out"),
        (["nothing", "--out", "x"], "no folder and no data set"),
        (["small", "--out", "x", "--types", "fogg"], "did you mean 'fog'"),
        (["small", "--out", "x", "--types", "paper-19"], "did you mean 'paper-17'"),
        (["small", "--out", "x", "--severities", "0"], "some of 1,2,3,4,5"),
        (["small", "--out", "x", "--severities", "a"], "some of 1,2,3,4,5"),
        (["small", "--out", "x", "--constants", "cfar"], "did you mean 'cifar'"),
        (["grey", "--out", "x"], "no small colour images"),
        (["toy", "--out", "x"], "no small colour images"),
        (["--preview", "nothing.png"], "cannot read the image"),
        (["--preview", "nothing.png", "--out", "sheet"], "ends in .png"),
    ],
)
def test_bad_input(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput) as error:
        run(*words)
    assert message in str(error.value)
    assert not list(tmp_path.iterdir())


def test_folders_that_cannot_work(folder, tmp_path):
    with pytest.raises(BadInput, match="is inside"):
        run(folder, "--out", folder / "c")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(BadInput, match="has no images"):
        run(empty, "--out", tmp_path / "out")
    (empty / "bad.png").write_bytes(b"bad")
    with pytest.raises(BadInput, match=r"none of the 1 images.*bad\.png"):
        run(empty, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_way_is_a_plain_error(folder, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="is a file"):
        run(folder, "--out", tmp_path / "file")
