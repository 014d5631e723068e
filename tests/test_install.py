"""The base alone is enough for heads, losses and metrics; what needs an extra names it."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ova
from ova.errors import EXTRAS

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONSTRAINTS = ROOT / "constraints.txt"
PIP = [sys.executable, "-m", "pip"]

# Command lines, and the extra that they ask for where only the base is installed.
NEEDS = {
    "run toy": "train",
    "run toy --tensorboard": "tensorboard",
    "run toy --log mlflow": "mlflow",
    "run toy --log wandb": "wandb",
    "push trained ann/x": "train",
    "tune toy": "train",
    "train said.csv": "train",
    "corrupt --preview cat.png": "train",
    "list corruptions": "train",
    "report runs": "report",
    "evaluate said.csv -o page.html": "report",
    "export model": "onnx",
    "serve trained": "serve",
}
WORKS = (
    "--help",
    "--version",
    "list",
    "list metrics",
    "evaluate said.csv",
    "calibrate said.csv --fit held.csv",
    "score train.npz test.npz --outside far.npz",
    "predict trained rows.csv",  # a model of tables; texts and images need more
)
BASE = """CALIBRATIONS FORMULATIONS Head Loss METRICS OneVsAllClassifier Predictions Selective
convert evaluate evaluate_scores fit_threshold load metrics"""

# Every name and every command in one process; `-c` takes it and its arguments.
DRIVER = """
import contextlib, io, json, sys

blocked, names, commands = map(json.loads, sys.argv[1:])
sys.modules.update(dict.fromkeys(blocked))  # an import of what is None fails as if it were absent
import ova
from ova.cli.app import main
from ova.errors import BadInput

found = {}
for name in names:
    try:
        getattr(ova, name)
        found[name] = ""
    except BadInput as error:
        found[name] = str(error)
for command in commands:
    sys.argv, said, code = ["ova", *command.split()], io.StringIO(), 0
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            main()
        except SystemExit as error:
            code = error.code or 0
    found[command] = [code, said.getvalue()]
print(json.dumps(found))
"""


def distribution(requirement: str) -> str:
    """The name of a distribution as registries compare it.

    >>> distribution("huggingface_hub>=0.24")
    'huggingface-hub'
    """
    return re.split(r"[<>=\[; ]", requirement)[0].lower().replace("_", "-")


LARGE = {"wandb"}  # extras that development does without; each brings the module of its own name
INSTALLED = {m: {distribution(name) for name in d} for m, d in packages_distributions().items()}
INSTALLED |= {name: {name} for name in LARGE}


def brought(extra: str) -> set[str]:
    """The distributions that an extra itself brings."""
    every = {distribution(r) for r in PROJECT["optional-dependencies"][extra]}
    return every - {"ova"}


def modules(distributions: set[str]) -> set[str]:
    """The top modules of distributions, as they are installed here."""
    return {m for m, names in INSTALLED.items() if names & distributions}


def sentence(extra: str) -> str:
    """What is said where an extra is missing, as a pattern."""
    return rf"this needs [\w .&-]+: pip install 'ova\[{extra}\]'"


def small_inputs(folder: Path) -> None:
    """The smallest files that can be measured and calibrated, features to score, a model to ask."""
    rows = [f"{0.5 + (i % 50) / 101},{i % 2},{(i % 3) % 2}" for i in range(300)]
    text = "\n".join(["confidence,prediction,target", *rows])
    for name in ("said.csv", "held.csv"):
        (folder / name).write_text(text, encoding="utf-8")
    old = Path(__file__).parent / "modelfolder" / "version_0_1"
    shutil.copytree(old / "model", folder / "trained")
    rows = (old / "rows.csv").read_text("utf-8").splitlines()[:9]  # later ones cannot be used
    (folder / "rows.csv").write_text("\n".join(rows), encoding="utf-8")
    draw = np.random.default_rng(0)
    for name in ("train.npz", "test.npz", "far.npz"):
        f = draw.normal(size=(60, 4))
        np.savez(folder / name, features=f, logits=f[:, :3], target=draw.integers(0, 3, 60))


def check(python: Path | str, folder: Path, blocked: set[str], **environment: str) -> None:
    """Every promise about the base, in an environment where it is alone."""
    small_inputs(folder)
    asked: list[Any] = [sorted(blocked), ova.__all__, [*WORKS, *NEEDS]]
    command = [str(python), "-c", DRIVER, *map(json.dumps, asked)]
    found = json.loads(run(command, folder, **environment).splitlines()[-1])
    assert {name: found[name] for name in BASE.split()} == dict.fromkeys(BASE.split(), "")
    for name in ova.__all__:
        assert not found[name] or re.fullmatch(sentence(r"\w+"), found[name]), name
    assert re.fullmatch(sentence("train"), found["corrupt"])
    assert {line: found[line][0] for line in WORKS} == dict.fromkeys(WORKS, 0), found
    for line, extra in NEEDS.items():
        code, said = found[line]
        assert code == 2, line
        assert re.fullmatch(f"error: {sentence(extra)}\n", said), (line, said)


def run(command: list[str], folder: Path, **environment: str) -> str:
    """What a command prints; one that fails shows everything that it said."""
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        command, cwd=folder, env=clean | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_sentences_know_what_each_extra_brings(extra: str) -> None:
    named = set(EXTRAS[extra])
    assert named <= modules(brought(extra))
    assert all(modules({name}) & named for name in brought(extra))


def reached(extra: str) -> set[str]:
    """An extra and those that it brings."""
    listed = " ".join(PROJECT["optional-dependencies"][extra])
    named = [name for each in re.findall(r"ova\[([^]]*)\]", listed) for name in each.split(",")]
    return {extra}.union(*map(reached, named))


def test_each_extra_is_enough_for_its_commands_and_dev_has_them_all() -> None:
    assert reached("dev") | LARGE == {*EXTRAS, "all", "dev"} == {*PROJECT["optional-dependencies"]}
    assert reached("train") == {"train", "report"}  # every training ends with a page
    assert all(
        reached(name) == {name, "train", "report"}
        for name in ("mlflow", "onnx", "serve", "tensorboard", "wandb")
    )


def test_every_import_is_of_something_that_is_declared() -> None:
    """What only another package happens to bring can be gone with its next version."""
    declared = {distribution(r) for r in PROJECT["dependencies"]}.union(*map(brought, EXTRAS))
    known = modules(declared) | set(sys.stdlib_module_names) | {"ova"}
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or "ova"]
            assert {name.partition(".")[0] for name in names} <= known, path


@pytest.mark.slow
def test_without_any_extra_the_base_works_and_the_rest_names_its_extra(tmp_path: Path) -> None:
    blocked = modules(set().union(*map(brought, EXTRAS)))
    check(sys.executable, tmp_path, blocked, PYTHONPATH=str(Path(ova.__file__).parents[1]))


# The same and more in environments of their own, with a wheel instead of the tree.


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, built from a copy so that the tree stays as it is."""
    folder = tmp_path_factory.mktemp("wheel")
    probe = [*PIP, "download", "--no-deps", "--retries=0", "--timeout=10", "setuptools>=77"]
    if subprocess.run(probe, cwd=folder, capture_output=True, check=False).returncode:
        why = "pip cannot reach a registry, so nothing can be installed"
        if os.environ.get("OVA_REQUIRE_REGISTRY") == "1":
            pytest.fail(f"OVA_REQUIRE_REGISTRY=1, but {why}")
        pytest.skip(f"{why} (OVA_REQUIRE_REGISTRY=1 turns this into a failure)")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    run([*PIP, "wheel", "--no-deps", "--wheel-dir", "made", "."], folder)
    (made,) = (folder / "made").glob("ova-*.whl")
    return made


