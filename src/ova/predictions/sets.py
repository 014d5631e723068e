"""The names of evaluation sets: `test`, `shift/<type>/<severity>`, `ood/<name>` and means over them.

`validation/<name>` is of none of the classes too, to choose by: predicted, and never measured.
"""

import re

SHIFTED = re.compile(r"shift/([^/*]+)/(\d+)")
MEAN = re.compile(r"shift(?:/\*/(\d+))?")
ORDER = ("train", "validation", "test", "shift", "ood")  # in which sets are measured


class SetName(str):
    """A name that knows what its set is for; everywhere else it is a plain text.

    >>> fog = SetName.shift("fog", 3)
    >>> fog, fog.type, fog.severity, fog.shifted
    ('shift/fog/3', 'fog', 3, True)
    >>> SetName("ood/svhn").outside, SetName("test+ood/svhn").short
    (True, 'svhn')
    """

    __slots__ = ()

    @classmethod
    def shift(cls, kind: str, severity: int) -> "SetName":
        """The test set changed in a way and strength; `*` is the mean over all ways."""
        return cls(f"shift/{kind}/{severity}")

    @classmethod
    def ood(cls, name: str) -> "SetName":
        """A set of none of the classes."""
        return cls(f"ood/{name}")

    @classmethod
    def to_choose(cls, name: str) -> "SetName":
        """A set of none of the classes that a choice may look at, because no result does."""
        return cls(f"validation/{name}")

    @property
    def kind(self) -> str:
        """What the name begins with: test, shift, ood, ..."""
        return self.partition("/")[0]

    @property
    def outside(self) -> bool:
        """Whether its examples belong to none of the classes."""
        return self.startswith("ood/")

    @property
    def chooses(self) -> bool:
        """Whether it is of none of the classes and there to choose by."""
        return self.startswith("validation/")

    @property
    def shifted(self) -> bool:
        """Whether it is one changed copy of the test set."""
        return SHIFTED.fullmatch(self) is not None

    @property
    def mean(self) -> bool:
        """Whether it stands for all shifted sets, of one severity or of every."""
        return MEAN.fullmatch(self) is not None

    @property
    def type(self) -> str:
        """The way a shifted set was changed; empty for others."""
        return found[1] if (found := SHIFTED.fullmatch(self)) else ""

    @property
    def severity(self) -> int:
        """How strongly a set was changed, also of a mean; 0 where nothing was."""
        found = SHIFTED.fullmatch(self) or MEAN.fullmatch(self)
        return int(found.groups()[-1] or 0) if found else 0

    @property
    def calibrated(self) -> bool:
        """Whether it is measured again after calibration."""
        return self == "test" or self.shifted

    @property
    def mixed(self) -> bool:
        """Whether it is the test set with one of none of the classes mixed in."""
        return self.startswith("test+ood/")

    @property
    def with_test(self) -> "SetName":
        """The name of this set mixed with the test set."""
        return SetName(f"test+{self}")

    @property
    def short(self) -> str:
        """What a chart calls it."""
        return self.removeprefix("test+").removeprefix("ood/")

    @property
    def place(self) -> tuple[int, str]:
        """By which sets are put in order."""
        return (ORDER.index(self.kind) if self.kind in ORDER else ORDER.index("test"), str(self))


TEST, VALIDATION = SetName("test"), SetName("validation")
