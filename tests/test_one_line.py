"""Each kind of thing is added by one new file and one line in its table, and is then found everywhere.

The package is copied, the files are written and the lines put in, and another process looks.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import ova


@dataclass(frozen=True)
class Addition:
    """A file of its own, a line below an opening line of a table, and where it must be found."""

    file: str
    text: str
    table: str
    below: str
    line: str
    finds: str  # an expression that is true once it is there


ADDITIONS = {
    "formulation": Addition(
        "nn/mine.py",
        """
        from ova.nn.formulation import one_vs_all
        from ova.nn.heads import Affine

        FORMULATION = one_vs_all("mine", Affine)
        """,
        "nn/formulations.py",
        "FORMULATIONS: dict[str, Formulation] = {",
        '    "mine": import_module("ova.nn.mine").FORMULATION,',
        """
        listed("formulations")
        and ova.Loss("mine")(torch.zeros(2, 3), torch.tensor([0, 1])) > 0
        and ova.Head("mine", 4, 3)(torch.zeros(1, 4)).shape == (1, 3)
        and replace(EXPERIMENTS["digits"].base("ova"), formulation="mine").formulation == "mine"
        """,
    ),
    "score": Addition(
        "scores/mine.py",
        """
        from ova.scores.score import free

        SCORES = {"mine": free("mine", "probabilities", lambda p: p.confidence)}
        """,
        "scores/table.py",
        "_FILES = (  # each has entries in its SCORES; a score comes after those that it joins",
        '    "mine",',
        """
        listed("scores")
        and any(row.get("score") == "mine" for row in measured())
        and fit(Outputs(probs=p, target=[0, 0]), names=["mine"])(Outputs(probs=p))["mine"][0] == 0.9
        and detection("auroc", "mine")(said, outside) is not None
        """,
    ),
    "metric": Addition(
        "metrics/mine.py",
        """
        from ova.metrics.metric import Mean, Metric

        METRICS = {"mine": Metric(Mean(lambda p: p.confidence), "higher", "mine", calibrated=True)}
        """,
        "metrics/table.py",
        "_FILES = (  # each has entries in its METRICS, or DETECTION, or both",
        '    "mine",',
        """
        listed("metrics")
        and [row["dataset"] for row in measured() if row["metric"] == "mine"] == ["test", "test"]
        """,
    ),
    "detection metric": Addition(
        "metrics/found.py",
        """
        from ova.metrics.ranking import Detection

        DETECTION = {"mine_too": Detection(lambda r: r.n / (r.n + r.m), "higher", "mine")}
        """,
        "metrics/table.py",
        "_FILES = (  # each has entries in its METRICS, or DETECTION, or both",
        '    "found",',
        'any(row["metric"] == "mine_too" for row in measured())',
    ),
    "calibration": Addition(
        "posthoc/calibration/mine.py",
        '''
        from dataclasses import dataclass
        from typing import ClassVar

        from ova.posthoc.calibration.calibration import Calibration


        @dataclass(frozen=True, kw_only=True)
        class Mine(Calibration):
            """Mine."""

            method: ClassVar[str] = "mine"
            fewest: ClassVar[int] = 1
            order: ClassVar[str] = "kept"

            factors: tuple[float, ...]

            @classmethod
            def fit(cls, held):
                return cls(n=len(held), normalised=held.normalised, factors=(0.5, 1.0))

            def confidence(self, p):
                return self.factors[0] * p.confidence


        CALIBRATION = Mine
        ''',
        "posthoc/calibration/table.py",
        "_NAMES = (  # each a file beside this",
        '    "mine",',
        """
        listed("calibrations")
        and (fitted := ova.CALIBRATIONS["mine"].fit(said)).apply(said).confidence[0] < 0.5
        and from_json(json.loads(json.dumps(fitted.to_json()))) == fitted
        and ova.OneVsAllClassifier(accuracy=0.5, calibration="mine").fit(points, sides).calibration_
        """,
    ),
    "corruption": Addition(
        "corruptions/mine.py",
        '''
        from ova.corruptions.corruption import Corruption


        def mine(work):
            """Mine."""
            return work.images // work.strength


        CORRUPTIONS = {"mine": Corruption(mine, (1, 2, 3, 4, 5), (2, 3, 4, 5, 6))}
        ''',
        "corruptions/table.py",
        "_FILES = (  # each has entries in its CORRUPTIONS",
        '    "mine",',
        """
        listed("corruptions")
        and ova.corrupt(white, "mine", 5).max() == 51
        and ova.corrupt(white, "mine", 2, constants="imagenet").max() == 85
        and chosen_types(["mine"]) == ["mine"]
        and "shift/mine/5" in changes("cifar", None)[0]
        """,
    ),
    "model": Addition(
        "models/mine.py",
        '''
        from torch import nn

        from ova.models.backbone import Backbone


        def mine(shape, dropout):
            """Mine."""
            return Backbone(nn.Linear(shape[0], 4), 4)


        MODELS = {"mine": mine}
        ''',
        "models/__init__.py",
        "_FILES = (  # each has entries in its MODELS",
        '    "mine",',
        """
        listed("models")
        and model("mine")((2,), 0.0).features == 4
        and replace(EXPERIMENTS["toy"].base("ova"), model="mine").model == "mine"
        """,
    ),
    "data set": Addition(
        "data/mine.py",
        '''
        from ova.data import toy
        from ova.data.inventory import Item


        def load(data_dir):
            """Mine."""
            return toy.load(data_dir)


        def inventory(data_dir):
            """Mine."""
            yield Item("Mine", "present", 10_000, 10)
        ''',
        "data/__init__.py",
        "_TABLE = {  # name -> file, its function that makes the task, and what it is",
        '    "mine": ("mine", "load", "mine"),',
        """
        listed("datasets")
        and len(DATASETS["mine"](None).classes) == 10
        and any(item.name == "Mine" for item in inventory(Path("nowhere")))
        and replace(EXPERIMENTS["toy"].base("ova"), data="mine").data == "mine"
        """,
    ),
    "file format": Addition(
        "predictions/formats/mine.py",
        '''
        import numpy as np


        def chunks(path, targets):
            """Mine."""
            yield {"probs": np.array([[0.75, 0.25]]), "target": np.array([1])}
        ''',
        "predictions/formats/__init__.py",
        "_FILES = {  # ending -> file",
        '    ".mine": "mine",',
        """
        read_any(Path(__file__).with_name("said.mine")).confidence[0] == 0.75
        and [p.suffix for p in inside([Path(__file__).parent])] == [".mine"]
        """,
    ),
    "experiment": Addition(
        "experiments/mine.py",
        """
        from dataclasses import replace

        from ova.experiments import toy

        EXPERIMENT = replace(toy.EXPERIMENT, name="mine", about="mine")
        """,
        "experiments/__init__.py",
        "_FILES = (",
        '    "mine",',
        'listed("experiments") and "mine" in str(ran("run", "other").exception)',
    ),
    "figure": Addition(
        "report/figures/mine.py",
        """
        from dataclasses import replace

        from ova.report.figures.training import FIGURE as LIKE

        FIGURE = replace(LIKE, title="A figure of mine", section="trust")
        """,
        "report/figures/__init__.py",
        "NAMES = (",
        '    "mine",',
        """
        html([run]).index("A figure of mine")
        < html([run]).index("Where does it break?", html([run]).index("A figure of mine"))
        """,
    ),
    "kind of own data": Addition(
        "userdata/mine.py",
        """
        from dataclasses import replace

        from ova.userdata import tables

        KIND = replace(
            tables.KIND,
            fits=lambda request: request.data.stem == "mine",
            settings={**tables.KIND.settings, "lr": 0.5},
        )
        """,
        "userdata/kinds.py",
        "_FILES = {  # name -> file; the first that fits is taken",
        '    "mine": "mine",',
        """
        gather(Request(data=table("mine.csv"))).kind == "mine"
        and gather(Request(data=table("mine.csv"))).recipe.lr == 0.5
        and gather(Request(data=table("other.csv"))).kind == "table"
        and load_preparation("mine", {"columns": [], "mean": [], "scale": []}, Path()).shape == (0,)
        """,
    ),
    "command": Addition(
        "cli/mine.py",
        '''
        import typer


        def mine(word: str) -> None:
            """Mine."""
            typer.echo(word)
        ''',
        "cli/app.py",
        "COMMANDS = {",
        '    "mine": "mine",',
        'ran("mine", "hello").output == "hello\\n" and "Mine." in ran("--help").output',
    ),
}

LOOK = """
import json, sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import ova
from ova.cli.app import app
from ova.cli.catalogue import rows
from ova.cli.corrupt import chosen_types
from ova.data import DATASETS
from ova.data.inventory import inventory
from ova.data.shift import changes
from ova.experiments import EXPERIMENTS
from ova.metrics import detection
from ova.metrics.model_files import inside
from ova.models import model
from ova.posthoc.calibration import Top, from_json
from ova.predictions import Predictions, read_any
from ova.report.page import html
from ova.scores import Outputs, fit
from ova.training.run_folder import Run
from ova.userdata.gather import gather
from ova.userdata.kinds import preparation as load_preparation
from ova.userdata.request import Request
from typer.testing import CliRunner

