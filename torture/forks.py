"""A command line in a fork of this process, which has everything imported: milliseconds, not seconds.

A fork that is killed leaves in the file system what a killed process leaves.
"""

import importlib
import os
import pkgutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

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

    import ova

    torch.set_num_threads(1)
    for name in HEAVY:
        importlib.import_module(name)
    for module in pkgutil.walk_packages(ova.__path__, "ova."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def ova(
    line: Sequence[str],
    folder: Path,
    first: Callable[[], None] = lambda: None,
    seconds: float = 120,
    kill_after: float | None = None,
) -> Ended:
    """Run `ova LINE` in a folder, after what the fork does `first`; killed with SIGKILL if asked."""

    def work() -> int:
        from ova.cli.app import main

        sys.argv = ["ova", *line]
        first()
        try:
            main()
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
        return 0

    return forked(work, folder, seconds, kill_after)


def forked(
    work: Callable[[], int], folder: Path, seconds: float = 600, kill_after: float | None = None
) -> Ended:
    """The end of a fork that works in a folder; what it prints is kept there."""
    began = time.monotonic()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(work, folder, write)
    os.close(write)
    os.set_blocking(read, False)
    said = b""
    end, killed, pause = began + min(kill_after or seconds, seconds), False, 0.0005
    while True:
        with suppress(BlockingIOError):
            said += os.read(read, 1 << 20)
        gone, status, used = os.wait4(pid, os.WNOHANG)
        if gone:
            break
        if time.monotonic() > end and not killed:
            with suppress(ProcessLookupError):  # it has not come so far as to be a group
                os.killpg(pid, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)
            killed = True
        time.sleep(pause)
        pause = min(pause * 1.2, 0.02)
    code = os.waitstatus_to_exitcode(status)
    if killed and code < 0 and kill_after is None:
        code = -signal.SIGALRM
    with suppress(BlockingIOError):  # a grandchild may still hold the other end
        while more := os.read(read, 1 << 20):
            said += more
    os.close(read)
    (folder / SAID).write_bytes(said)
    return Ended(
        code, said.decode(errors="replace"), time.monotonic() - began, used.ru_maxrss * 1024
    )


def _child(work: Callable[[], int], folder: Path, write: int) -> None:
    """Work, and end without the endings of the process that was forked."""
    code = ESCAPED
    try:
        os.setsid()
        os.chdir(folder)
        os.dup2(write, 1)
        os.dup2(write, 2)
        # Those of the parent may be files, and know where in them they are.
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        code = work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
