"""Which tests run which lines: a plugin of pytest that follows a few files and no others."""

import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest


class Reach:
    """Lines of the files that each test ran, and the seconds it took."""

    def __init__(self, files: list[Path]) -> None:
        self._files = {str(file): file for file in files}
        self.tests: dict[Path, dict[int, set[str]]] = {file: defaultdict(set) for file in files}
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self._test = ""

    def of(self, file: Path, lines: range) -> list[str]:
        """The tests that run one of the lines, quickest first; no lines: any line of the file."""
        ran = self.tests[file]
        found = set().union(*(ran[line] for line in lines or list(ran)))
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
        self.seconds[item.nodeid] = 0.0
        threading.settrace(self._called)
        sys.settrace(self._called)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.append(report.nodeid)
