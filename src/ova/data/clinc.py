"""CLINC150 (Larson et al., 2019): sentences of 150 intents, and sentences of none of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ova.data import wordpiece
from ova.data.hub import Hub, hub_dataset
from ova.data.images import merged
from ova.data.inventory import Item, item
from ova.data.sources import Blob, Found, Layout, Origin, locate
from ova.data.task import Augmentation, Examples, InMemory, Task, unchanged
from ova.data.wordpiece import END, LENGTH, PAD, START, UNKNOWN, encode, vocabulary
from ova.errors import BadInput
from ova.files import parsed, reading
from ova.predictions import NONE
from ova.predictions.sets import SetName

OUT_OF_SCOPE = "oos"
COUNTS = {"train": 15_000, "val": 3_000, "test": 4_500}
OUTSIDE = {"oos_train": 100, "oos_val": 100, "oos_test": 1_000}
CLASSES = 150
DROPPED = 0.2  # of the word pieces, left out while training with the trimmed vocabulary
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5)  # of the word pieces, replaced at severity 1 to 5

Rows = Mapping[str, Sequence[tuple[str, str]]]  # split -> sentences with their intents


def read_json(blobs: Sequence[Blob]) -> Rows:
    """The official data_full.json: for each split a list of [sentence, intent]."""
    (blob,) = blobs
    with reading(blob.name, "text in UTF-8"):
        held = parsed(blob.data.decode("utf-8"), blob.name)
    absent = [s for s in (*COUNTS, *OUTSIDE) if not isinstance(held, dict) or s not in held]
    if absent:
        raise BadInput(f"{blob.name}: there is no {', '.join(absent)} in it")
    for split in (*COUNTS, *OUTSIDE):
        for number, row in enumerate(held[split] if isinstance(held[split], list) else [None]):
            if not (isinstance(row, list) and len(row) == 2 and all(map(is_text, row))):
                raise BadInput(f"{blob.name}: row {number} of {split} is not [sentence, intent]")
    return checked(blob.name, {s: [(t, i) for t, i in held[s]] for s in (*COUNTS, *OUTSIDE)})


def is_text(value: Any) -> bool:
    """Whether this is a string with something in it."""
    return isinstance(value, str) and bool(value.strip())


def checked(name: str, rows: Rows) -> Rows:
    """The same rows when the counts and the intents are those of the paper."""
    for split, count in {**COUNTS, **OUTSIDE}.items():
        if len(rows[split]) != count:
            raise BadInput(f"{name}: {split} has {count} sentences, here {len(rows[split])}")
    intents = {intent for _, intent in rows["train"]}
    for split in COUNTS:
        found = {intent for _, intent in rows[split]}
        if len(intents) != CLASSES or found != intents:
            raise BadInput(f"{name}: {split} has {CLASSES} intents, here {len(found)}")
    return rows


def read_hub(name: str, _: object) -> Rows:
    """The hub's `plus`: the sentences of data_full, with more out-of-scope ones to train on."""
    rows: dict[str, list[tuple[str, str]]] = {s: [] for s in (*COUNTS, *OUTSIDE)}
    for split, ours in (("train", "train"), ("validation", "val"), ("test", "test")):
        table = hub_dataset(Hub("clinc/clinc_oos", "plus", split))
        names = table.features["intent"].names
        for text, intent in zip(table["text"], table["intent"], strict=True):
            outside = names[intent] == OUT_OF_SCOPE
            rows[f"oos_{ours}" if outside else ours].append((text, names[intent]))
    rows["oos_train"] = rows["oos_train"][: OUTSIDE["oos_train"]]  # `plus` has 250 of them
    return checked(name, rows)


def origin() -> Origin[Rows]:
    """Where the sentences can come from."""
    return Origin(
        name="CLINC150",
        folders=("clinc150", "clinc", "oos-eval/data", "."),
        layouts=(Layout(("data_full.json",), read_json),),
        hub=Hub("clinc/clinc_oos", "plus", "train"),
        read_hub=read_hub,
        how="download data/data_full.json from the repository clinc/oos-eval",
    )


@dataclass(frozen=True)
class Sentences:
    """All sentences as tokens, each split with its targets."""

    classes: tuple[str, ...]
    splits: Mapping[str, InMemory]
    tokens: int  # size of the embedding table
    unknown: int
    special: Tensor  # ids of padding, start and end: never replaced
    seen: Tensor  # ids of the word pieces of the training sentences
    sources: Mapping[str, str]


