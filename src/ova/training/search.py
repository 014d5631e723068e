"""Random search for hyper-parameters: what a trial tries follows from its number, Optuna keeps count.

Bergstra and Bengio, Random search for hyper-parameter optimization, JMLR 2012. Several workers, on
one machine or many, may share a storage; a trial whose worker died is taken up again by the next
one, and goes on from its checkpoint where that is on the same disk.
"""

import hashlib
import json
import platform
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import optuna
from lightning_fabric import Fabric
from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, Trial, TrialState
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from ova.errors import BadInput
from ova.files import read_lines, said_by, write_json, write_lines
from ova.training.engine import Machine
from ova.training.loop import Diverged, Progress, fit
from ova.training.recipe import Experiment, Recipe, override
from ova.training.run_folder import BEST, CHECKPOINT, HISTORY, LOCK, MODEL, RECIPE, locked, read_log
from ova.training.stages import Event, Stage, load_task

LOST = (SQLAlchemyError, StorageInternalError)  # what a storage raises that cannot be written to
WEIGHTS = (CHECKPOINT, BEST, MODEL)  # of a trial, while it is worked on
BEAT, GRACE = 30.0, 300.0  # seconds between signs of life, and without one until a worker is dead
CLAIM = (
    10.0  # seconds from taking a trial to saying where it is worked on; usually a few thousandths
)


@dataclass(frozen=True)
class Search:
    """The trials of one formulation of an experiment, and where they are worked on."""

    experiment: Experiment
    formulation: str
    trials: int
    seed: int = 0
    settings: tuple[str, ...] = ()
    out: Path = Path("runs")
    data_dir: Path | None = None
    storage: str = ""  # where workers meet; empty: a database beside the trials
    prune: bool = False  # give up early what is worse than most

    @cached_property
    def base(self) -> Recipe:
        """The recipe that every trial varies."""
        return override(self.experiment.base(self.formulation), self.settings)

    @property
    def name(self) -> str:
        """The study in the storage: another seed, range or setting is another study."""
        ranges = {field: asdict(where) for field, where in self.experiment.search.items()}
        told = json.dumps([self.seed, self.base.digest, ranges], sort_keys=True)
        digest = hashlib.sha256(told.encode()).hexdigest()[:8]
        return f"{self.experiment.name}/{self.formulation}/{digest}"

    def values(self, number: int) -> dict[str, float]:
        """What a trial tries: a function of seed, formulation and number, whoever asks and when."""
        ranges = self.experiment.search.items()
        return {n: r.at(share(self.seed, self.formulation, number, n)) for n, r in ranges}

    def recipe(self, number: int) -> Recipe:
        """The recipe of a trial."""
        return replace(self.base, **self.values(number))  # type: ignore[arg-type]

    @property
    def home(self) -> Path:
        """The folder of an experiment's trials."""
        return self.out / f"{self.experiment.name}-tune"

    def folder(self, number: int) -> Path:
        """The folder of one trial, out of sight of reports: it holds no evaluation."""
        return self.home / ".trials" / self.recipe(number).id

    @property
    def winner(self) -> Path:
        """The file for the recipe that is chosen."""
        return self.out / self.experiment.name / f"{self.formulation}.json"


