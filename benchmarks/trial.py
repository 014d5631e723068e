"""The fair trial of docs/trial.md: tries for every formulation, a choice, fresh seeds, verdicts.

    python benchmarks/trial.py --plan
    python benchmarks/trial.py --only digits-8,digits-9 [--out FOLDER]

Every run is a folder as `ova run` leaves it, and goes on after an interruption. What the trial needs
of it is a line of results/trial/<data>.jsonl, so that a run which has its line is not made again,
on no machine. The table is printed and kept as FOLDER/trial-<data>.md, the choices as
FOLDER/choices-<data>.json. One thread: set OMP_NUM_THREADS=1.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ova.errors import BadInput
from ova.experiments import EXPERIMENTS
from ova.files import read_lines, write_json, write_lines, write_text
from ova.metrics.selective import aurc, mixture
from ova.predictions import Predictions, read
from ova.predictions.columns import Array
from ova.predictions.sets import VALIDATION, SetName
from ova.scores import scores_of
from ova.training.engine import Machine, launch
from ova.training.loop import Diverged
from ova.training.recipe import Recipe
from ova.training.run_folder import FAILURE, predictions_path, read_measurements
from ova.training.stages import Place, carry_out
from trial_verdicts import (  # type: ignore[import-not-found]
    HIGHER,
    Judged,
    Run,
    cells,
    clearly_beaten,
    report,
)

OURS = ("ova-island", "ova-horizon", "ova-roof", "ova-ball")
OTHERS = ("softmax", "dm", "ova", "ova-dm", "softmax-smooth", "logitnorm", "t2fnorm", "isomax+")
SETTINGS = {  # factors of the learning rate, and of that of the last layer
    "base": (1.0, 1.0),
    "slow": (1 / 3, 1.0),
    "fast": (3.0, 1.0),
    "head": (1.0, 3.0),
}
RESULTS = Path(__file__).parents[1] / "results" / "trial"
CHOOSES, FIRST = 300, 301  # the seed of every try, and the first of those that judge


@dataclass(frozen=True)
class Arena:
    """A data set: the experiment whose recipes it takes, what chooses and judges, and how often."""

    experiment: str
    data: str
    outside: str  # judges as ood/<name>
    chooses: str  # validation/<name>
    seeds: int
    seconds: tuple[int, int]  # of a try and of a run that judges, measured on one core

    def recipe(self, formulation: str, setting: str, seed: int, shift: bool) -> Recipe:
        """A run of the trial."""
        base = EXPERIMENTS[self.experiment].base(formulation)
        rate, head = SETTINGS[setting]
        return replace(
            base,
            experiment=f"trial-{self.data}",
            data=self.data,
            seed=seed,
            lr=float(f"{rate * base.lr:.6g}"),
            head_lr=float(f"{head * base.head_lr:.6g}"),
            shift="all" if shift else "none",
        )


ARENAS = {
    "digits-8": Arena("digits", "digits-8", "8", "9", 10, (2, 3)),
    "digits-9": Arena("digits", "digits-9", "9", "8", 10, (2, 3)),
    "clinc": Arena("clinc-desk", "clinc-trimmed", "oos", "oos", 3, (400, 425)),
    "omniglot": Arena("omniglot", "omniglot-aside", "evaluation", "evaluation", 3, (130, 190)),
}
TOY = ("ring", "centre")  # far out, and amid the classes
MAY_SPARE = ("digits-8", "digits-9", "clinc")  # clearly beaten in all of these: not run on the last


@dataclass(frozen=True)
class Choice:
    """What a formulation goes into the judging with, and how its tries compared."""

    setting: str
    score: str
    tries: dict[str, float | None]  # AURC of each setting; None: diverged
    scores: dict[str, float]  # AURC of each score at that setting


@dataclass(frozen=True)
class Ledger:
    """What is known of the runs of a data set, a line each, in the order in which they ended."""

    path: Path

    def known(self, recipe: Recipe, make: Callable[[], dict[str, Any]], **also: Any) -> Any:
        """The line of a recipe; made and added first if there is none yet."""
        key = {"run": recipe.id, **also}
        lines = read_lines(self.path) if self.path.exists() else []
        for line in lines:
            if key.items() <= line.items():
                return line
        line = {**key, **make()}
        write_lines(self.path, [*lines, line])
        return line


@dataclass(frozen=True)
class Site:
    """Where the trial takes place: run folders here, what is known of them there."""

    place: Place
    ledgers: Path

    def ledger(self, name: str) -> Ledger:
        """That of a data set."""
        return Ledger(self.ledgers / f"{name}.jsonl")


def carried_out(recipe: Recipe, place: Place) -> Path | None:
    """The folder of the finished run; None if it diverges, which is remembered."""
    folder, machine = place.folder(recipe), Machine(accelerator="cpu")
    if (folder / FAILURE).exists():
        return None
    print(f"{recipe.experiment}/{recipe.id}", flush=True)
    try:
        for _ in carry_out(launch(machine), recipe, place, machine):
            pass
    except Diverged as error:
        write_text(folder / FAILURE, f"{error}\n")
        return None
    return folder


def areas(inside: Predictions, outside: Predictions) -> dict[str, float]:
    """AURC of both sets mixed, by every score that they have."""
    mine, theirs = scores_of(inside), scores_of(outside)
    return {
        name: aurc(mixture(values, inside.correct, theirs[name]))
        for name, values in mine.items()
        if name in theirs
    }


def tried(arena: Arena, recipe: Recipe, place: Place) -> dict[str, Any]:
    """The areas of a try by every score; none if it diverged."""
    folder = carried_out(recipe, place)
    if folder is None:
        return {"areas": None}
    sets = (VALIDATION, SetName.to_choose(arena.chooses))
    found = areas(*(read(predictions_path(folder, s), probs=False) for s in sets))
    return {"areas": {name: float(f"{area:.9g}") for name, area in found.items()}}


def choose(arena: Arena, formulation: str, site: Site) -> Choice:
    """Carry out the tries; the setting with the smallest area by max p, then its best score."""
    found: dict[str, dict[str, float]] = {}
    for setting in SETTINGS:
        recipe = arena.recipe(formulation, setting, CHOOSES, shift=False)
        make = partial(tried, arena, recipe, site.place)
        line = site.ledger(arena.data).known(recipe, make, setting=setting)
        if line["areas"] is not None:
            found[setting] = line["areas"]
    if not found:
        raise BadInput(f"{formulation} diverges with every setting on {arena.data}")
    setting = min(found, key=lambda name: found[name]["max_p"])
    score = min(found[setting], key=found[setting].__getitem__)
    tries = {name: found[name]["max_p"] if name in found else None for name in SETTINGS}
    return Choice(setting, score, tries, found[setting])


def run_that_judges(arena: Arena, recipe: Recipe, score: str, place: Place) -> dict[str, Any]:
    """The cells of a run, as it is and on redrawn rows."""
    folder = carried_out(recipe, place)
    if folder is None:
        raise BadInput(f"{recipe.id} diverges: see {place.out}")
    run = Run.read(folder, arena.outside, score)
    values, redrawn = cells(run)
    found = {"values": rounded(values), "redrawn": [rounded(draw) for draw in redrawn]}
    return {**found, "excess": rounded(run.excess), "rows": min(run.sizes)}


def rounded(values: Array) -> list[float]:
    """To six digits: a thousandth of what the tables show."""
    return [float(f"{value:.6g}") for value in values]


def judged(arena: Arena, formulation: str, choice: Choice, site: Site) -> Judged:
    """The chosen setting with fresh seeds."""
    lines = []
    for seed in range(FIRST, FIRST + arena.seeds):
        recipe = arena.recipe(formulation, choice.setting, seed, shift=True)
        make = partial(run_that_judges, arena, recipe, choice.score, site.place)
        lines.append(site.ledger(arena.data).known(recipe, make, score=choice.score))
    keys = ("values", "redrawn", "excess")
    values, redrawn, excess = (np.array([line[key] for line in lines]) for key in keys)
    if values.shape[1] != len(HIGHER) or len({line["rows"] for line in lines}) != 1:
        raise BadInput(f"the lines of {arena.data} are of other cells or rows")
    chosen = f"{choice.setting}, {choice.score}"
    return Judged(chosen, values, redrawn, excess.mean(0), lines[0]["rows"])


def spared(name: str, out: Path) -> set[str]:
    """Formulations that need not run here, because they were clearly beaten everywhere before."""
    if name in MAY_SPARE:
        return set()
    notes = [out / f"beaten-{before}.txt" for before in MAY_SPARE]
    if not all(note.exists() for note in notes):
        return set()
    return set.intersection(*(set(note.read_text("utf-8").split()) for note in notes))


def carry_out_arena(name: str, site: Site) -> str:
    """Tries, choices, fresh seeds and the table of one data set."""
    arena, out = ARENAS[name], site.place.out
    without = spared(name, out)
    taking_part = [f for f in (*OURS, *OTHERS) if f not in without]
    choices = {f: choose(arena, f, site) for f in taking_part}
    write_json(out / f"choices-{name}.json", {f: asdict(c) for f, c in choices.items()})
    results = {f: judged(arena, f, choices[f], site) for f in taking_part}
    write_text(out / f"beaten-{name}.txt", "\n".join(clearly_beaten(results)) + "\n")
    missing = f"Not run, being clearly beaten before: {', '.join(sorted(without))}.\n\n"
    table = f"## {name}\n\n{missing if without else ''}{report(results, OURS)}"
    write_text(out / f"trial-{name}.md", table)
    return table


def toy_run(recipe: Recipe, place: Place) -> dict[str, Any]:
    """Mean confidence of a run far out and in the empty centre; nothing if it diverged."""
    folder = carried_out(recipe, place)
    rows = read_measurements(folder) if folder is not None else ()
    return {
        name: row["value"]
        for name in TOY
        for row in rows
        if (row["metric"], row["dataset"]) == ("confidence", f"ood/{name}")
    }


def toy(site: Site) -> Iterator[str]:
    """Mean confidence far out and in the empty centre, three seeds, the recipe as it stands."""
    yield "| | far ring | empty centre |\n|---|---|---|"
    for formulation in (*OURS, *OTHERS):
        base = replace(EXPERIMENTS["toy"].base(formulation), experiment="trial-toy")
        recipes = [replace(base, seed=seed) for seed in range(FIRST, FIRST + 3)]
        lines = [site.ledger("toy").known(r, partial(toy_run, r, site.place)) for r in recipes]
        seen = ([line[name] for line in lines if name in line] for name in TOY)
        shown = (f"{min(v):.3f} to {max(v):.3f}" if v else "diverged" for v in seen)
        yield f"| `{formulation}` | {' | '.join(shown)} |"


def plan() -> Iterator[str]:
    """How many runs there are and how long they take."""
    everybody, total = len(OURS) + len(OTHERS), 0
    yield "| data | tries | runs that judge | core hours |\n|---|---|---|---|"
    for name, arena in ARENAS.items():
        tries, judging = everybody * len(SETTINGS), everybody * arena.seeds
        seconds = tries * arena.seconds[0] + judging * arena.seconds[1]
        total += seconds
        yield f"| `{name}` | {tries} | {judging} | {seconds / 3600:.1f} |"
    yield f"| together | | | {total / 3600:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default=",".join((*ARENAS, "toy")), help="comma-separated data")
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--ledgers", type=Path, default=RESULTS, help="folder of what is known")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--plan", action="store_true", help="print what would be run")
    args = parser.parse_args()
    if args.plan:
        print("\n".join(plan()))
        return
    site = Site(Place(args.out, args.data_dir), args.ledgers)
    for name in args.only.split(","):
        print("\n".join(toy(site)) if name == "toy" else carry_out_arena(name, site), flush=True)


if __name__ == "__main__":
    main()
