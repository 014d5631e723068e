"""Put wrong lines into the code whose mistakes would break a promise, and see whether tests notice.

Which wrong lines: the first by a hash of their text, so a change elsewhere does not change them.
Each is tried in a fork that has the libraries loaded, on the tests that run its statement, quickest
first, for at most a minute of them; what makes them run ten times as long is "late" and counts as
killed. Times are the processor's, so that a busy machine finds the same. Ends with 1 when fewer than
90 % of those that matter are killed.
"""

import argparse
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import pickle
import random
import resource
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

import pytest

from mutants.operators import Mutant, mutants
from mutants.reach import Reach

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "ova"
TARGETS = [
    "nn/ball.py",
    "nn/distances.py",
    "nn/formulation.py",
    "nn/formulations.py",
    "nn/heads.py",
    "nn/horizon.py",
    "nn/is*.py",
    "nn/links.py",
    "nn/logitnorm.py",
    "nn/losses.py",
    "nn/modules.py",
    "nn/roof.py",
    "nn/squares.py",
    "nn/starting.py",
    "nn/summed_cross_entropy.py",
    "nn/t2fnorm.py",
    "posthoc/**/*.py",
    "modelfolder/promise.py",
    "userdata/split.py",
    "metrics/**/*.py",
    "scores/**/*.py",
]
TESTS = [
    "nn",
    "posthoc",
    "metrics",
    "scores",
    "modelfolder",
    "userdata",
    "training/test_estimator.py",
    "cli/test_evaluate.py",
    "cli/test_score.py",
]
PYTEST = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0"]
PYTEST += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # the libraries below are loaded
PYTEST += ["--tb=no", "--assert=plain"]  # nobody reads why a test failed, and telling takes seconds
# What tests import besides the package, loaded once for all forks.
HEAVY = ["torch", "torch._dynamo", "scipy.stats", "scipy.optimize", "sklearn.model_selection"]
HEAVY += ["pyarrow.parquet", "transformers", "lightning_fabric", "hypothesis", "numba", "cv2"]
HEAVY += ["altair", "typer"]
LONGEST = 60.0
CONTROL = 5.0  # seconds of the quickest tests of a file, tried without a change


@dataclass(frozen=True)
class Case:
    """A mutant, where it is, and the tests that reach it."""

    file: Path
    mutant: Mutant
    tests: list[str]
    seconds: float

    @property
    def name(self) -> str:
        return self.file.relative_to(PACKAGE).as_posix()

    def __str__(self) -> str:
        return f"{self.name}:{self.mutant.line}  {self.mutant}"


