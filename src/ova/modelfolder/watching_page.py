"""What `ova monitor` found, as the rows and words of its page."""

from pathlib import Path

import numpy as np

from ova.files import Row
from ova.modelfolder.log import UNLABELLED
from ova.modelfolder.watching import CERTAINTY, Watch
from ova.posthoc.monitoring.monitor import Finding
from ova.posthoc.monitoring.monitor import Watched as Bettor
from ova.posthoc.monitoring.wealth import limit
from ova.predictions import NONE
from ova.report.monitor import ENDS, MonitorFacts, Told, write_monitor

DRAWN = 6  # bettors on single classes, those with the most
PIECES = 200  # of a curve: of each its highest and its last point are drawn
PARTS = 60  # of the log, in each of which the refusals are counted


def write_watch(found: Watch, output: Path) -> None:
    """Write the page."""
    promise = found.model.threshold.promise
    write_monitor(
        MonitorFacts(
            rows=len(found.log),
            labels=int((found.log.target != UNLABELLED).sum()),
            answers=len(found.right),
            refused=found.refused,
            false_alarms=found.false_alarms,
            certainty=CERTAINTY,
            promised=promise.accuracy if found.model.threshold.promised else None,
            told=[told(found, each) for each in found.monitor.findings],
            warnings=found.warnings,
            wealth=[row for each in drawn(found) for row in curve(each)],
            bounds=found.bounds(),
            refusals=refusals(found),
        ),
        output,
    )


def told(found: Watch, finding: Finding) -> Told:
    """A finding with its rows in words."""
    at = ["" if row is None else found.at(row) for row in (finding.alarm, finding.since)]
    return Told(finding.name, finding.about, finding.n, finding.most, finding.level, *at)


def drawn(found: Watch) -> list[Bettor]:
    """Those about all inputs and about promises, and of the others the richest."""
    single = found.monitor.within
    rich = sorted(single, key=lambda each: -(each.finding.most - limit(each.level)))[:DRAWN]
    return [
        each
        for each in found.monitor.watched
        if each.bettor.n and (each in rich or each not in single)
    ]


def curve(each: Bettor) -> list[Row]:
    """Log10 of the wealth over what an alarm needs, at few enough rows."""
    rows, path = each.wealth
    pieces = np.array_split(np.arange(len(path)), min(PIECES, len(path)))
    some = sorted({int(i) for piece in pieces for i in (piece[path[piece].argmax()], piece[-1])})
    over = np.clip((path[some] - limit(each.level)) / np.log(10), -ENDS, ENDS)
    points = zip((rows[some] + 1).tolist(), over.tolist(), strict=True)
    return [{"label": each.name, "row": row, "wealth": value} for row, value in points]


def refusals(found: Watch) -> list[Row]:
    """The share that is refused in each part of the log."""
    refused = found.log.answer == NONE
    parts = np.array_split(np.arange(len(refused)), min(PARTS, len(refused)))
    shares = [{"row": int(part[0]) + 1, "share": float(refused[part].mean())} for part in parts]
    return [*shares, {"row": len(refused), "share": shares[-1]["share"]}]
