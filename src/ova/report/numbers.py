"""Numbers as people read them."""

from ova.report.intervals import Estimate


def percent(value: float) -> str:
    r"""A share in percent.

    >>> percent(0.90163)
    '90.2\xa0%'
    """
    return f"{100 * value:.1f}\N{NO-BREAK SPACE}%"


def plain(value: float) -> str:
    """A small number with three places, and no zero that is not one.

    >>> plain(0.0312), plain(0.0002), plain(0)
    ('0.031', '<0.001', '0.000')
    """
    return "<0.001" if 0 < value < 0.0005 else f"{value:.3f}"


def shown(value: float | None, unit: str) -> str:
    """A value in its unit, or a dash."""
    return "–" if value is None else percent(value) if unit == "%" else plain(value)


def signed(value: float, unit: str) -> str:
    """A difference with its sign.

    >>> signed(-0.0123, "%"), signed(0.005, "")
    ('−1.2 points', '+0.005')
    """
    sign = "−" if value < 0 else "+"
    return f"{sign}{100 * abs(value):.1f} points" if unit == "%" else f"{sign}{abs(value):.3f}"


def interval(estimate: Estimate, unit: str) -> str:
    """The interval in words, or why there is none."""
    if estimate.low is None or estimate.high is None:
        return "one seed"
    if unit == "%":
        return f"{100 * estimate.low:.1f} to {100 * estimate.high:.1f}"
    return f"{estimate.low:.3f} to {estimate.high:.3f}"