def sentences(data_dir: Path | None) -> Sentences:
    """The sentences with the full BERT vocabulary."""
    found: Found[Rows] = locate(origin(), data_dir)
    words = vocabulary(data_dir)
    pieces, rows = words.read(), found.read()
    classes = tuple(sorted({intent for _, intent in rows["train"]}))
    number = {intent: k for k, intent in enumerate(classes)}
    splits = {}
    for split, pairs in rows.items():
        x, lengths = encode(pieces, [text for text, _ in pairs])
        y = torch.tensor([number.get(intent, NONE) for _, intent in pairs])
        splits[split] = InMemory(x, y, lengths)
    special = torch.tensor([pieces[piece] for piece in (PAD, START, END)])
    return Sentences(
        classes=classes,
        splits=splits,
        tokens=len(pieces),
        unknown=pieces[UNKNOWN],
        special=special,
        seen=without(splits["train"].x.unique(), special),
        sources=merged(found, words),
    )


def without(ids: Tensor, others: Tensor) -> Tensor:
    """The ids that are not among the others."""
    return ids[~torch.isin(ids, others)]


def trim(full: Sentences, *trained: str) -> Sentences:
    """The same sentences with an embedding row only for the pieces of the splits that are trained on.

    Padding, start, end and unknown come first, those pieces follow, and all others become unknown.
    """
    first = torch.cat([full.special, torch.tensor([full.unknown])])
    pieces = torch.cat([full.splits[split].x.flatten() for split in trained]).unique()
    kept = torch.cat([first, without(pieces, first)])
    new = torch.full((full.tokens,), len(full.special))
    new[kept] = torch.arange(len(kept))
    return replace(
        full,
        splits={name: replace(part, x=new[part.x]) for name, part in full.splits.items()},
        tokens=len(kept),
        unknown=len(full.special),
        special=new[full.special],
        seen=new[full.seen],
    )


def replaced(examples: InMemory, share: float, text: Sentences) -> InMemory:
    """That share of the word pieces replaced by random ones of the training sentences.

    The draws are the same for every share, so what is replaced at one severity is at the next.
    """
    draw = torch.Generator().manual_seed(0)
    chance = torch.rand(examples.x.shape, generator=draw)
    other = text.seen[torch.randint(len(text.seen), examples.x.shape, generator=draw)]
    change = (chance < share) & ~torch.isin(examples.x, text.special)
    return replace(examples, x=torch.where(change, other, examples.x))


def joined(first: InMemory, second: InMemory) -> InMemory:
    """Both, one after the other."""
    assert first.lengths is not None
    assert second.lengths is not None
    return InMemory(
        torch.cat([first.x, second.x]),
        torch.cat([first.y, second.y]),
        torch.cat([first.lengths, second.lengths]),
    )


def dropping(text: Sentences) -> Augmentation:
    """Training sentences with some word pieces left out, other ones in every epoch.

    They become padding, not the unknown piece: a network that learns to do without unknown words
    overlooks them in sentences of no class as well.
    """

    def augment(x: Tensor, draw: torch.Generator) -> Tensor:
        dropped = torch.rand(x.shape, generator=draw) < DROPPED
        return torch.where(dropped & ~torch.isin(x, text.special), 0, x)  # 0 is padding

    return augment


def task(text: Sentences, augment: Augmentation = unchanged, with_none: bool = False) -> Task:
    """Train, validation and test in scope; outside it the out-of-scope test sentences."""
    splits, test = text.splits, text.splits["test"]
    evaluations: dict[str, Callable[[], Examples]] = {
        "test": lambda: test,
        **{
            SetName.shift("replace", severity): partial(replaced, test, share, text)
            for severity, share in enumerate(SHARES, start=1)
        },
        SetName.ood("oos"): lambda: splits["oos_test"],
        SetName.to_choose("oos"): lambda: splits["oos_val"],
    }
    train = joined(splits["train"], splits["oos_train"]) if with_none else splits["train"]
    return Task(
        classes=text.classes,
        shape=(text.tokens, LENGTH),
        train=train,
        validation=splits["val"],
        evaluations=evaluations,
        prepare=lambda x: x,
        augment=augment,
        sources=text.sources,
    )


def clinc(data_dir: Path | None) -> Task:
    """As the paper: the full vocabulary."""
    return task(sentences(data_dir))


def trimmed(data_dir: Path | None) -> Task:
    """The same sentences, with an embedding row only for word pieces that occur in training."""
    text = trim(sentences(data_dir), "train")
    return task(text, dropping(text))


def none(data_dir: Path | None) -> Task:
    """Trimmed, and the 100 out-of-scope training sentences as examples of none of the classes."""
    text = trim(sentences(data_dir), "train", "oos_train")
    return task(text, dropping(text), with_none=True)


def inventory(data_dir: Path | None) -> Iterator[Item]:
    """What is there of the sentences and of their vocabulary."""

    def measure(found: Found[Rows]) -> tuple[int, int]:
        rows = found.read()
        return sum(map(len, rows.values())), len({intent for _, intent in rows["train"]})

    yield item(origin(), data_dir, measure)
    yield item(wordpiece.origin(), data_dir, lambda found: (len(found.read()), 0))
