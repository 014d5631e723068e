"""Every form in which people have the data gives the same examples; damage is named, never run."""

import io
import pickle
import struct
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from scipy.io import savemat

from ova.data import cifar, svhn
from ova.data.decoding import decode
from ova.data.hub import Hub, hub_dataset
from ova.data.images import Expected, Images, check, decode_all, hold_out, load_images
from ova.data.names import CIFAR10
from ova.data.pickles import read_pickle
from ova.data.sources import Blob, Found, locate
from ova.errors import BadInput

DRAW = np.random.default_rng(0)
X = DRAW.integers(0, 256, (20, 3, 32, 32), dtype=np.uint8)
Y = np.arange(20) % 10


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("OVA_DATA", raising=False)


def encoded(x: np.ndarray, kind: str = "webp") -> bytes:
    file = io.BytesIO()
    Image.fromarray(x.transpose(1, 2, 0)).save(
        file, kind, **({"lossless": True} if kind == "webp" else {})
    )
    return file.getvalue()


def as_parquet(folder: Path) -> None:
    for part, rows in enumerate((slice(0, 12), slice(12, 20))):  # two shards, in their order
        table = pa.table(
            {"img": [{"bytes": encoded(x), "path": None} for x in X[rows]], "label": Y[rows]}
        )
        file = folder / "cifar10" / "plain_text" / f"test-0000{part}-of-00002.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, file)


def batch(protocol: int) -> bytes:
    held = {"data": X.reshape(20, -1), "labels": Y.tolist(), "batch_label": "testing batch 1 of 1"}
    return pickle.dumps({k.encode(): v for k, v in held.items()}, protocol)


def as_pickle(folder: Path) -> None:
    file = folder / "cifar-10-batches-py" / "test_batch"
    file.parent.mkdir()
    file.write_bytes(batch(2))


def records() -> bytes:
    return np.concatenate([Y.astype(np.uint8)[:, None], X.reshape(20, -1)], axis=1).tobytes()


def as_binary(folder: Path) -> None:
    file = folder / "cifar-10-batches-bin" / "test_batch.bin"
    file.parent.mkdir()
    file.write_bytes(records())


def archived(name: str, member: str, data: bytes) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        with tarfile.open(folder / name, "w:gz") as archive:
            for path in ("../../outside", "/absolute", member):
                info = tarfile.TarInfo(path)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
            link = tarfile.TarInfo("cifar-10-batches-py/link")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(link)

    return make


