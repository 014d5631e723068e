"""CLINC150: the published counts, WordPiece against a slow oracle, and what damage says."""

import json
from pathlib import Path

import pytest
import torch

from ova.data import DATASETS, clinc, wordpiece
from ova.data.sources import Blob, locate
from ova.data.task import InMemory, Task, plan
from ova.errors import BadInput


@pytest.fixture(scope="module")
def text(data_dir: Path) -> clinc.Sentences:
    return clinc.sentences(data_dir)


@pytest.fixture(scope="module")
def full(text: clinc.Sentences) -> Task:
    return clinc.task(text)


def test_counts_and_balance_are_the_published_ones(full: Task) -> None:
    assert (len(full.train), len(full.validation)) == (15_000, 3_000)
    assert full.shape == (30_522, 32)
    assert len(full.classes) == 150
    assert full.train.y.bincount().tolist() == [100] * 150
    assert full.validation.y.bincount().tolist() == [20] * 150
    test, outside = full.evaluations["test"](), full.evaluations["ood/oos"]()
    assert test.y.bincount().tolist() == [30] * 150
    assert (len(outside), outside.y.unique().tolist()) == (1_000, [-1])
    choose = full.evaluations["validation/oos"]()
    assert (len(choose), choose.y.unique().tolist()) == (100, [-1])
    assert set(full.sources) == {"clinc150/data_full.json", "bert-vocab/vocab.txt"}


def slow_wordpiece(sentence: str, pieces: dict[str, int]) -> list[int]:
    """Plain words without accents: split at spaces and punctuation, then the longest piece first."""
    for mark in "'!?.,-$%/&()\":;#+*":
        sentence = sentence.replace(mark, f" {mark} ")
    ids = []
    for word in sentence.lower().split():
        start, found = 0, []
        while start < len(word):
            ends = [
                e
                for e in range(len(word), start, -1)
                if ("##" if start else "") + word[start:e] in pieces
            ]
            if not ends:
                found = [pieces["[UNK]"]]
                break
            found.append(pieces[("##" if start else "") + word[start : ends[0]]])
            start = ends[0]
        ids += found
    return [pieces["[CLS]"], *ids[:30], pieces["[SEP]"]]


def test_tokens_are_those_of_the_slow_oracle(data_dir: Path, full: Task) -> None:
    pieces = dict(wordpiece.vocabulary(data_dir).read())
    rows = locate(clinc.origin(), data_dir).read()["train"]
    assert isinstance(full.train, InMemory)
    checked = 0
    for number in range(0, len(rows), 50):
        sentence = rows[number][0]
        if sentence.isascii():
            ids = slow_wordpiece(sentence, pieces)
            assert full.train.x[number].tolist() == ids + [0] * (32 - len(ids)), sentence
            assert int(full.train.lengths[number]) == len(ids)  # type: ignore[index]
            checked += 1
    assert checked > 250


def test_long_sentences_are_cut_and_odd_ones_survive(data_dir: Path) -> None:
    pieces = wordpiece.vocabulary(data_dir).read()
    x, lengths = wordpiece.encode(pieces, ["hello " * 100, "Ünïcode", "☃\x00", "a"])
    assert lengths.tolist() == [32, 3, 3, 3]
    assert x[0, 31] == pieces["[SEP]"]
    assert x[1, 1] == pieces["unicode"]
    assert x[2, 1] == pieces["[UNK]"]
    assert wordpiece.encode(pieces, [])[0].shape == (0, 32)


def test_batches_are_cut_to_their_longest(full: Task) -> None:
    batches = plan(full.train, 256, torch.Generator().manual_seed(0))
    padding = total = 0
    for x, _ in full.train.batches(batches):
        padding, total = padding + int((x == 0).sum()), total + x.numel()
    assert padding / total < 0.05  # two thirds at the full length of 32


