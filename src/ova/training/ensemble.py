"""Several runs of one recipe answered as one: a run folder whose predictions are the mean of theirs."""

import hashlib
from collections.abc import Generator, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from ova.errors import BadInput
from ova.files import Row, read_object, sha256, write_json
from ova.predictions import SetName, has_matrix
from ova.predictions.averaging import average
from ova.predictions.sets import VALIDATION
from ova.training.manifest import circumstances, manifest
from ova.training.recipe import MEMBERS, Recipe, from_json
from ova.training.run_folder import (
    MANIFEST,
    PREDICTIONS,
    RECIPE,
    complete,
    locked,
    part,
    predictions_path,
    write_measurements,
)
from ova.training.stages import MATRIX, SHIFTED, Stage, of_predictions, timed


@dataclass(frozen=True)
class Member:
    """A run that is complete."""

    folder: Path
    recipe: Recipe
    manifest: Row

    @property
    def sets(self) -> set[str]:
        """The names of the sets that it has predicted."""
        home = self.folder / PREDICTIONS
        found = (path.relative_to(home).with_suffix("") for path in home.rglob("*.parquet"))
        return {path.as_posix() for path in found if not path.name.startswith(".")}

    def predictions(self, name: str) -> Path:
        """The file with its predictions on a set."""
        return predictions_path(self.folder, name)

    def digest(self, names: Iterable[str]) -> str:
        """The SHA-256 of what it predicts on some sets: of their files' own, in order."""
        digests = "".join(sha256(self.predictions(name)) for name in names)
        return hashlib.sha256(digests.encode()).hexdigest()


def ensemble(folders: Sequence[Path], out: Path) -> Generator[Stage, None, str]:
    """Average, calibrate and measure what is not there yet, yielding what happens; gives a remark.

    The order of the folders changes nothing: members are added up in the order of their seeds.
    """
    members = agreeing(folders)
    names, remark = answered(members)
    recipe = recipe_of(members, names)
    with locked(out):
        claim(out, recipe)
        if complete(out):
            yield Stage("complete")
            return remark
        record = begin(out, recipe, members[0])
        with timed("prediction", record):
            for number, name in enumerate(names, 1):
                path = predictions_path(out, name)
                if not path.exists():
                    yield Stage(f"averaging {name}", number, len(names))
                    average(path, [m.predictions(name) for m in members])
        yield Stage("measuring")
        with timed("measurement", record):
            record["score"], rows, curves = of_predictions(out, names)
            record["rows"] = len(rows)
            write_measurements(out, rows, curves)
        write_json(out / MANIFEST, record)
    return remark


def agreeing(folders: Sequence[Path]) -> list[Member]:
    """The members in the order of their seeds; they may differ in nothing else."""
    if len(folders) < 2:
        raise BadInput("an ensemble has at least two members; name the folders of several runs")
    members = sorted(map(member, folders), key=lambda m: m.recipe.seed)
    for one, other in pairwise(members):
        if wrong := disagreement(one, other):
            raise BadInput(f"{one.folder} and {other.folder} {wrong}")
    return members


def member(folder: Path) -> Member:
    """The run in a folder, if it is complete."""
    if not complete(folder):
        raise BadInput(f"{folder} is no complete run; `ova run` makes one, and finishes one")
    content = part(folder / RECIPE)
    if MEMBERS in content:
        raise BadInput(f"{folder} is an ensemble itself; name its members")
    return Member(folder, from_json(content, folder / RECIPE), part(folder / MANIFEST))


def disagreement(one: Member, other: Member) -> str:
    """Why two runs cannot be members of one ensemble; empty if they can."""
    if one.recipe.seed == other.recipe.seed:
        return f"both have seed {one.recipe.seed}; members are runs with different seeds"
    mine, theirs = asdict(one.recipe), asdict(other.recipe)
    differing = [k for k in mine if k != "seed" and mine[k] != theirs[k]]
    if differing:
        told = ", ".join(f"{k} ({mine[k]!r} and {theirs[k]!r})" for k in differing)
        return f"differ in {told}; members are runs of one recipe that differ in the seed alone"
    if one.manifest.get("data") != other.manifest.get("data"):
        return "were trained on different data; run one of them again in another --out"
    if odd := sorted(one.sets ^ other.sets):
        return f"have not predicted the same sets, {odd[0]} is missing in one; run that one again"
    return ""


def answered(members: Sequence[Member]) -> tuple[list[SetName], str]:
    """The sets that all members keep probabilities of, in order, and a remark on what is left out.

    Shifted sets are left out together: a mean over some of them would compare unlike things.
    """
    names = sorted(map(SetName, members[0].sets), key=lambda name: name.place)
    if VALIDATION not in names:
        raise BadInput(f"{members[0].folder} has no predictions any more; run it again")
    lacking = {n: m.folder for n in names for m in members if not has_matrix(m.predictions(n))}
    for name, folder in lacking.items():
        if not name.shifted:
            raise BadInput(
                f"{folder} keeps no probabilities of {name}, and an ensemble is their mean; "
                f"a run keeps those of sets with at most {MATRIX:,} of them"
            )
    if not lacking:
        return names, ""
    remark = (
        f"shifted sets are left out: {next(iter(lacking.values()))} keeps no probabilities of them; "
        f"a run of this version does, of sets with at most {SHIFTED:,} of them"
    )
    return [name for name in names if not name.shifted], remark


def recipe_of(members: Sequence[Member], names: Sequence[SetName]) -> Row:
    """What the folder says it is: the members' recipe under a name of its own, and their digests.

    The seed is the smallest, so that ensembles of other members count as repetitions in a report.
    """
    first = asdict(members[0].recipe)
    shift = first["shift"] if any(name.shifted for name in names) else "none"
    return first | {
        "formulation": f"{first['formulation']} x {len(members)}",
        "shift": shift,
        MEMBERS: {member.recipe.id: member.digest(names) for member in members},
    }


def claim(out: Path, recipe: Row) -> None:
    """Make the folder this ensemble's, or see that it already is; clear what a killed one left."""
    path = out / RECIPE
    if not path.exists():
        write_json(path, recipe)
    elif read_object(path).get(MEMBERS) != recipe[MEMBERS]:
        raise BadInput(
            f"{path} is of another run, or of members that have changed; it was left untouched. "
            "Name another --out, or move the folder away"
        )
    for beside in out.rglob(".*.part"):
        beside.unlink()


def begin(out: Path, recipe: Row, first: Member) -> Row:
    """The manifest of the ensemble: the one that an interrupted one began, or a new one."""
    path = out / MANIFEST
    if path.exists():
        record = read_object(path)
        record["resumed"] = [*record.get("resumed", []), circumstances()]
    else:
        record = manifest(recipe["seed"], first.manifest.get("data", {}))
        record[MEMBERS] = recipe[MEMBERS]
    write_json(path, record)
    return record