FORMS: dict[str, Callable[[Path], None]] = {
    "parquet": as_parquet,
    "pickle": as_pickle,
    "binary": as_binary,
    "archive of pickles": archived(
        "cifar-10-python.tar.gz", "cifar-10-batches-py/test_batch", batch(2)
    ),
    "archive of binaries": archived(
        "cifar-10-binary.tar.gz", "cifar-10-batches-bin/test_batch.bin", records()
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_images(form: str, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    FORMS[form](folder)
    before = sorted(tmp_path.rglob("*"))
    found = locate(cifar.origin(cifar.TEN, "test"), folder)
    images = found.read()
    np.testing.assert_array_equal(images.x, X)
    np.testing.assert_array_equal(images.y, Y)
    assert all(len(digest) == 64 for digest in found.sources.values())
    assert sorted(tmp_path.rglob("*")) == before  # nothing was unpacked, inside or outside


@pytest.mark.parametrize("form", FORMS)
def test_truncated_file_is_named(form: str, tmp_path: Path) -> None:
    FORMS[form](tmp_path)
    (file, *_) = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    file.write_bytes(file.read_bytes()[: file.stat().st_size * 2 // 3])
    with pytest.raises(BadInput, match=file.name.replace(".", r"\.")):
        locate(cifar.origin(cifar.TEN, "test"), tmp_path).read()


def test_cifar100_binary_takes_the_fine_label(tmp_path: Path) -> None:
    fine = (np.arange(20) * 5).astype(np.uint8)[:, None]
    coarse = np.full_like(fine, 7)
    data = np.concatenate([coarse, fine, X.reshape(20, -1)], axis=1).tobytes()
    (tmp_path / "cifar-100-binary").mkdir()
    (tmp_path / "cifar-100-binary" / "test.bin").write_bytes(data)
    images = locate(cifar.origin(cifar.HUNDRED, "test"), tmp_path).read()
    assert images.y.tolist() == fine[:, 0].tolist()


def test_digit_zero_of_svhn_is_zero(tmp_path: Path) -> None:
    labels = np.where(Y == 0, 10, Y)[:, None]
    savemat(tmp_path / "test_32x32.mat", {"X": X.transpose(2, 3, 1, 0), "y": labels})
    images = locate(svhn.origin("test"), tmp_path).read()
    np.testing.assert_array_equal(images.x, X)
    np.testing.assert_array_equal(images.y, Y)


@pytest.mark.parametrize("damage", [b"", b"not MATLAB at all" * 20])
def test_damaged_mat_is_named(damage: bytes) -> None:
    with pytest.raises(BadInput, match=r"x\.mat"):
        svhn.read_mat([Blob("x.mat", damage)])


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("dtype", ["u1", "<i4", ">i4", "<f8", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_pickled_arrays_arrive(protocol: int, dtype: str, order: str) -> None:
    array = np.asarray(np.arange(6).reshape(2, 3), dtype=dtype, order=order)  # type: ignore[call-overload]
    held = read_pickle("p", pickle.dumps({"a": array, "n": [1, 2.5, "é", None, True]}, protocol))
    np.testing.assert_array_equal(held["a"], array)
    assert held["n"] == [1, 2.5, "é", None, True]


class Attack:
    def __init__(self, call: Callable[..., object], *args: object) -> None:
        self.call, self.args = call, args

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.call, self.args


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_cannot_call_anything(protocol: int, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for attack in (Attack(exec, f"open({str(mark)!r}, 'w')"), Attack(Path.touch, mark)):
        with pytest.raises(BadInput, match="evil"):
            read_pickle("evil", pickle.dumps(attack, protocol))
    assert not mark.exists()


def test_an_array_of_objects_is_refused() -> None:
    with pytest.raises(BadInput, match="not one of numbers"):
        read_pickle("p", pickle.dumps(np.array([{}], dtype=object)))


def laughs(depth: int) -> bytes:
    """A pickle of lists that hold one list twice, which holds one twice, ...: 2^depth cells."""
    value: list[object] = []
    for _ in range(depth):
        value = [value, value]
    return pickle.dumps({"data": value, "labels": []})


def test_a_small_pickle_does_not_grow_without_end() -> None:
    assert len(laughs(40)) < 500
    with pytest.raises(BadInput, match="nested deeper than data is"):
        read_pickle("p", laughs(40))
    rows: list[object] = [[1, 2]]
    for _ in range(40):
        rows.append([rows[-1], rows[-1]])
    with pytest.raises(BadInput, match="nested deeper than data is"):
        read_pickle("p", pickle.dumps({str(k): row for k, row in enumerate(rows)}))


def test_a_list_that_is_shared_is_read_once() -> None:
    row = ["x"] * 20_000
    held = read_pickle("p", pickle.dumps({str(k): row for k in range(20_000)}))
    assert held["0"] is held["19999"]


def test_a_number_in_a_pickle_is_no_amount_of_memory() -> None:
    # LONG_BINPUT: to keep an empty list in place 2^27 of the memo, which C makes that long.
    assert limited(read_pickle, "huge", b"\x80\x02]r\x00\x00\x00\x08.") == []


def limited(work: Callable[..., object], *args: object) -> object:
    """The same in a process that may have 1 GB more than it has now."""
    import resource

    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 30), before[1]))
    try:
        return work(*args)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def found(images: Images) -> Found[Images]:
    return Found("CIFAR-10 test", {"some/file": "0" * 64}, lambda: images)


EXPECTED = Expected(20, 10)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Images(X[:-1], Y[:-1]), "19 with 19 labels"),
        (Images(X, Y[:-1]), "20 with 19 labels"),
        (Images(X[:, :, :16], Y), r"\(3, 16, 32\)"),
        (Images(X, Y + 1), "from 1 to 10"),
        (Images(X, np.zeros_like(Y)), "1 from 0 to 0"),
    ],
)
def test_wrong_content_is_named(wrong: Images, message: str) -> None:
    with pytest.raises(BadInput, match=message) as error:
        check(wrong, found(wrong), EXPECTED)
    assert "some/file" in str(error.value)


def test_one_changed_pixel_is_noticed() -> None:
    exact = Expected(20, 10, digests=frozenset({Images(X, Y).digest()}))
    assert load_images(found(Images(X, Y)), exact).digest() in exact.digests
    other = X.copy()
    other[3, 1, 4, 1] ^= 1
    changed = Found("CIFAR-10 test", {"b": "1" * 64}, lambda: Images(other, Y))
    with pytest.raises(BadInput, match="differ from the published"):
        load_images(changed, exact)


def test_cache_is_used_verified_and_made_again(tmp_path: Path) -> None:
    reads = []

    def read() -> Images:
        reads.append(1)
        return Images(X, Y)

    source = Found("CIFAR-10 test", {"a": "2" * 64}, read)
    for _ in range(2):
        np.testing.assert_array_equal(load_images(source, EXPECTED).x, X)
    assert len(reads) == 1
    (kept,) = (tmp_path / "cache" / "arrays").iterdir()
    data = bytearray(kept.read_bytes())
    data[-5] ^= 1
    kept.write_bytes(data)
    np.testing.assert_array_equal(load_images(source, EXPECTED).x, X)
    assert len(reads) == 2
    kept.write_bytes(data[:100])
    np.testing.assert_array_equal(load_images(source, EXPECTED).y, Y)
    assert len(reads) == 3


def test_no_place_for_the_cache_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("OVA_CACHE", str(tmp_path / "file"))
    np.testing.assert_array_equal(load_images(found(Images(X, Y)), EXPECTED).x, X)


def test_canonical_order_forgets_the_order_of_the_files() -> None:
    order = DRAW.permutation(20)
    first = load_images(Found("a", {"a": "3"}, lambda: Images(X, Y)), EXPECTED, canonical=True)
    second = load_images(
        Found("a", {"a": "4"}, lambda: Images(X[order], Y[order])), EXPECTED, canonical=True
    )
    assert first.digest() == second.digest()
    assert sorted(map(bytes, first.x)) == sorted(map(bytes, X))


@pytest.mark.parametrize("kind", ["webp", "png", "bmp"])
def test_decoding_is_exact(kind: str) -> None:
    np.testing.assert_array_equal(decode_all("d", [encoded(x, kind) for x in X]), X)


def test_unreadable_images_are_counted_and_named() -> None:
    good = [encoded(x) for x in X]
    good[3], good[7] = b"", b"RIFF but no image"
    with pytest.raises(BadInput, match=r"2 of 20 images are unreadable \(rows 3, 7\)"):
        decode_all("file", good)


def bomb(side: int) -> bytes:
    """A PNG that says it is large; what it unpacks to would be as large."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [13_000, 20_000, 1_000_000])
def test_an_image_too_large_is_refused_before_it_is_unpacked(side: int) -> None:
    with pytest.raises(BadInput, match=r"an image of (13000 x 13000|too many) pixels"):
        decode(bomb(side))


def test_missing_column_is_named(tmp_path: Path) -> None:
    file = tmp_path / "plain_text" / "test-00000-of-00001.parquet"
    file.parent.mkdir()
    pq.write_table(pa.table({"image": [1], "label": [0]}), file)
    with pytest.raises(BadInput, match="no column 'img'; the columns are image, label"):
        locate(cifar.origin(cifar.TEN, "test"), tmp_path).read()


def test_missing_data_says_which_files_where_and_how(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as error:
        locate(cifar.origin(cifar.TEN, "test"), tmp_path)
    for said in (
        "CIFAR-10 test is not here",
        "plain_text/test-*.parquet",
        "cifar-10-batches-py/test_batch (or cifar-10-python.tar.gz)",
        "cifar-10-batches-bin/test_batch.bin",
        str(tmp_path / "cifar10"),
        str(tmp_path / "cache" / "data"),
        "uoft-cs/cifar10",
        "not reachable",
        "to get it: download cifar-10-python.tar.gz",
        "--data-dir or OVA_DATA",
    ):
        assert said in str(error.value)


def test_absent_data_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nowhere does not exist"):
        locate(cifar.origin(cifar.TEN, "test"), tmp_path / "nowhere")


def test_the_cache_folder_is_looked_in_too(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "data"
    folder.mkdir(parents=True)
    as_binary(folder)
    assert len(locate(cifar.origin(cifar.TEN, "test"), None).read().y) == 20


def test_hold_out_is_balanced_fixed_and_disjoint() -> None:
    y = DRAW.permutation(np.repeat(np.arange(10), 30))
    train, held = hold_out(y, 50)
    assert sorted([*train, *held]) == list(range(300))
    assert np.bincount(y[held]).tolist() == [5] * 10
    np.testing.assert_array_equal(held, hold_out(y, 50)[1])
    assert held.tolist() != hold_out(y, 50, seed=1)[1].tolist()


def test_a_folder_of_the_same_name_is_not_the_hub_s(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "clinc/clinc_oos").mkdir(parents=True)
    (tmp_path / "clinc/clinc_oos/train.csv").write_text("text,intent\nhello,0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ConnectionError, match="would be taken for it"):
        hub_dataset(Hub("clinc/clinc_oos", None, "train"))


def test_hub_data_takes_the_same_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import datasets

    features = datasets.Features(
        {"img": datasets.Image(), "label": datasets.ClassLabel(names=list(CIFAR10))}
    )
    rows = {"img": [{"bytes": encoded(x), "path": None} for x in X], "label": Y.tolist()}
    asked = []

    def load_dataset(path: str, config: str, split: str) -> datasets.Dataset:
        asked.append((path, config, split))
        return datasets.Dataset.from_dict(rows, features)

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    images = locate(cifar.origin(cifar.TEN, "test"), tmp_path).read()
    assert asked == [("uoft-cs/cifar10", "plain_text", "test")]
    np.testing.assert_array_equal(images.x, X)
    np.testing.assert_array_equal(images.y, Y)