white = np.full((2, 8, 8, 3), 255, np.uint8)
sides = np.arange(400) % 2
points = sides[:, None] + np.linspace(0, 0.5, 400)[:, None]
p = np.array([[0.9, 0.1], [0.4, 0.6]])
said = Predictions.from_probs(p, [0, 0], normalised=True)
outside = Predictions.from_probs(p, [-1, -1], normalised=True)
run = Run("e", "r", "ova", 0, log=[{"epoch": e, "loss": 1, "validation_loss": 1} for e in (1, 2)])
fixed = Top(n=2, normalised=True, a=1.0, b=0.0, score="logit of max_p")


def listed(kind):
    return ("mine", "mine") in {(name, about.lower().rstrip(".")) for name, about in rows(kind)}


def ran(*words):
    return CliRunner().invoke(app, words)


def table(name):
    path = Path(__file__).with_name(name)
    path.write_text("x,label\\n" + "".join(f"{i},{'ab'[i % 2]}\\n" for i in range(99)))
    return path


def measured():
    return ova.evaluate({"test": said, "ood/other": outside}, calibration=fixed).rows


finds = json.loads(Path(__file__).with_name("finds.json").read_text())
print(json.dumps({kind: bool(eval(f"({expression})")) for kind, expression in finds.items()}))
print(ova.__file__, file=sys.stderr)
"""


def dedented(text: str) -> str:
    return "\n".join(line[8:] if line.startswith(8 * " ") else line for line in text.split("\n"))


def put_in(home: Path, new: Addition) -> None:
    file = home / new.file
    assert not file.exists()
    file.write_text(dedented(new.text).lstrip())
    table = home / new.table
    lines = table.read_text().split("\n")
    assert lines.count(new.below) == 1, f"{new.table} has no line {new.below!r}"
    lines.insert(lines.index(new.below) + 1, new.line)
    table.write_text("\n".join(lines))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bool]:
    """Per kind, whether what was added is found; all are added to one copy of the package."""
    folder = tmp_path_factory.mktemp("house")
    home = folder / "src" / "ova"
    shutil.copytree(Path(ova.__file__).parent, home)
    for new in ADDITIONS.values():
        put_in(home, new)
    look = folder / "look" / "look.py"
    look.parent.mkdir()
    look.write_text(LOOK)
    look.with_name("said.mine").touch()
    finds = {kind: new.finds for kind, new in ADDITIONS.items()}
    look.with_name("finds.json").write_text(json.dumps(finds))
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "OVA_CACHE": str(folder)}
    ran = subprocess.run(
        [sys.executable, str(look)], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert str(home) in ran.stderr  # it was the copy that was looked at
    answers: dict[str, bool] = json.loads(ran.stdout)
    return answers


@pytest.mark.slow
@pytest.mark.parametrize("kind", ADDITIONS)
def test_one_file_and_one_line_add_it_everywhere(kind: str, found: dict[str, bool]) -> None:
    assert found[kind]


def test_the_table_of_contributing_names_what_was_written_and_where_the_line_went() -> None:
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (?!to add|-).*\| `(.+?)`.*\| `(\w+)` in `(.+?)` \| `(.+?)` \|$", text, re.M
    )
    assert sorted(kind for *_, kind in rows) == sorted(ADDITIONS)
    for file, name, table, kind in rows:
        new = ADDITIONS[kind]
        assert (Path(file).parent, table) == (Path(new.file).parent, new.table), kind
        assert new.below.split()[0].rstrip(":") == name, kind
