"""A command line in a fork of this process, which has everything imported: a part of a second, not seconds.

A fork that is killed leaves in the file system what a killed process leaves.
"""

import importlib
import mmap
import os
import pickle
import pkgutil
import resource
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

SAID = ".said"  # what a command printed, in its working folder
ESCAPED = 70  # exit code of an exception that nobody turned into a sentence
HEAVY = ["altair", "cv2", "datasets", "huggingface_hub", "lightning_fabric", "optuna", "sqlalchemy"]
HEAVY += ["PIL.Image", "pyarrow.csv", "pyarrow.parquet", "safetensors.torch", "scipy.stats"]
HEAVY += ["sklearn.linear_model", "tokenizers", "transformers", "vl_convert", "optuna.storages"]
HEAVY += ["sqlalchemy.dialects.sqlite", "scipy.special", "torch.utils.data", "numba"]


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int  # below zero: the signal that killed it
    said: str
    seconds: float
    memory: int  # the most bytes it held
    work: float = 0.0  # seconds of the processor

    @property
    def wrong(self) -> str:
        """Why no command may ever end so, or nothing."""
        if self.code == -signal.SIGALRM:
            return f"hangs: no end after {self.seconds:.0f} s"
        if self.code < 0:
            return f"crashes: {signal.Signals(-self.code).name}"
        if self.code == ESCAPED or "Traceback (most recent call last)" in self.said:
            return "a traceback"
        if self.code not in (0, 1, 2):
            return f"exit code {self.code}"
        return "" if self.said.strip() or self.code == 0 else "fails without a word"


def load() -> None:
    """Import what any command may import; nothing is computed, so that no thread is there to lose."""
    import torch
    import typer.main

    import ova

    torch.set_num_threads(1)
    # A command line is made of functions anew at every call, which takes as long as most commands.
    typer.main.get_command = cache(typer.main.get_command)
    for name in HEAVY:
        importlib.import_module(name)
    for module in pkgutil.walk_packages(ova.__path__, "ova."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


@dataclass(frozen=True)
class Kill:
    """When to kill: after so much work of a command that has begun it."""

    work: float  # seconds of the processor
    begun: mmap.mmap  # shared with the fork, which writes there when it begins

    def due(self, pid: int) -> bool:
        """Whether the moment has come; a machine that is busy with much else does not move it."""
        return bool(self.begun[0]) and worked(pid) >= self.work


def patience(seconds: float) -> float:
    """How long to wait where that many seconds are enough on a machine that does nothing else."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def worked(pid: int) -> float:
    """Seconds of the processor that another process has had (clock_getcpuclockid of Linux)."""
    return time.clock_gettime(~pid << 3 | 2)


def command(line: Sequence[str]) -> int:
    """The exit code of `ova LINE` in this very process."""
    from ova.cli.app import main

    sys.argv = ["ova", *line]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def ova(
    line: Sequence[str],
    folder: Path,
    first: Callable[[], None] = lambda: None,
    seconds: float = 120,
    kill: Kill | None = None,
) -> Ended:
    """Run `ova LINE` in a folder, after what the fork does `first`; killed with SIGKILL if asked."""

    def work() -> int:
        first()
        if kill:
            kill.begun[0] = 1
        return command(line)

    return forked(work, folder, seconds, kill)


def forked(
    work: Callable[[], int], folder: Path, seconds: float = 600, kill: Kill | None = None
) -> Ended:
    """The end of a fork that works in a folder; what it prints is kept there."""
    began, longest = time.monotonic(), patience(seconds)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(work, folder, write)
    os.close(write)
    os.set_blocking(read, False)
    said = b""
    hangs, killed, pause = False, False, 0.0005
    while True:
        with suppress(BlockingIOError):
            said += os.read(read, 1 << 20)
        gone, status, used = os.wait4(pid, os.WNOHANG)
        if gone:
            break
        hangs = time.monotonic() > began + longest
        if not killed and (hangs or (kill and kill.due(pid))):
            with suppress(ProcessLookupError):  # it has not come so far as to be a group
                os.killpg(pid, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)
            killed = True
        time.sleep(pause)
        pause = min(pause * 1.2, 0.002 if kill else 0.02)
    code = os.waitstatus_to_exitcode(status)
    if hangs and code < 0:
        code = -signal.SIGALRM
    with suppress(BlockingIOError):  # a grandchild may still hold the other end
        while more := os.read(read, 1 << 20):
            said += more
    os.close(read)
    (folder / SAID).write_bytes(said)
    took, work_done = time.monotonic() - began, used.ru_utime + used.ru_stime
    return Ended(code, said.decode(errors="replace"), took, used.ru_maxrss * 1024, work_done)


def _child(work: Callable[[], int], folder: Path, write: int) -> None:
    """Work, and end without the endings of the process that was forked."""
    code = ESCAPED
    try:
        os.setsid()
        os.chdir(folder)
        os.dup2(write, 1)
        os.dup2(write, 2)
        _speak()
        code = work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _speak() -> None:
    """Print anew: what the parent prints into may be files that know where in them they are."""
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115


def one_by_one(
    numbers: Iterable[int], work: Callable[[int], Any]
) -> Iterator[tuple[int, Any | int]]:
    """What one fork makes of numbers, each in its turn; of a number at which it dies, its exit code.

    Another fork goes on behind that number.
    """
    left = deque(numbers)
    while left:
        read, write = os.pipe()
        if (pid := os.fork()) == 0:
            os.close(read)
            _sends(left, work, write)
        os.close(write)
        with os.fdopen(read, "rb") as pipe, suppress(EOFError, pickle.UnpicklingError):
            while left:
                made = pickle.load(pipe)  # of a fork of this very process
                yield left.popleft(), made
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if left:
            yield left.popleft(), code


def _sends(numbers: Iterable[int], work: Callable[[int], Any], write: int) -> None:
    """Send what is made of each number, and end."""
    code = ESCAPED
    try:
        _speak()
        with os.fdopen(write, "wb") as pipe:
            for number in numbers:
                pickle.dump(work(number), pipe)
                pipe.flush()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def inside(line: Sequence[str], folder: Path, seconds: float = 120) -> Ended:
    """Run `ova LINE` in this very process, which dies of SIGALRM where that takes longer."""
    began, work = time.monotonic(), time.process_time()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # the peak of memory begins anew
    with _into(folder):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, patience(seconds))
        try:
            code = command(line)
        except BaseException:
            traceback.print_exc()
            code = ESCAPED
        signal.setitimer(signal.ITIMER_REAL, 0)
    said = (folder / SAID).read_bytes().decode(errors="replace")
    took, work_done = time.monotonic() - began, time.process_time() - work
    return Ended(code, said, took, peak(), work_done)


@contextmanager
def _into(folder: Path) -> Iterator[None]:
    """Be in a folder, and print into a file there."""
    before, kept = Path.cwd(), (os.dup(1), os.dup(2))
    os.chdir(folder)
    file = os.open(SAID, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    sys.stdout.flush()
    sys.stderr.flush()
    for place in (1, 2):
        os.dup2(file, place)
    os.close(file)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for place, its in enumerate(kept, 1):
            os.dup2(its, place)
            os.close(its)
        os.chdir(before)


def peak() -> int:
    """The most bytes that this process held, since that was asked to begin anew."""
    with suppress(OSError):
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