def share(*parts: object) -> float:
    """A number in [0, 1) that looks random and is always the same for the same parts.

    >>> round(share(0, "ova", 0, "lr"), 4)
    0.4646
    """
    digest = hashlib.sha256(json.dumps(parts).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def searches(
    experiment: Experiment,
    only: Sequence[str] = (),
    trials: int = 0,
    settings: Iterable[str] = (),
    **more: Any,
) -> list[Search]:
    """One search for each formulation; refuses what cannot be searched. `more` is as in `Search`."""
    settings = tuple(settings)
    if not experiment.search:
        raise BadInput(f"the experiment {experiment.name} has no ranges to search in")
    fixed = {setting.partition("=")[0] for setting in settings} & set(experiment.search)
    if fixed:
        raise BadInput(f"{', '.join(sorted(fixed))} cannot be both set and searched for")
    names = only or [recipe.formulation for recipe in experiment.recipes]
    count = trials or experiment.trials
    found = [Search(experiment, name, count, settings=settings, **more) for name in names]
    for search in found:
        # A setting that cannot be is told before the first trial.
        if search.recipe(0).members > 1:
            raise BadInput("a trial is one network: leave members out, and give it to `ova run`")
    return found


def open_storage(search: Search) -> BaseStorage:
    """A database (a URL), or a journal file (a path) for network drives without file locks."""
    search.home.mkdir(parents=True, exist_ok=True)
    url = search.storage or f"sqlite:///{search.home / 'optuna.db'}"
    if "://" not in url:
        return JournalStorage(JournalFileBackend(url))
    sqlite = url.startswith("sqlite")
    more = {"connect_args": {"timeout": 120}} if sqlite else {"pool_pre_ping": True}
    for patience in (1, 1, 1, 0):  # two workers that create the tables at once: one tries again
        try:
            return RDBStorage(url, engine_kwargs=more)
        except (ArgumentError, ImportError) as error:
            raise BadInput(f"--storage is not a database URL that can be used: {error}") from None
        except (SQLAlchemyError, OSError) as error:
            reason = error
        time.sleep(patience)
    raise BadInput(f"--storage cannot be opened: {type(reason).__name__}: {reason}")


def open_study(search: Search) -> optuna.Study:
    """The books of one search."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    pruner = optuna.pruners.MedianPruner() if search.prune else optuna.pruners.NopPruner()
    return optuna.create_study(
        storage=open_storage(search), study_name=search.name, pruner=pruner, load_if_exists=True
    )


@contextmanager
def books(search: Search) -> Iterator[None]:
    """What a storage raises, on a full disk for example, as a sentence."""
    try:
        yield
    except LOST as error:
        where, why = search.storage or search.home, said_by(error.__cause__ or error)
        raise BadInput(
            f"{where}: the trials cannot be written down ({why}); make room, or name another "
            "--storage, then the same command goes on"
        ) from error


def state(trial: FrozenTrial) -> str:
    """What has become of a trial; `lost` is one whose worker died, which another one replaces."""
    if trial.state == TrialState.FAIL:
        return "diverged" if trial.user_attrs.get("diverged") else "lost"
    return trial.state.name.lower()


def numbered(study: optuna.Study) -> dict[int, FrozenTrial]:
    """The trial that counts for each number of the search: the first that was not lost."""
    found: dict[int, FrozenTrial] = {}
    for trial in study.get_trials(deepcopy=False):
        if "number" in trial.user_attrs and state(trial) != "lost":
            found.setdefault(trial.user_attrs["number"], trial)
    return found


def began(trial: FrozenTrial) -> float:
    """When a worker took the trial."""
    return trial.datetime_start.timestamp() if trial.datetime_start else 0.0


def is_dead(trial: FrozenTrial) -> bool:
    """Whether a running trial has no worker: no sign of life, or on this machine no lock."""
    said = trial.user_attrs
    if "host" not in said:
        return time.time() - began(trial) > CLAIM
    if time.time() - float(said.get("beat", began(trial))) > GRACE:
        return True
    if said.get("host") != platform.node():
        return False
    try:
        with locked(Path(said["folder"])):
            return True
    except BadInput:
        return False


def claimed(study: optuna.Study) -> list[FrozenTrial]:
    """The running trials, once each says where it is worked on or had the time to say so."""
    while True:
        trials = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        if all("host" in trial.user_attrs or is_dead(trial) for trial in trials):
            return trials
        time.sleep(CLAIM / 50)


def take(study: optuna.Study, search: Search) -> Trial | None:
    """The next trial to work on, None when every number has its trial."""
    for other in claimed(study):
        if is_dead(other):
            study.tell(other.number, state=TrialState.FAIL, skip_if_finished=True)
    for number in sorted(set(range(search.trials)) - set(numbered(study))):
        study.enqueue_trial(search.values(number), user_attrs={"number": number})
    while study.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
        trial = study.ask()
        # Two workers may have queued the same number: the first of them counts.
        number = trial.user_attrs.get("number", search.trials)
        if number < search.trials and numbered(study)[number].number == trial.number:
            for name, where in search.experiment.search.items():
                trial.suggest_float(name, where.low, where.high, log=where.log)
            return trial
        study.tell(trial, state=TrialState.FAIL)
    return None


@contextmanager
def alive(trial: Trial, folder: Path) -> Iterator[None]:
    """Hold the folder of a trial, and tell the storage from time to time that somebody does."""
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(BEAT):
            with suppress(*LOST):  # whoever works will hear of it
                trial.set_user_attr("beat", time.time())

    with locked(folder):
        trial.set_user_attr("folder", str(folder.resolve()))
        trial.set_user_attr("host", platform.node())
        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


def tune(fabric: Fabric, search: Search, machine: Machine) -> Generator[Event, None, None]:
    """Work on trials until every number has one, yielding what happens."""
    with books(search):
        yield from work(fabric, search, machine)


def work(fabric: Fabric, search: Search, machine: Machine) -> Generator[Event, None, None]:
    """The same, with whatever a storage raises."""
    study = open_study(search) if fabric.global_rank == 0 else None
    if study is not None:
        sweep(study, search)
    while True:
        trial = take(study, search) if study is not None else None
        number = fabric.broadcast(trial.user_attrs["number"] if trial else None)
        if number is None:
            return
        folder = search.folder(number)
        with alive(trial, folder) if trial else nullcontext():
            yield Stage("trial", number + 1, search.trials)
            yield from attempt(fabric, search, number, trial, machine)
            if study is not None and trial is not None:
                settle(study, trial, folder, search.base.keep)
        if study is not None:
            write_history([search])


def attempt(
    fabric: Fabric, search: Search, number: int, trial: Trial | None, machine: Machine
) -> Generator[Event, None, None]:
    """Train the recipe of one trial; what became of it is noted on the trial."""
    recipe, folder = search.recipe(number), search.folder(number)
    if fabric.global_rank == 0:
        write_json(folder / RECIPE, asdict(recipe))
    fabric.barrier()
    if (folder / MODEL).exists():  # the worker died after the training
        return
    try:
        task = load_task(recipe.data, search.data_dir)
        for event in fit(fabric, task, recipe, folder, machine):
            yield event
            if search.prune and event.row and given_up(fabric, trial, event):
                return
    except Diverged as error:
        if trial:
            trial.set_user_attr("diverged", str(error))


def given_up(fabric: Fabric, trial: Trial | None, event: Progress) -> bool:
    """Whether a trial is worse than most were at this epoch; all processes hear the same answer."""
    hopeless = False
    if trial and event.row:
        trial.report(event.row["validation_loss"], event.epoch)
        hopeless = trial.should_prune()
        trial.set_user_attr("pruned", hopeless)
    return bool(fabric.broadcast(hopeless))


def settle(study: optuna.Study, trial: Trial, folder: Path, keep: str) -> None:
    """Enter the result of a trial, then drop its weights: recipe and log stay."""
    if "diverged" in trial.user_attrs:
        study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)
    elif trial.user_attrs.get("pruned"):
        study.tell(trial, state=TrialState.PRUNED, skip_if_finished=True)
    else:
        losses = [row["validation_loss"] for row in read_log(folder)]
        value = min(losses) if keep == "best" else losses[-1]
        study.tell(trial, value, skip_if_finished=True)
    drop(folder)


def drop(folder: Path) -> None:
    """Remove the weights of a trial."""
    for name in WEIGHTS:
        (folder / name).unlink(missing_ok=True)


def sweep(study: optuna.Study, search: Search) -> None:
    """Drop what is left of a worker that was killed between entering a result and dropping the weights."""
    for number, trial in numbered(study).items():
        folder = search.folder(number)
        left = any((folder / name).exists() for name in (LOCK, *WEIGHTS))
        if trial.state.is_finished() and left:
            with suppress(BadInput), locked(folder):  # refused where its worker is still at it
                drop(folder)


def history(search: Search) -> list[dict[str, Any]]:
    """Every trial of a search as a row."""
    names = {"experiment": search.experiment.name, "formulation": search.formulation}
    with books(search):
        return [
            names
            | {"trial": number, "state": state(trial), "value": trial.value}
            | search.values(number)
            for number, trial in sorted(numbered(open_study(search)).items())
        ]


def write_history(found: Sequence[Search]) -> list[dict[str, Any]]:
    """Bring the rows of some searches up to date in the file of all, for the report."""
    path = found[0].home / HISTORY
    names = {search.formulation for search in found}
    with locked(path.with_name(".history"), wait=True):
        others = read_lines(path) if path.exists() else []
        rows = [row for row in others if row["formulation"] not in names]
        rows += [row for search in found for row in history(search)]
        write_lines(path, rows)
    return rows


def choose(search: Search) -> dict[str, Any] | None:
    """The best trial by validation loss, written as a recipe; None while some are not done."""
    rows = [row for row in history(search) if row["trial"] < search.trials]
    done = [row for row in rows if row["state"] in ("complete", "pruned", "diverged")]
    whole = [row for row in done if row["state"] == "complete"]
    if len(done) < search.trials or not whole:
        return None
    best = min(whole, key=lambda row: (row["value"], row["trial"]))
    write_json(search.winner, asdict(search.recipe(best["trial"])))
    return best
