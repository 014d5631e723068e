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
    pid = os.fork()
    if pid == 0:
        _child(work, folder)
    end, killed, pause = began + min(kill_after or seconds, seconds), False, 0.0005
    while True:
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
    said = folder / SAID
    text = said.read_text(errors="replace") if said.exists() else ""
    return Ended(code, text, time.monotonic() - began, used.ru_maxrss * 1024)


def _child(work: Callable[[], int], folder: Path) -> None:
    """Work, and end without the endings of the process that was forked."""
    code = ESCAPED
    try:
        os.setsid()
        os.chdir(folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        file = os.open(SAID, flags, 0o666)
        os.dup2(file, 1)
        os.dup2(file, 2)
        code = work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
