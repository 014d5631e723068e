"""A review: the rows of a log that need a person, in groups, as a page and as a sheet to fill in."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ova.errors import BadInput
from ova.files import write_text
from ova.modelfolder import outputs
from ova.modelfolder.folder import Model
from ova.modelfolder.review import naming
from ova.modelfolder.review.asked import MOST, Asked, asked
from ova.modelfolder.review.groups import grouped, likeness
from ova.modelfolder.review.sheet import GROUP, TOLD, write_sheet
from ova.predictions import NONE_LABEL
from ova.predictions.columns import Array
from ova.report.review import Facts, Group, review_page
from ova.userdata.images import Pixels
from ova.userdata.rows import Frame
from ova.userdata.texts import Tokens

PAGE, SHEET = "review.html", "review.csv"
SHOWN = 5  # inputs of a group that stand on the page without a click


@dataclass(frozen=True, eq=False)
class Review:
    """Rows of a log and their groups, the largest first; each has its most typical rows first."""

    asked: Asked
    members: tuple[Array, ...]
    alone: Array  # rows that are like no others
    words: tuple[list[str], ...]
    nearest: tuple[list[str], ...]

    def lines(self) -> Iterator[str]:
        """What there was, in words."""
        found, grouped = self.asked, sum(map(len, self.members))
        yield f"{found.rows} inputs: {found.refused} {NONE_LABEL}, {found.doubtful} answered but doubtful"
        if found.bad:
            yield f"{found.bad} inputs could not be used"
        if found.others:
            yield f"{found.others} answers of another model are left out"
        if found.left:
            yield f"the first {MOST} of them are shown, {found.left} more are not; review these first"
        yield f"{grouped} of them are in {len(self.members)} groups, {len(self.alone)} are like no others"


def carry_out(
    model: Model,
    folder: Path,
    log: Sequence[str],
    out: Path,
    below: float,
    images: Path | None = None,
) -> Review:
    """Review a log, and write page and sheet; a sheet that is there may be filled in, and stays."""
    if not 0 <= below <= 1:
        raise BadInput(f"--below {below} is no confidence; give a number from 0 to 1")
    outputs.check_folder("--out", out, [folder, *log])
    if (out / SHEET).exists():
        raise BadInput(f"{out / SHEET} is there already, perhaps filled in; name another --out")
    found = review(model, log, below, images)
    write(found, model, out)
    return found


def review(model: Model, log: Sequence[str], below: float, images: Path | None = None) -> Review:
    """Find the rows, group them and say what is typical of each group."""
    found = asked(model, log, below, images)
    if found.bad == found.rows:
        raise BadInput(f"{', '.join(log)}: none of its {found.rows} inputs can be used")
    if not len(found):
        raise BadInput(
            f"{', '.join(log)}: all {found.rows - found.bad} inputs were answered, none of them doubtfully; there is "
            "nothing to review"
        )
    texts = None
    if isinstance(model.preparation, Tokens):
        texts = [str(cell) for cell in found.cells[model.preparation.column]]
    members, alone = grouped(*likeness(found.features, texts))
    encoded = model.preparation.encode(Frame(found.cells))
    words = naming.typical(model.preparation, found.cells, encoded.x, members)
    near = naming.near(found.logits, members, model.classes)
    return Review(found, tuple(members), alone, tuple(words), tuple(near))


def write(found: Review, model: Model, out: Path) -> None:
    """Write the sheet and the page into a folder."""
    order = np.concatenate([*found.members, found.alone]).astype(int)
    group = [str(k + 1) for k, rows in enumerate(found.members) for _ in rows]
    near = ["; ".join(found.nearest[k]) for k, rows in enumerate(found.members) for _ in rows]
    told = {
        GROUP: group + [""] * len(found.alone),
        "nearest_classes": near + [""] * len(found.alone),
        "best_guess": [found.asked.guess[i] for i in order],
        "confidence": [found.asked.confidence[i] for i in order],
        "score": [found.asked.score[i] for i in order],
    }
    assert {*TOLD} < {*told}
    cells = {name: [column[i] for i in order] for name, column in found.asked.cells.items()}
    write_text(out / PAGE, page(found, model))
    write_sheet(out / SHEET, model, cells, told)


def page(found: Review, model: Model) -> str:
    """The page as text."""
    texts = naming.inputs(model.preparation, found.asked.cells)
    answered = np.array([label != NONE_LABEL for label in found.asked.label], bool)
    images = isinstance(model.preparation, Pixels)

    def shown(name: str, rows: Array, words: Sequence[str], near: Sequence[str]) -> Group:
        first = () if images else rows[:SHOWN]
        return Group(
            name=name,
            size=len(rows),
            answered=int(answered[rows].sum()),
            words=words,
            nearest=near,
            typical=[texts[i] for i in first],
            others=[texts[i] for i in rows[len(first) :]],
            pictures=pictures(model, found, rows) if images else (),
        )

    groups = [
        shown(str(k + 1), rows, found.words[k], found.nearest[k])
        for k, rows in enumerate(found.members)
    ]
    if len(found.alone):
        groups.append(shown("", found.alone, (), ()))
    return review_page(Facts(summary=[*found.lines()], sheet=SHEET, groups=groups))


def pictures(model: Model, found: Review, rows: Array) -> list[bytes]:
    """The most typical pictures of a group."""
    some = rows[: naming.PICTURES]
    cells = {name: [column[i] for i in some] for name, column in found.asked.cells.items()}
    return naming.pictures(model.preparation.encode(Frame(cells)).x, np.arange(len(some)))
