"""All that is watched of a stream of answers, each with its share of one false-alarm rate.

Theorem and proof are in docs/monitor.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from ova.errors import BadInput
from ova.posthoc.certificates import Counts, Floats, Truths
from ova.posthoc.monitoring.exchangeable import Exchangeability
from ova.posthoc.monitoring.kept import Kept
from ova.posthoc.monitoring.wealth import limit
from ova.posthoc.threshold import checked

INPUTS, PROMISE = "inputs", "promise"  # what an alarm is about
SCORES, CLASSES = "scores", "classes"  # the scores of all inputs, and which classes they resemble


@dataclass(frozen=True)
class Finding:
    """What one bettor has found so far."""

    name: str
    about: str  # INPUTS or PROMISE
    level: float  # its share of the false-alarm rate
    n: int  # rows or outcomes that it has seen
    most: float  # the most log wealth that it ever had
    alarm: int | None = None  # the row of the stream after which it was rich enough, if it ever was
    since: int | None = None  # the row from which the change is likeliest to have begun

    def __str__(self) -> str:
        if self.alarm is None:
            return f"{self.name}: no alarm in {self.n} rows"
        return f"{self.name}: alarm after row {self.alarm}, changed since about row {self.since}"


@dataclass(eq=False)
class Watched:
    """A bettor with the rows that it saw and its log wealth after each."""

    name: str
    about: str
    level: float
    bettor: Exchangeability | Kept
    rows: list[Counts] = field(default_factory=lambda: [np.empty(0, np.int64)])
    path: list[Floats] = field(default_factory=lambda: [np.empty(0)])
    n: int = 0
    most: float = 0.0  # log wealth that it ever had
    first: tuple[int | None, int | None] = None, None  # the alarm, and since when

    def add(self, values: Floats | Truths, rows: Counts) -> None:
        """Let it bet on some more values, which stand in these rows of the stream."""
        path, since = self.bettor.update(values, rows)  # type: ignore[arg-type]  # scores or outcomes, as it takes
        self.rows.append(rows)
        self.path.append(path)
        self.n += len(rows)
        self.most = max(self.most, float(path.max(initial=0.0)))
        rich = np.flatnonzero(path >= limit(self.level))
        if self.first[0] is None and len(rich):
            self.first = int(rows[rich[0]]), int(since[rich[0]])

    def forget(self) -> None:
        """Let the wealth after each row go; the next rows change what it has found as before."""
        self.rows, self.path = self.rows[:1], self.path[:1]

    @property
    def wealth(self) -> tuple[Counts, Floats]:
        """The rows, and the log wealth after each."""
        return np.concatenate(self.rows), np.concatenate(self.path)

    @property
    def finding(self) -> Finding:
        """What it has found so far."""
        return Finding(self.name, self.about, self.level, self.n, self.most, *self.first)


class Monitor:
    """Watches a stream beside the calibration rows; P(it ever raises a false alarm) <= false_alarms.

    `scores` and `classes` (the best guess of each, by number) are of all rows that carry the
    promise, whatever their labels. `promised` are shares by their names, such as
    {"accuracy": 0.95}, which `outcomes` are compared with. New rows come by `update`, in their
    order, in pieces of any size: the pieces change nothing.

    >>> rng = np.random.default_rng(0)
    >>> monitor = Monitor(rng.normal(size=2000), promised={"accuracy": 0.9})
    >>> monitor.update(rng.normal(size=1000))
    >>> monitor.update(rng.normal(-0.5, size=1000))
    >>> monitor.outcomes("accuracy", np.ones(50), rows=np.arange(50))
    >>> for finding in monitor.findings:
    ...     print(finding)
    scores: alarm after row 1114, changed since about row 993
    accuracy: no alarm in 50 rows
    """

    def __init__(
        self,
        scores: ArrayLike,
        classes: ArrayLike | None = None,
        *,
        names: Sequence[str] | None = None,
        promised: Mapping[str, float] | None = None,
        false_alarms: float = 0.01,
        seed: int = 0,
    ) -> None:
        if not 0 < false_alarms < 1:
            raise BadInput(f"false_alarms must lie strictly between 0 and 1, not {false_alarms}")
        s, k = checked(scores, "score"), None if classes is None else np.asarray(classes)
        if not len(s):
            raise BadInput("no calibration scores; a stream is compared with those")
        wanted = dict(promised or {})
        for name, share in wanted.items():
            if not 0 < share < 1:
                raise BadInput(f"{name} must be promised strictly between 0 and 1, not {share}")
        families = 1 + 2 * (k is not None) + bool(wanted)
        share = false_alarms / families
        self.n = 0
        self.scores = Watched(SCORES, INPUTS, share, Exchangeability(s, [seed, 0]))
        self.classes: Watched | None = None
        self.within: list[Watched] = []
        if k is not None:
            check_classes(k, len(s))
            called = [str(c) for c in range(int(k.max()) + 1)] if names is None else names
            mix = Exchangeability(k.astype(np.float64), [seed, 1])
            self.classes = Watched(CLASSES, INPUTS, share, mix)
            for c, name in enumerate(called):
                own = Exchangeability(s[k == c], [seed, 2, c])
                about = f"{SCORES} of {name!r}"
                self.within.append(Watched(about, INPUTS, share / len(called), own))
        self.promised = {
            name: Watched(name, PROMISE, share / len(wanted), Kept(least))
            for name, least in wanted.items()
        }

    def update(self, scores: ArrayLike, classes: ArrayLike | None = None) -> None:
        """Some more rows of the stream: the score of each, and its best guess by number."""
        s = checked(scores, "score")
        rows = np.arange(self.n, self.n + len(s))
        if self.classes is not None:
            if classes is None:
                raise BadInput("the classes are watched too: give the best guess of each row")
            k = np.asarray(classes)
            check_classes(k, len(s), len(self.within))
            self.classes.add(k.astype(np.float64), rows)
            order = np.argsort(k, kind="stable")
            ends = np.searchsorted(k[order], np.arange(len(self.within) + 1))
            for c in np.unique(k).tolist():
                its = order[ends[c] : ends[c + 1]]
                self.within[c].add(s[its], rows[its])
        self.scores.add(s, rows)
        self.n += len(s)

    def outcomes(self, name: str, good: ArrayLike, rows: ArrayLike) -> None:
        """Outcomes of a promised share in the order in which they became known, and their rows."""
        if name not in self.promised:
            have = ", ".join(self.promised) or "nothing"
            raise BadInput(f"{name!r} is not promised; promised is {have}")
        self.promised[name].add(np.asarray(good, bool), np.asarray(rows, np.int64))

    def forget(self) -> None:
        """Let the wealth after each row go, of which the curves are drawn: a server runs for years.

        What stays are sums, and of each score that came (of few digits: few) how often it did.
        """
        for each in self.watched:
            each.forget()

    @property
    def watched(self) -> list[Watched]:
        """Everything that is watched."""
        mix = [] if self.classes is None else [self.classes]
        return [self.scores, *mix, *self.within, *self.promised.values()]

    @property
    def findings(self) -> list[Finding]:
        """What each of them has found so far."""
        return [each.finding for each in self.watched]

    @property
    def alarms(self) -> list[Finding]:
        """Those that were ever rich enough; an alarm stays."""
        return [finding for finding in self.findings if finding.alarm is not None]


def check_classes(k: np.ndarray, n: int, count: int | None = None) -> None:
    """One whole number for each row, from 0 on, below the number of classes."""
    if k.shape != (n,):
        raise BadInput(f"{n} scores but {k.size} best guesses; there must be one each")
    if len(k) and (k.dtype.kind not in "iu" or k.min() < 0 or (count and k.max() >= count)):
        raise BadInput("a best guess must be the number of a class, from 0 on")
