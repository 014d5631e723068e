"""What one pass over the training rows leaves, for every score to be fitted by."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ova.errors import BadInput
from ova.predictions.columns import Array, matrix
from ova.scores.bank import Bank
from ova.scores.moments import Moments, Regression
from ova.scores.outputs import AffineHead, Outputs

KEPT_BACK, AT_MOST = 10, 5000  # one training row in ten, where no held-out rows are given


@dataclass
class Training:
    """Sums and a bank of features, and the last layer; `has` says what of it there is."""

    n: int = 0
    has: set[str] = field(default_factory=set)
    head: AffineHead | None = None
    moments: Moments = field(default_factory=Moments)  # of the features
    unit_moments: Moments = field(default_factory=Moments)  # of the features at length one
    bank: Bank = field(default_factory=Bank)
    least: float = np.inf  # the smallest feature
    held: Mapping[str, Array] = field(default_factory=dict)  # values of scores on held-out rows

    @property
    def few(self) -> int:
        """Half the rows of the median class, at least 1: neighbours beyond are of other classes."""
        return max(1, int(np.median(self.moments.counts)) // 2) if "targets" in self.has else self.n


def gather(
    batches: Iterable[Outputs],
    head: AffineHead | None,
    wanted: set[str],
    most: int | None = None,
) -> Training:
    """Take in all training rows, once; `wanted` is what the chosen scores need.

    The bank keeps at most `most` rows.
    """
    t = Training(head=head, bank=Bank(rows=most))
    regression = Regression(t.moments) if head is None and "head" in wanted else None
    kinds: set[str] | None = None
    for batch in batches:
        rows = inside(completed(batch, head))
        if not len(rows):
            continue
        kinds = kinds or known(rows)
        if kinds != known(rows):
            raise BadInput(f"a batch has {_said(known(rows))}, those before it {_said(kinds)}")
        t.n += len(rows)
        if "features" in kinds & wanted:
            _add(t, rows, kinds)
            if regression is not None and rows.logits is not None:
                regression.add(rows.f, matrix(rows.logits, "logits"))
    if kinds is None:
        raise BadInput("there are no training rows of a class")
    if regression is not None and regression.n and (found := regression.solve()) is not None:
        t.head = AffineHead(*found)
    t.has = kinds | ({"head"} if t.head is not None else set())
    return t


def _add(t: Training, rows: Outputs, kinds: set[str]) -> None:
    y = rows.classes if "targets" in kinds else None
    t.moments.add(rows.f, y)
    t.unit_moments.add(rows.unit, y)
    t.bank.add(rows)
    t.least = min(t.least, float(rows.f.min()))


def known(rows: Outputs) -> set[str]:
    """Which needs of scores the rows meet."""
    logits = rows.logits is not None
    found = {
        "features": rows.features is not None,
        "logits": logits,
        "probabilities": logits or rows.probs is not None or rows.log_p is not None,
        "targets": rows.target is not None,
    }
    return {name for name, there in found.items() if there}


def _said(kinds: set[str]) -> str:
    return ", ".join(sorted(kinds))


def completed(rows: Outputs, head: AffineHead | None) -> Outputs:
    """The rows with logits, where a head can give them."""
    if head is not None and rows.logits is not None and rows.logits.shape[1] != len(head.bias):
        raise BadInput(
            f"logits of {rows.logits.shape[1]} classes do not fit a head of {len(head.bias)}"
        )
    if head is None or rows.logits is not None or rows.features is None:
        return rows
    if rows.f.shape[1] != head.weight.shape[1]:
        raise BadInput(
            f"features of {rows.f.shape[1]} numbers do not fit a head of {head.weight.shape[1]}"
        )
    return replace(rows, logits=head(rows.f))


def inside(rows: Outputs) -> Outputs:
    """The rows that are of a class."""
    if rows.target is None or (rows.classes >= 0).all():
        return rows
    return rows.take(rows.classes >= 0)


def keep_back(batches: Iterable[Outputs], back: list[Outputs]) -> Iterator[Outputs]:
    """All but every tenth row, which goes to `back` instead, up to a few thousand."""
    seen, kept = 0, 0
    for batch in batches:
        mine = (np.arange(seen, seen + len(batch)) % KEPT_BACK == KEPT_BACK - 1) & (kept < AT_MOST)
        seen += len(batch)
        if mine.any():
            back.append(batch.take(mine))
            kept += int(mine.sum())
        yield batch.take(~mine)