def main() -> int:
    parser = argparse.ArgumentParser("python -m mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=400, help="wrong lines to try; 0 for all")
    parser.add_argument("--jobs", type=int, default=2, help="tried at the same time")
    parser.add_argument("--only", default="", help="files whose name contains this")
    parser.add_argument("--tests", nargs="*", default=TESTS, help="folders of tests to try")
    options = parser.parse_args()
    os.chdir(ROOT)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path[:0] = [str(ROOT / "src")]
    for name in HEAVY:
        importlib.import_module(name)
    files = sorted(file for target in TARGETS for file in PACKAGE.glob(target))
    files = [file for file in files if options.only in str(file.relative_to(PACKAGE))]
    reach = _reach(files, options.tests)
    if reach.failed:
        print("these tests fail without any change:", *reach.failed, sep="\n  ")
        return 2
    cases = _cases(files, reach, options.count)
    equivalent = _equivalents()
    print(f"{len(cases)} wrong lines in {len(files)} files, {len(reach.seconds)} tests", flush=True)
    if failed := _failed(_controls(files, reach), options.jobs):
        print("without any change tests fail for", *failed, sep="\n  ")
        return 2
    outcomes = _try_all(cases, options.jobs)
    return _print(cases, outcomes, equivalent)


def _reach(files: list[Path], folders: Sequence[str]) -> Reach:
    """Run every test once, unchanged, in a fork: this process must not have loaded the package."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _hush()
        reach = Reach(files)
        tests = [str(ROOT / "tests" / part) for part in folders if (ROOT / "tests" / part).exists()]
        pytest.main([*PYTEST, "-m", "not slow and not browser", *tests], plugins=[reach])
        lines = {file: dict(ran) for file, ran in reach.tests.items()}
        with os.fdopen(write, "wb") as pipe:
            pickle.dump((lines, reach.seconds, reach.failed), pipe)
        os._exit(0)
    os.close(write)
    reach = Reach(files)
    with os.fdopen(read, "rb") as pipe:
        # Written by the fork of this very process, a few lines above.
        lines, reach.seconds, reach.failed = pickle.load(pipe)
    for file, ran in lines.items():
        reach.tests[file].update(ran)
    os.waitpid(pid, 0)
    return reach


def _cases(files: Sequence[Path], reach: Reach, count: int) -> list[Case]:
    """The first `count` mutants by the hash of their text, in the order of the files."""
    found = [
        _case(file, mutant, reach, LONGEST)
        for file in files
        for mutant in mutants(file.read_text())
    ]
    chosen = sorted(found, key=_hash)[: count or None]
    return sorted(chosen, key=lambda case: (case.file, case.mutant.line))


def _case(file: Path, mutant: Mutant, reach: Reach, longest: float) -> Case:
    """A mutant with the quickest of its tests, one at least."""
    tests: list[str] = []
    seconds = 0.0
    for test in reach.of(file, mutant.lines):
        if tests and seconds + reach.seconds[test] > longest:
            break
        tests.append(test)
        seconds += reach.seconds[test]
    return Case(file, mutant, tests, seconds)


def _controls(files: Sequence[Path], reach: Reach) -> list[Case]:
    """Every file as it is, tried as if it were wrong: what fails then would kill anything."""
    same = [(file, Mutant(1, "", "", file.read_text(), range(0))) for file in files]
    return [_case(file, mutant, reach, CONTROL) for file, mutant in same]


def _failed(controls: Sequence[Case], jobs: int) -> list[str]:
    outcomes = _try_all(controls, jobs, quiet=True)
    return [c.name for c, said in zip(controls, outcomes, strict=True) if said != "survived"]


def _hash(case: Case) -> str:
    return hashlib.sha256(f"{case.name} {case.mutant}".encode()).hexdigest()


def _try_all(cases: Sequence[Case], jobs: int, quiet: bool = False) -> list[str]:
    """Every case's outcome: killed, late (it never ended), or survived; `jobs` forks at a time."""
    outcomes = [""] * len(cases)
    running: dict[int, tuple[int, float]] = {}
    waiting = list(range(len(cases)))
    random.Random(0).shuffle(waiting)  # so that an early look is a fair sample
    while waiting or running:
        while waiting and len(running) < jobs:
            index = waiting.pop()
            if not cases[index].tests:
                outcomes[index] = "survived"
                continue
            pid = os.fork()
            seconds = cases[index].seconds
            limit = round(20 + 10 * seconds)
            if pid == 0:
                os.setsid()
                resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
                os._exit(_survives(cases[index]))
            running[pid] = index, time.monotonic() + 120 + 20 * seconds  # it waits for ever
        pid, status = os.waitpid(-1, os.WNOHANG) if running else (0, 0)
        if pid in running:
            index, _ = running.pop(pid)
            said = "killed" if status else "survived"
            outcomes[index] = "late" if os.WIFSIGNALED(status) else said
            done = len(cases) - len(waiting) - len(running)
            if not quiet and (outcomes[index] == "survived" or done % 50 == 0):
                print(f"{done:4d}  {outcomes[index]:8}  {cases[index]}", flush=True)
        for late in [pid for pid, (_, end) in running.items() if time.monotonic() > end]:
            os.killpg(late, signal.SIGKILL)
        time.sleep(0.02)
    return outcomes


def _survives(case: Case) -> int:
    """0 when no test fails on the wrong version, in this fork."""
    sys.meta_path.insert(0, _Wrong(case))
    _hush()
    return int(pytest.main([*PYTEST, "-x", *case.tests]) != pytest.ExitCode.OK)


class _Wrong(importlib.abc.MetaPathFinder):
    """Finds one module, and finds it wrong."""

    def __init__(self, case: Case) -> None:
        parts = case.file.relative_to(PACKAGE.parent).with_suffix("").parts
        self._name = ".".join(part for part in parts if part != "__init__")
        self._case = case

    def find_spec(
        self, name: str, *_: object, **__: object
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._name:
            return None
        file, source = str(self._case.file), self._case.mutant.source
        loader = _Loader(name, file, source)
        return importlib.util.spec_from_file_location(name, file, loader=loader)


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, file: str, source: str) -> None:
        super().__init__(name, file)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002  the finder asks for one name
        # Numba keeps machine code by the file and takes versions that differ in a number for the same:
        # the right one would be run instead of the wrong one, or later the other way round.
        kept = "@compiled" in self._source
        return compile(self._source, f"{self.path} (wrong)" if kept else self.path, "exec")


def _hush() -> None:
    """What this fork would print goes nowhere."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)


def _equivalents() -> dict[tuple[str, str], str]:
    """Why a wrong line gives the same results, by the file and the text of the mutant."""
    rows = tomllib.loads((Path(__file__).parent / "equivalent.toml").read_text()).get("mutant", [])
    return {(row["file"], f"{row['before']}  ->  {row['after']}"): row["why"] for row in rows}


def _print(
    cases: Sequence[Case], outcomes: Sequence[str], equivalent: dict[tuple[str, str], str]
) -> int:
    counts: Counter[tuple[str, str]] = Counter()
    survivors: list[Case] = []
    same: list[tuple[Case, str]] = []
    for case, outcome in zip(cases, outcomes, strict=True):
        why = equivalent.get((case.name, str(case.mutant)))
        if outcome == "survived" and why:
            same.append((case, why))
        elif outcome == "survived":
            survivors.append(case)
        counts[case.name, "equivalent" if outcome == "survived" and why else outcome] += 1
    words = ["killed", "late", "survived", "equivalent"]
    print(f"\n{'':40}" + "".join(f"{word:>12}" for word in words))
    for name in sorted({case.name for case in cases}):
        print(f"{name:40}" + "".join(f"{counts[name, word]:12d}" for word in words))
    total = {word: sum(n for (_, which), n in counts.items() if which == word) for word in words}
    print(f"{'together':40}" + "".join(f"{total[word]:12d}" for word in words))
    print("\nsurvived:", *(map(str, survivors) if survivors else ["none"]), sep="\n  ")
    print(
        "\nequivalent:", *([f"{case}\n      {why}" for case, why in same] or ["none"]), sep="\n  "
    )
    killed = total["killed"] + total["late"]  # a test that never ends is noticed, too
    share = killed / max(killed + total["survived"], 1)
    print(f"\nkilled {share:.1%} of what is not equivalent")
    return int(share < 0.9)


if __name__ == "__main__":
    sys.exit(main())
