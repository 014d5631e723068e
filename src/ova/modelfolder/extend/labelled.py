"""Rows that a person labelled, as the network of a model sees them, divided as its own rows are."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from ova.data.task import InMemory
from ova.errors import BadInput
from ova.modelfolder.asking import wanted
from ova.modelfolder.extend.stored import Rows, Stored, seen
from ova.modelfolder.folder import Model
from ova.modelfolder.review.log import alive
from ova.modelfolder.review.sheet import FOR_GROUP, Label, filled_in, ours
from ova.predictions import NONE
from ova.predictions.sets import TEST
from ova.userdata.gather import STRANGE, called, usable
from ova.userdata.labels import labelled as labelled_images
from ova.userdata.request import Request
from ova.userdata.rows import Frame, whole
from ova.userdata.split import HELD, split

TRAIN = "train"


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows with what they are: an index into `names`, NONE for none of the classes."""

    rows: Rows  # y is the index
    names: tuple[str, ...]  # classes, those of the model or new ones
    called: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> Counter[str]:
        """The rows of each class."""
        return Counter(self.names[k] for k in self.rows.y.tolist() if k != NONE)

    @property
    def none(self) -> int:
        """The rows of none of the classes."""
        return int((self.rows.y == NONE).sum())


def read(model: Model, path: Path, new: Sequence[str], label: str, skip_bad: bool) -> LabelledRows:
    """The labelled rows of a file, or of a folder of class folders with images."""
    if path.is_dir():
        frame, cells, _ = labelled_images(path, Request(data=path))
        frame = Frame({**frame.columns, label or "label": cells}, frame.bad)
    else:
        frame = as_written(whole(path), model)
    labels = filled_in(frame, model, new, label, path)
    known = [row for row, said in enumerate(labels) if said is not None]
    if not known:
        raise BadInput(
            f"{path}: no row has a label; write one of the model's classes, 'new: NAME' or 'none' "
            "beside the rows that are to be learned"
        )
    frame = taken(frame, known)
    encoded = model.preparation.encode(frame)
    kept, notes = usable(path, Request(data=path, skip_bad=skip_bad), encoded.bad, len(frame))
    lengths = None if encoded.lengths is None else encoded.lengths[kept]
    said = [labels[known[row]] for row in kept]
    names = tuple(sorted({each.name for each in said if each is not None and each.name}))
    number = {"": NONE, **{name: k for k, name in enumerate(names)}}
    y = torch.tensor([number[named(each)] for each in said])
    column = model.preparation.column
    inputs = frame.columns[column] if column else [""] * len(frame)
    titles = [called(known[row], named(labels[known[row]]) or "none", inputs[row]) for row in kept]
    rows = seen(model, InMemory(encoded.x[kept], y, lengths))
    return LabelledRows(rows, names, tuple(titles), tuple(notes))


def as_written(frame: Frame, model: Model) -> Frame:
    """The rows of a sheet of ours without the marks that keep spreadsheets from running a cell."""
    if ours(FOR_GROUP, wanted(model)) not in frame.columns:
        return frame
    columns = {name: [*map(alive, column)] for name, column in frame.columns.items()}
    return Frame(columns, frame.bad)


def named(label: Label | None) -> str:
    """The class of a label, empty for none of them."""
    return "" if label is None else label.name


def taken(frame: Frame, rows: Sequence[int]) -> Frame:
    """Some rows of a frame."""
    columns = {name: [column[row] for row in rows] for name, column in frame.columns.items()}
    return Frame(columns, {i: frame.bad[row] for i, row in enumerate(rows) if row in frame.bad})


def unknown_to(stored: Stored, found: LabelledRows) -> LabelledRows:
    """Without the rows whose input is among the model's own already: they would be on both sides."""
    known = {key for rows in stored.sets.values() for key in rows.key.tolist()}
    kept = [row for row, key in enumerate(found.rows.key.tolist()) if key not in known]
    again = len(found.rows) - len(kept)
    if not again:
        return found
    note = f"{again} labelled rows are inputs that the model was trained or judged on; left out"
    titles = tuple(found.called[row] for row in kept)
    return replace(found, rows=found.rows.take(kept), called=titles, notes=(*found.notes, note))


def parts_of(found: LabelledRows, seed: int) -> tuple[dict[str, Rows], tuple[str, ...]]:
    """The rows of each set, by lot and each input once where it is held out; names of those to train."""
    lots = split(found.rows.key.tolist(), seed, list(HELD))
    sets = {name: found.rows.take(rows) for name, rows in lots.items()}
    strange = sets[TEST].y == NONE
    if strange.any():
        test = sets[TEST]
        sets |= {TEST: test.take(torch.where(~strange)[0])}
        sets[STRANGE] = test.take(torch.where(strange)[0])
    return sets, tuple(found.called[row] for row in lots[TRAIN])
