"""Everything from a wish for other classes to a new model folder, for the command and for Python."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ova.errors import BadInput
from ova.modelfolder import outputs
from ova.modelfolder.extend.change import change
from ova.modelfolder.extend.extend import Asked, Extended, extend
from ova.modelfolder.extend.extend import lines as done
from ova.modelfolder.extend.keep import check_out, keep
from ova.modelfolder.extend.labelled import read, unknown_to
from ova.modelfolder.extend.moved import cells
from ova.modelfolder.extend.moved import lines as moved
from ova.modelfolder.extend.stored import stored
from ova.modelfolder.folder import load
from ova.posthoc.threshold import Promise, check_promise
from ova.report.extended import Facts, extended_page
from ova.userdata.request import Request

NOTHING = Promise()


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What `ova extend` is asked for."""

    out: Path
    labelled: Path | None = None
    data: Path | None = None
    test: Path | None = None
    outside: Path | None = None
    label: str = ""
    new: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    merge: tuple[str, ...] = ()
    wanted: Promise = NOTHING  # then it is what was promised before
    score: str = ""
    refit: bool | None = None
    skip_bad: bool = False


def carry_out(folder: Path, wish: Wish) -> Extended:
    """Change the classes of a model, and write the new one; nothing is written where that fails."""
    inputs = (folder, wish.data, wish.test, wish.outside, wish.labelled)
    outputs.check_folder("--out", wish.out, [path for path in inputs if path is not None])
    check_out(wish.out)
    if wish.labelled is None and not wish.remove and not wish.merge:
        raise BadInput("there is nothing to do: give labelled rows, --remove or --merge")
    if wish.wanted.says:
        check_promise(wish.wanted, outside=())
    model, found = load(folder), None
    if wish.labelled is not None:
        found = read(model, wish.labelled, wish.new, wish.label, wish.skip_bad)
    names = [] if found is None else [n for n in found.names if n not in model.classes]
    planned = change(model.classes, names, wish.remove, wish.merge)
    request = None
    if wish.data is not None:
        request = Request(data=wish.data, test=wish.test, outside=wish.outside)
    rows = stored(model, folder, request)
    if found is not None:
        found = unknown_to(rows, found)
    asked = Asked(wish.wanted if wish.wanted.says else None, wish.score, wish.refit)
    made = extend(model, rows, found, planned, asked)
    keep(made, model, folder, wish.out, page(made))
    return made


def page(made: Extended) -> str:
    """What was done and what moved, as a page."""
    facts = Facts(
        done=[*done(made), *made.notes],
        promise=[*made.trained.shown.lines(made.change.after)],
        outcomes=[f"{name}: {outcome}" for name, outcome in made.trained.outcomes.items()],
        kinds=[cells(each) for each in made.moved.values()],
        classes=[cells(each) for each in made.classes],
    )
    return extended_page(facts)


def lines(made: Extended) -> Iterator[str]:
    """The same for the screen."""
    yield from done(made)
    yield from made.notes
    yield from made.trained.shown.lines(made.change.after)
    yield from moved(made.moved, made.classes)
