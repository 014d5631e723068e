"""Training by time: a plan before it starts, an end with the best epoch, and a run that goes on."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import made_data
from ova.errors import BadInput
from ova.files import read_object
from ova.modelfolder import planning
from ova.modelfolder.folder import load
from ova.modelfolder.planning import Pace, timed, within
from ova.modelfolder.train import train
from ova.posthoc.threshold import Promise
from ova.training.engine import Machine, launch, nobody
from ova.training.loop import Progress
from ova.training.recipe import Recipe
from ova.training.run_folder import read_log
from ova.training.stages import Stage
from ova.userdata.gather import Gathered, gather
from ova.userdata.kinds import patience
from ova.userdata.request import Request


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_data.table(tmp_path_factory.mktemp("minutes") / "table.csv")


def fit(
    gathered: Gathered,
    out: Path,
    minutes: float | None = None,
    asked: Callable[[], bool] = nobody,
    stop: int | None = None,
) -> list[str]:
    """Train, and give the names of the stages; `stop` kills the training after so many events."""
    machine = Machine(accelerator="cpu", minutes=minutes, asked=asked)
    work = train(launch(machine), gathered, out, machine, Promise(coverage=0.5))
    said = []
    for number, event in enumerate(work):
        said += [event.name] if isinstance(event, Stage) else []
        if number == stop:
            break
    work.close()
    return said


class After:
    """Asks for the end at the n-th look."""

    def __init__(self, looks: int) -> None:
        self.left = looks

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.slow
@pytest.mark.parametrize("looks", [0, 1, 9, 30])
def test_who_asks_for_the_end_gets_the_best_epoch_so_far(
    data: Path, tmp_path: Path, looks: int
) -> None:
    gathered = gather(Request(data=data, settings=("epochs=50",)))
    fit(gathered, tmp_path / "cut", asked=After(looks))
    log = read_log(tmp_path / "cut/run")
    assert 1 <= len(log) < 50
    assert load(tmp_path / "cut").classes == gathered.task.classes
    before = (tmp_path / "cut/weights.safetensors").read_bytes()
    assert fit(gathered, tmp_path / "cut")[0] == "complete"  # it is not trained on
    assert (tmp_path / "cut/weights.safetensors").read_bytes() == before


def test_the_weights_are_those_of_the_best_epoch(data: Path, tmp_path: Path) -> None:
    """A training that is cut in epoch n ends as one whose plan ends there, with the same rates."""
    wish = Request(data=data, settings=("epochs=50", "schedule=constant"))
    short = Request(data=data, settings=("epochs=2", "schedule=constant", "patience=0"))
    steps = -(-len(gather(wish).task.train) // gather(wish).recipe.batch_size)
    looks = steps + 1 + 2  # of the second epoch every step, the end of it, and a bit of the third
    fit(gather(wish), tmp_path / "cut", asked=After(looks))
    fit(gather(short), tmp_path / "short")
    assert len(read_log(tmp_path / "cut/run")) == 2
    one, other = (load_file(tmp_path / name / "weights.safetensors") for name in ("cut", "short"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_time_that_is_up_ends_after_the_first_epoch(data: Path, tmp_path: Path) -> None:
    gathered = gather(Request(data=data, settings=("epochs=50",)))
    recipe = tmp_path / "model/run/recipe.json"
    said = fit(gathered, tmp_path / "model", minutes=1e-9)
    assert read_object(recipe)["epochs"] == 1
    assert len(read_log(tmp_path / "model/run")) == 1
    assert said[0] == "timing some steps"
    assert said[1].startswith("about ")
    assert "--minutes" in said[1]
    again = fit(gathered, tmp_path / "model", minutes=5.0)
    assert again[0].startswith("trained already")
    assert again[1] == "complete"


def test_a_plan_that_all_fits_changes_no_weight(data: Path, tmp_path: Path) -> None:
    gathered = gather(Request(data=data, settings=("epochs=3",)))
    fit(gathered, tmp_path / "timed", minutes=1000)
    fit(gathered, tmp_path / "plain")
    one, other = (load_file(tmp_path / name / "weights.safetensors") for name in ("timed", "plain"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_run_that_has_begun_keeps_its_plan(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On another day the machine is slower; the same command goes on all the same."""
    gathered = gather(Request(data=data))
    planned = gathered.recipe.epochs
    for epoch_takes in (600 * planning.ROOM / 3.5, 1000.0):
        pace = Pace(1, epoch_takes)
        monkeypatch.setattr(planning, "measured", lambda *_, pace=pace: pace)
        fit(gathered, tmp_path / "model", minutes=10, stop=12)
    recipe = read_object(tmp_path / "model/run/recipe.json")
    assert recipe["epochs"] == 3 < planned
    assert recipe["patience"] == patience(3)
    again = gather(Request(data=data, settings=("epochs=4",)))
    with pytest.raises(BadInput, match="another recipe"):
        fit(again, tmp_path / "model")


def recipes() -> Iterator[tuple[Recipe, int]]:
    """Recipes, and how many trainings they are."""
    base = Recipe(experiment="e", data="own", model="mlp", formulation="ova", epochs=40, lr=1)
    yield base, 1
    yield Recipe(**{**vars(base), "members": 3}), 3
    yield Recipe(**{**vars(base), "balance": "auto"}), 2


@pytest.mark.parametrize(("recipe", "trainings"), [*recipes()])
@pytest.mark.parametrize("seconds", [1e-9, 1.0, 30.0, 1e3, 1e9])
def test_what_is_planned_fits_into_the_time(recipe: Recipe, trainings: int, seconds: float) -> None:
    pace = Pace(step=0.25, epoch=2.5)
    found = within(recipe, pace, seconds)
    assert found.epochs <= recipe.epochs
    takes = found.steps * pace.step if found.steps else found.epochs * pace.epoch
    least = found.epochs == 1 and found.steps == 1  # one step is taken whatever the time
    assert least or takes * trainings <= seconds
    if found == recipe:
        return
    more = (found.steps + 1) * pace.step if found.steps else (found.epochs + 1) * pace.epoch
    assert more * trainings > planning.ROOM * seconds


@pytest.mark.parametrize("minutes", [-1.0, float("nan"), float("inf")])
def test_a_time_that_is_none_is_a_sentence(data: Path, tmp_path: Path, minutes: float) -> None:
    with pytest.raises(BadInput, match="--minutes"):
        fit(gather(Request(data=data)), tmp_path / "model", minutes=minutes)


def test_the_first_steps_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that only steps move: two slow ones, then steps of a quarter of a second."""
    now = [0.0]
    monkeypatch.setattr("ova.modelfolder.planning.time.perf_counter", lambda: now[0])

    def steps(durations: list[float]) -> Iterator[Progress | None]:
        for seconds in durations:
            now[0] += seconds
            yield None

    assert timed(steps([5.0, 4.0, *[0.25] * 50])) == 0.25
    assert timed(steps([5.0])) == 5.0