def test_trimmed_keeps_every_trained_piece_and_nothing_else(text: clinc.Sentences) -> None:
    small = clinc.trim(text, "train")
    train = small.splits["train"].x
    assert train.unique().tolist() == [
        i for i in range(small.tokens) if i != small.unknown or text.unknown in text.seen
    ]
    for name, part in small.splits.items():
        whole = text.splits[name]
        assert torch.equal(part.x == 0, whole.x == 0)
        # The new ids tell apart what the old ones did, but for the pieces never seen in training.
        both = (whole.x * small.tokens + part.x).unique()  # one number for each pair: quick to sort
        pairs = torch.stack([both // small.tokens, both % small.tokens], 1)
        known = pairs[pairs[:, 1] != small.unknown]
        assert len(known[:, 0].unique()) == len(known[:, 1].unique()) == len(known)
        unseen = pairs[pairs[:, 1] == small.unknown][:, 0]
        assert not torch.isin(unseen[unseen != text.unknown], text.seen).any()


@pytest.mark.parametrize("small", [False, True])
def test_replacing_replaces_that_share_of_the_pieces(text: clinc.Sentences, small: bool) -> None:
    text = clinc.trim(text, "train") if small else text
    task = clinc.task(text)
    clean = text.splits["test"].x
    special = torch.isin(clean, text.special)
    before = torch.zeros_like(special)
    for severity, share in enumerate((0.1, 0.2, 0.3, 0.4, 0.5), start=1):
        shifted = task.evaluations[f"shift/replace/{severity}"]()
        assert isinstance(shifted, InMemory)
        changed = shifted.x != clean
        assert not (changed & special).any()
        assert float(changed[~special].float().mean()) == pytest.approx(share, abs=0.01)
        assert (before <= changed).all()  # what was replaced stays replaced
        assert torch.isin(shifted.x[changed], text.seen).all()
        assert torch.equal(shifted.y, task.evaluations["test"]().y)
        before = changed


def test_trimmed_training_drops_that_share_of_the_pieces(text: clinc.Sentences) -> None:
    small = clinc.trim(text, "train")
    x, augment = small.splits["train"].x, clinc.dropping(small)
    seen = augment(x, torch.Generator().manual_seed(0))
    special = torch.isin(x, small.special)
    changed = seen != x
    assert not changed[special].any()
    assert (seen[changed] == 0).all()
    share = float(changed.sum() / (~special).sum())
    assert share == pytest.approx(clinc.DROPPED, rel=0.02)
    again = augment(x, torch.Generator().manual_seed(0))
    assert torch.equal(seen, again)
    assert not torch.equal(seen, augment(x, torch.Generator().manual_seed(1)))


def test_none_has_the_out_of_scope_training_sentences(data_dir: Path) -> None:
    task = DATASETS["clinc-none"](data_dir)
    assert len(task.train) == 15_100
    assert int((task.train.y == -1).sum()) == 100
    # A word that only they have is a word, not "unknown": unknown must not come to mean none.
    unknown = clinc.trim(clinc.sentences(data_dir), "train").unknown
    assert not any(
        (x == unknown).any() for x, _ in task.train.batches([(task.train.y == -1).nonzero()[:, 0]])
    )
    assert len(task.validation) == 3_000
    assert int(task.validation.y.min()) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda held: held.pop("oos_val"), "no oos_val"),
        (lambda held: held["train"].pop(), "train has 15000 sentences, here 14999"),
        (lambda held: held["val"].__setitem__(3, ["only a sentence"]), "row 3 of val"),
        (lambda held: held["val"].__setitem__(3, ["", "greeting"]), "row 3 of val"),
        (lambda held: held["test"].__setitem__(0, ["hi", "new"]), "test has 150 intents, here 151"),
    ],
)
def test_wrong_sentences_are_named(data_dir: Path, change: object, message: str) -> None:
    held = json.loads((data_dir / "clinc150" / "data_full.json").read_text())
    change(held)  # type: ignore[operator]
    with pytest.raises(BadInput, match=message) as error:
        clinc.read_json([Blob("data_full.json", json.dumps(held).encode())])
    assert "data_full.json" in str(error.value)


@pytest.mark.parametrize("data", [b'{"train": [["a', b"[]", b"\xff\xfe"])
def test_damaged_json_is_named(data: bytes) -> None:
    with pytest.raises(BadInput, match=r"data_full\.json"):
        clinc.read_json([Blob("data_full.json", data)])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[PAD]\n[UNK]\n", "30522 word pieces, here are 2 lines"),
        (b"a\n" * 30_522, "1 different"),
        ("\n".join(f"w{i}" for i in range(30_522)).encode(), r"\[PAD\]"),
        (b"\xff\xfe", "UTF-8"),
    ],
)
def test_wrong_vocabulary_is_named(data: bytes, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        wordpiece.read_vocabulary([Blob("vocab.txt", data)])


def test_missing_vocabulary_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("OVA_CACHE", str(tmp_path))
    with pytest.raises(BadInput, match="BERT vocabulary is not here") as error:
        wordpiece.vocabulary(tmp_path)
    assert "bert-base-uncased" in str(error.value)