class Environment:
    """A virtual environment that nothing else is in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        run([sys.executable, "-m", "venv", "venv"], folder)
        # torch by its exact version first: a plain one may bring gigabytes for GPUs.
        (torch,) = re.findall(r"^torch==.*$", CONSTRAINTS.read_text(encoding="utf-8"), re.M)
        self.install(torch)

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "venv/bin/python"

    def install(self, what: str) -> None:
        """Install in the versions that development uses."""
        quick = ["install", "-q", "--no-compile", "-c", str(CONSTRAINTS)]
        run([str(self.python), "-m", "pip", *quick, what], self.folder)

    def ova(self, line: str) -> str:
        """What a command prints, started outside of the tree."""
        return run([str(self.python), "-m", "ova", *line.split()], self.folder)

    def has(self) -> set[str]:
        """The distributions that are installed."""
        listed = run([str(self.python), "-m", "pip", "list", "--format=json"], self.folder)
        return {distribution(each["name"]) for each in json.loads(listed)}


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Environment]:
    """An environment that takes its gigabytes away again."""
    yield Environment(tmp_path)
    shutil.rmtree(tmp_path / "venv")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_base_trains_the_readme_s_loop_and_report_adds_the_page(
    wheel: Path, here: Environment
) -> None:
    here.install(str(wheel))
    assert not here.has() & set().union(*map(brought, EXTRAS))
    check(here.python, here.folder, set())
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    printed = run([str(here.python), "-c", code], here.folder).splitlines()
    assert [line.split()[0] for line in printed] == ["softmax", "ova", "ova-dm"]
    here.install(f"{wheel}[report]")
    assert brought("report") <= here.has()
    assert not here.has() & brought("train")
    here.ova("evaluate said.csv -o said.html")
    here.ova(f"report {ROOT / 'results/toy'} --figures figures --format svg")
    assert "<svg" in next((here.folder / "figures").glob("*.svg")).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_wheel_installed_elsewhere_trains_reports_and_exports(
    wheel: Path, here: Environment
) -> None:
    parts = {name for name in zipfile.ZipFile(wheel).namelist() if not name.endswith(".py")}
    wanted = ("py.typed", "report/style.css", "report/page.js", "modelfolder/server/page/try.html")
    assert {f"ova/{name}" for name in wanted} <= parts
    here.install(f"{wheel}[train]")
    assert brought("train") | brought("report") <= here.has()
    here.ova("run toy --only ova --seeds 1 --set epochs=2")
    here.ova("report runs")
    page = (here.folder / "report.html").read_text(encoding="utf-8")
    assert (ROOT / "src/ova/report/style.css").read_text(encoding="utf-8")[:200] in page
    rows = [f"{i % 7},{i % 11},{'ab'[i % 7 > 3]}" for i in range(400)]
    table = "\n".join(["x,y,kind", *rows])
    (here.folder / "table.csv").write_text(table, encoding="utf-8")
    here.ova("train table.csv --label kind --set epochs=3 --out model")
    here.install(f"{wheel}[tensorboard]")
    here.ova("run toy --only softmax --seeds 1 --set epochs=1 --tensorboard")
    assert list(here.folder.glob("runs/toy/*/tensorboard/*"))
    here.install(f"{wheel}[onnx]")
    assert "agrees with PyTorch" in here.ova("export model --onnx model.onnx")
    assert brought("onnx") | brought("tensorboard") <= here.has()
