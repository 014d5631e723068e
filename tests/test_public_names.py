"""Every public name says what it is, and shows it by an example that runs with the doctests."""

import doctest
import inspect
from collections.abc import Mapping

import pytest

import ova

NAMES = [name for name in ova.__all__ if name not in {"metrics", "plot"}]
PICTURES = ("reliability", "accuracy_confidence", "risk_coverage", "histogram", "roc", "shift")
METRIC = ("bootstrap", "paired_difference", "Accumulator")


def called() -> dict[str, object]:
    """The public functions and classes, those of `ova.metrics` and `ova.plot` too."""
    own = {name: getattr(ova, name) for name in NAMES}
    own |= {f"metrics.{name}": getattr(ova.metrics, name) for name in METRIC}
    own |= {
        f"plot.{name}": getattr(ova.plot, name) for name in (*PICTURES, "landscape", "embedding")
    }
    return {name: made for name, made in own.items() if not isinstance(made, Mapping)}


@pytest.mark.parametrize("name", called())
def test_it_has_an_example(name):
    made = called()[name]
    assert callable(made)
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(made) or "")
    assert any(example.want for example in examples), f"ova.{name} shows nothing"
    # The doctests of a file are run with the file, so it must be one of the package.
    assert made.__module__.startswith("ova.")


@pytest.mark.parametrize("name", [name for name in NAMES if name.isupper()])
def test_a_table_is_of_things_that_say_what_they_are(name):
    table = getattr(ova, name)
    assert isinstance(table, Mapping)
    assert table
    for key, entry in table.items():
        assert isinstance(key, str)
        assert str(getattr(entry, "about", "") or inspect.getdoc(entry) or "").strip(), key


@pytest.mark.parametrize("name", [*ova.METRICS, *ova.metrics.DETECTION])
def test_a_metric_is_a_function_that_says_what_it_measures(name):
    function = getattr(ova.metrics, name)
    assert function.__name__ == name
    assert len(inspect.getdoc(function) or "") > 20
