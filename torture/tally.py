"""What came of the cases: how many of each kind held, which failed, and the most memory that any took."""

import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

# What is always told, also where there was none of it.
FACTS = ["kills", "chains", "chains equal to an undisturbed one", "tracebacks", "hangs"]
REFUSED, READ, TAKEN = "refused", "could be read", "wrongly accepted"


@dataclass
class Tally:
    """Counts by kind of case."""

    cases: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    facts: Counter[str] = field(
        default_factory=Counter
    )  # kills, what was refused, what was left out
    bad: dict[bytes, str] = field(default_factory=dict)  # by the hash of the input: what came of it
    memory: int = 0  # bytes

    def note(self, kind: str, case: str, problem: str, folder: Path) -> None:
        """Count a case; the folder of one that failed is kept and named, of others removed."""
        self.cases[kind] += 1
        self.facts["tracebacks"] += problem == "a traceback"
        self.facts["hangs"] += problem.startswith("hangs")
        if problem:
            self.failed[kind] += 1
            print(f"FAILED  {kind}, {case}: {problem}\n        see {folder}", flush=True)
        else:
            shutil.rmtree(folder)

    def add(self, other: "Tally") -> None:
        """Take in what another process counted."""
        for mine, its in zip(
            (self.cases, self.failed, self.facts),
            (other.cases, other.failed, other.facts),
            strict=True,
        ):
            mine.update(its)
        self.bad |= other.bad
        self.memory = max(self.memory, other.memory)

    def show(self) -> None:
        """Print a line per kind, then the facts."""
        print(f"\n{'':36}{'cases':>8}{'held':>8}{'failed':>8}")
        rows = [(kind, self.cases[kind], self.failed[kind]) for kind in sorted(self.cases)]
        rows.append(("together", sum(self.cases.values()), sum(self.failed.values())))
        for kind, cases, failed in rows:
            print(f"{kind:36}{cases:8d}{cases - failed:8d}{failed:8d}")
        for fact in [*FACTS, *sorted(self.facts.keys() - FACTS)]:
            print(f"{fact}: {self.facts[fact]}")
        came = Counter(self.bad.values())
        told = ", ".join(f"{came[what]} {what}" for what in (REFUSED, READ, TAKEN))
        print(f"bad inputs, no two alike: {len(self.bad)}: {told}")
        print(f"peak memory of a command: {self.memory / 1e6:.0f} MB")
