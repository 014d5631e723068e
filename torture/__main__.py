"""Attack the commands for so many minutes; ends with 1 when anything was lost, wrong or left over.

Kills at any moment, damaged and hostile files, machines without room or rights. A seed and a
number say what a case is, so that `--only inputs --seed 0 --case 17` does one again.
"""

import argparse
import contextlib
import gc
import os
import pickle
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from torture import forks, hostile, inputs, kills, made, targets
from torture.tally import Tally

SHARES = {"kills": 0.35, "hostile": 0.1, "commands": 0.2, "readers": 0.35}  # of the time
AT_ONCE = {"readers": 40}  # cases that share a fork; others have one each
Part = Callable[[Sequence[int], Tally], None]


def main() -> int:
    parser = argparse.ArgumentParser("python -m torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20, help="how long")
    parser.add_argument("--most", type=int, default=10**9, help="cases of each part")
    parser.add_argument("--jobs", type=int, default=2, help="at the same time")
    parser.add_argument("--seed", type=int, default=0, help="decides every case")
    parser.add_argument("--only", default="", choices=["", *SHARES], help="one part")
    parser.add_argument("--case", type=int, help="the one case of that number")
    options = parser.parse_args()
    began = time.monotonic()
    warnings.simplefilter("ignore")
    root = Path(tempfile.mkdtemp(prefix="ova-torture-"))
    root.chmod(0o755)  # nobody's processes look into it
    os.environ |= {"OMP_NUM_THREADS": "1", "OVA_CACHE": str(root / "cache"), "HF_HUB_OFFLINE": "1"}
    os.environ.pop("OVA_DATA", None)
    forks.load()
    made.tiny_search()
    sound = root / "sound"
    sound.mkdir()
    prepare(sound)
    jobs = kills.JOBS if options.only in ("", "kills") else []
    wholes = {kind: kills.undisturbed(kind, sound, root / kind) for kind in jobs}
    gc.collect()
    gc.freeze()  # what is there already is not looked through again in every fork
    parts = cases(sound, options.seed, wholes)
    print(f"prepared in {time.monotonic() - began:.0f} s: {root}", flush=True)
    seconds = 60 * options.minutes - (time.monotonic() - began)
    tally = Tally()
    if options.case is not None:
        parts[options.only]([options.case], tally)
    else:
        for name in [options.only] if options.only else SHARES:
            share = 1.0 if options.only else SHARES[name]
            before, size = worked(), AT_ONCE.get(name, 1)
            numbers = -(-options.most // size)
            part = together(parts[name], size, share * seconds, options.jobs, numbers)
            print(f"{name}: {part.cases.total()} cases, {worked() - before:.0f} s of the processor")
            tally.add(part)
    tally.show()
    print(f"{(time.monotonic() - began) / 60:.1f} minutes, seed {options.seed}")
    if not tally.failed.total():
        shutil.rmtree(root)
    return int(tally.failed.total() > 0)


def worked() -> float:
    """Seconds of the processor of what was forked and has ended: how long it takes on an idle core."""
    return os.times().children_user + os.times().children_system


def prepare(sound: Path) -> None:
    """Make the sound inputs, and run each command once here, so that forks find it warm."""
    for make in (made.inputs, made.predictions, made.outputs, made.cifar, made.recipe):
        make(sound)
    made.encoder(sound)
    made.model(sound)
    (sound / "lines.txt").write_text("tell me about rain and the wind\nthe account\n")
    shutil.copy(sound / "images/red/1.png", sound / "a.png")
    (trial := sound.parent / "trial").mkdir()
    for name in ("table.csv", "texts.csv", "images"):
        inputs.copy(sound / name, trial / name)
    small = "--set epochs=1 --set steps=5 --out runs"
    for line in (
        f"run toy --only ova-dm --seeds 1 {small}",
        "train table.csv --set epochs=1 --out table",
        "train texts.csv --text sentence --label topic --set epochs=1 --out texts",
        "train images --set epochs=1 --out pictures",
        "tune tiny --trials 1 --out tuned",
        "corrupt images --out c --types contrast,jpeg_compression --severities 1",
        "report runs --output x.html",
    ):
        warm(line, trial)
    for name in ("texts", "pictures"):
        shutil.copytree(trial / name, sound / name, ignore=shutil.ignore_patterns("run", "*.html"))
    (run,) = (trial / "runs/toy").iterdir()
    shutil.copytree(run, sound / "runs/small", ignore=shutil.ignore_patterns("predictions"))
    (sound / "runs/small/model.safetensors").unlink()
    made.collection(sound)
    for line in (
        "evaluate test.csv --ood far.npz",
        "evaluate test-ours.parquet",
        "calibrate test.parquet --fit held.npz",
        "score train-dump.npz inside-dump.npz --outside out-dump.npz --bootstrap 0",
        "predict model rows.csv",
        "predict texts lines.txt",
        "predict pictures images",
    ):
        warm(line, sound)


def warm(line: str, folder: Path) -> None:
    """Run a command in this very process."""
    from ova.cli.app import main as command

    before, sys.argv = Path.cwd(), ["ova", *line.split()]
    os.chdir(folder)
    try:
        with (
            open(os.devnull, "w") as null,
            contextlib.redirect_stdout(null),
            contextlib.redirect_stderr(null),
        ):
            command()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"`ova {line}` ends with {end.code} before any attack") from None
    finally:
        os.chdir(before)


def cases(sound: Path, seed: int, wholes: dict[str, kills.Whole]) -> dict[str, Part]:
    """What carries out cases of each part by their numbers."""
    jobs, machines = list(kills.JOBS), [kind for kind in hostile.KINDS if kind != "full disk"]
    if hostile.can_mount(sound.parent):
        machines.append("full disk")
    else:
        print("left out: a full disk, which takes the right to mount one; small files stand for it")
    working, reading = (inputs.part(targets.targets(), readers) for readers in (False, True))

    def killed(numbers: Sequence[int], tally: Tally) -> None:
        for number in numbers:
            kind = jobs[number % len(jobs)]
            kills.chain(kind, number, seed, sound, wholes[kind], tally)

    def refused(numbers: Sequence[int], tally: Tally) -> None:
        for number in numbers:
            hostile.case(number, seed, sound, machines, tally)

    def spoiled(numbers: Sequence[int], tally: Tally) -> None:
        for number in numbers:
            tally.add(inputs.one(number, seed, sound, working, forks.ova))

    def read(numbers: Sequence[int], tally: Tally) -> None:
        inputs.cases(numbers, seed, sound, reading, tally)

    return {"kills": killed, "hostile": refused, "commands": spoiled, "readers": read}


def together(part: Part, size: int, seconds: float, jobs: int, numbers: int) -> Tally:
    """Cases 0, 1, 2 ... for so many seconds, or so many of them, shared among forks."""
    end, tally = time.monotonic() + seconds, Tally()
    pipes = []
    for job in range(jobs):
        read, write = os.pipe()
        if os.fork() == 0:
            os.close(read)
            mine = Tally()
            try:
                for number in range(job, numbers, jobs):
                    part(range(number * size, (number + 1) * size), mine)
                    if time.monotonic() > end:  # of every part there is some
                        break
            except BaseException:
                import traceback

                traceback.print_exc()
                mine.failed["the harness itself"] += 1
            with os.fdopen(write, "wb") as pipe:
                pickle.dump(mine, pipe)
            os._exit(0)
        os.close(write)
        pipes.append(read)
    for read in pipes:
        with os.fdopen(read, "rb") as pipe:
            tally.add(pickle.load(pipe))  # of the forks of this very process
        os.wait()
    return tally


if __name__ == "__main__":
    sys.exit(main())
