"""The log of a server: a JSON line for each row, on its way to the disk before the row is answered."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ova.errors import BadInput, mendable
from ova.files import lock
from ova.modelfolder import outputs
from ova.modelfolder.server.refused import Refused

# As `ova predict` calls them where they mean the same.
COLUMNS = (
    *("time", "id", "model", "input", "label", "best_guess", "confidence", "runner_up"),
    *("runner_up_confidence", "score", "threshold", "refused", "problem"),
)
BEGINNING = b'{"time": "'  # of every line
BLOCK = 1 << 16


class Log:
    """Lines at the end of a file, which nobody else writes; a torn last line is cut off at the start.

    All lines of a batch are one write to the system, so that whoever kills the process loses no row
    that was answered. A power failure may take the last seconds; `close` waits for the disk.
    """

    def __init__(self, path: Path) -> None:
        outputs.check_files({"--log": path}, [])
        try:
            self._file = path.open("a+b", buffering=0)
        except OSError as error:
            raise mendable(error) from error
        self.path = path
        try:
            if lock(self._file, wait=False) is False:
                raise BadInput(f"--log {path} is written by another server; name another file")
            self.cut = self._mend()
        except BaseException:
            self._file.close()
            raise

    def _mend(self) -> int:
        """Cut off what stands behind the last line end, and say how many bytes that was."""
        size = os.fstat(self._file.fileno()).st_size
        whole = end_of_lines(self._file.fileno(), size)
        self._file.seek(0)
        first = self._file.readline(BLOCK)
        if first[: len(BEGINNING)] != BEGINNING[: len(first)]:
            raise BadInput(f"--log {self.path} is no log of `ova serve`; name another file")
        if whole < size:
            self._file.truncate(whole)
        return size - whole

    def write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append a line for each row, all or none."""
        lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows]
        data = memoryview("".join(lines).encode("utf-8", "replace"))
        before = os.fstat(self._file.fileno()).st_size
        try:
            while data:
                data = data[self._file.write(data) or 0 :]
        except OSError as error:
            self._file.truncate(before)
            told = f"the log cannot be written ({error.strerror}), so nothing is answered"
            raise Refused(503, told, 60) from error

    def close(self) -> None:
        """Wait for the disk."""
        os.fsync(self._file.fileno())
        self._file.close()


def end_of_lines(file: int, size: int) -> int:
    """Where the last whole line ends."""
    stop = size
    while stop:
        start = max(0, stop - BLOCK)
        if (found := os.pread(file, stop - start, start).rfind(b"\n")) >= 0:
            return start + found + 1
        stop = start
    return 0
