"""Which tests run which lines: a plugin of pytest that follows a few files and no others."""

import os
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest


class Reach:
    """Lines of the files that each test ran, and the processor's seconds it took."""

    def __init__(self, files: list[Path]) -> None:
        self._files = {str(file): file for file in files}
        self.tests: dict[Path, dict[int, set[str]]] = {file: defaultdict(set) for file in files}
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self._test = ""

    def of(self, file: Path, lines: range) -> list[str]:
        """The tests that run one of the lines, quickest first; any of the file where none is seen to.

        Nobody sees what runs at import, or inside a compiler.
        """
        ran = self.tests[file]
        found: set[str] = set().union(*(ran[line] for line in lines))
        found = found or set().union(*ran.values())
        return sorted(found, key=lambda test: (self.seconds[test], test))

    def _called(self, frame: FrameType, *_: Any) -> Callable[..., Any] | None:
        file = self._files.get(frame.f_code.co_filename)
        if file is None:
            return None
        lines, test = self.tests[file], self._test
        lines[frame.f_lineno].add(test)

        def ran(frame: FrameType, *_: Any) -> Callable[..., Any]:
            lines[frame.f_lineno].add(test)
            return ran

        return ran

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._test = item.nodeid
        begun = _worked()
        threading.settrace(self._called)
        sys.settrace(self._called)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            self.seconds[item.nodeid] = _worked() - begun

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def _worked() -> float:
    """Seconds of the processor, of children too: on a busy machine the clock says more."""
    return sum(os.times()[:4])
