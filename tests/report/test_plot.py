"""Pictures by one call: those of the report, for everything that has predictions."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from altair.utils.schemapi import debug_mode

import ova
from ova.errors import BadInput
from ova.metrics.arrays import evaluate
from ova.predictions import Predictions
from ova.report import plot, runs, theme
from ova.report.figures import FIGURES
from ova.report.runs import labels

RESULTS = Path(__file__).resolve().parents[2] / "results"
DRAW = np.random.default_rng(0)
P = DRAW.dirichlet(np.full(4, 0.4), 300)
Y = np.array([DRAW.choice(4, p=row) for row in P])
Q = DRAW.dirichlet(np.full(4, 2.0), 80)
SHIFTED = {f"fog/{s}": (Y, (1 - s / 10) * P + s / 40) for s in (1, 2)}
EXTRAS: dict[str, dict[str, Any]] = {"roc": {"ood": Q}, "shift": {"shift": SHIFTED}}
OF = ("reliability", "accuracy_confidence", "risk_coverage", "histogram", "roc", "shift")
FIGURE = {"accuracy_confidence": "threshold", "risk_coverage": "risk-coverage", "shift": "severity"}
HOSTILE = "</script><script>alert(1)</script>"
SAID = Predictions.from_probs(P, Y, normalised=True)
COLUMNS = {"target": Y, **{f"p_{k}": P[:, k] for k in range(4)}}
SOURCES: dict[str, tuple[Any, ...]] = {
    "arrays": (Y, P),
    "lists": (Y.tolist(), P.tolist()),
    "predictions": (SAID,),
    "a data frame": (pd.DataFrame(COLUMNS),),
    "polars": (pl.DataFrame(COLUMNS),),
    "sets": ({"test": SAID},),
    "a name": ({"model": (Y, P)},),
    "an evaluation": (evaluate(Y, P),),
}


def spec(chart: Any) -> str:
    """What is drawn, without what sets a picture apart from a part of a page."""
    chart.data = theme.LATER  # thousands of rows would be checked one by one
    found = chart.to_dict()
    for key in ("config", "usermeta", "datasets", "data", "$schema"):
        found.pop(key, None)
    return re.sub(r'"name": "[a-z0-9-]+"', "", json.dumps(found))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*OF, "landscape", "embedding"])
def test_a_picture_of_runs_is_the_figure_of_the_report(name: str) -> None:
    folder = RESULTS / ("toy" if name in ("landscape", "embedding") else "digits")
    figure, found = FIGURES[FIGURE.get(name, name)], runs.read([folder])
    chart = getattr(plot, name)(folder)
    rows = figure.rows(found)
    assert chart.data.values == rows
    with debug_mode(False):
        want = figure.draw(rows, labels(found))
    assert spec(chart) == spec(want)
    assert getattr(plot, name)([str(folder)]).data.values == rows


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", OF[:4])
def test_every_source_gives_the_same_picture(name: str, source: str) -> None:
    want = getattr(plot, name)(Y, P).data.values
    assert getattr(plot, name)(*SOURCES[source]).data.values == want
    assert want


def test_the_bins_are_those_of_the_data() -> None:
    """Oracle: the rows counted one by one."""
    found = plot.reliability(Y, P).data.values
    c, right = P.max(1), P.argmax(1) == Y
    assert sum(row["count"] for row in found) == len(Y)
    for row in found:
        last = row["upper"] == max(r["upper"] for r in found)
        inside = (c >= row["lower"] - 1e-6) & ((c < row["upper"] - 1e-6) | last)
        assert row["count"] == inside.sum()
        if inside.any():
            assert row["accuracy"] == pytest.approx(right[inside].mean(), abs=1e-5)


def test_a_histogram_has_unknown_inputs_only_where_there_are_some() -> None:
    alone = plot.histogram(Y, P)
    rows = alone.data.values
    assert '"domain": ["right", "wrong"]' in spec(alone)
    assert sum(row["right"] for row in rows) == (P.argmax(1) == Y).sum()
    both = plot.histogram(Y, P, ood=Q)
    assert sum(row["outside"] for row in both.data.values) == len(Q)


def test_a_landscape_is_of_the_model_around_the_points() -> None:
    points = DRAW.normal(size=(50, 2))
    chart = plot.landscape(lambda grid: 1 / (1 + np.abs(grid).sum(1)), points)
    rows = chart.data.values
    assert len(rows) == plot.POINTS**2
    x, low, high = [row["x"] for row in rows], points[:, 0].min(), points[:, 0].max()
    assert (min(x), max(x)) == pytest.approx((2 * low - high, 2 * high - low))
    row = rows[1234]
    assert row["confidence"] == pytest.approx(1 / (1 + abs(row["x"]) + abs(row["y"])), abs=1e-3)


def test_an_embedding_has_the_class_means() -> None:
    """Two columns are their own principal components, up to turning: distances stay."""
    y = np.repeat(["a", "b"], 10)
    f = DRAW.normal(size=(20, 2)) + 5 * (y == "b")[:, None]
    rows = plot.embedding(f, y).data.values
    a, b = (np.array([row["x"], row["y"]]) for row in rows if row["kind"] == "centre")
    want = f[y == "a"].mean(0) - f[y == "b"].mean(0)
    assert np.linalg.norm(a - b) == pytest.approx(np.linalg.norm(want), rel=1e-4)
    assert sum(row["kind"] == "point" for row in rows) == 20


MAGIC = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF", "html": b"<!DOCTYPE html>"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", MAGIC)
@pytest.mark.parametrize("name", [*OF, "landscape", "embedding"])
def test_a_picture_saves_itself(name: str, kind: str, tmp_path: Path) -> None:
    make: dict[str, Callable[[], Any]] = {
        "landscape": lambda: plot.landscape(lambda grid: np.exp(-np.abs(grid[:, 0])), P[:, :2]),
        "embedding": lambda: plot.embedding(P, Y),
    }
    usual = lambda: getattr(plot, name)({HOSTILE: evaluate(Y, P, **EXTRAS.get(name, {}))})  # noqa: E731
    chart = make.get(name, usual)()
    assert isinstance(chart, alt.TopLevelMixin)
    path = tmp_path / f"x.{kind}"
    chart.properties(background="white").save(path)
    content = path.read_bytes()
    assert content.lstrip().startswith(MAGIC[kind])
    assert len(content) > 2000
    assert b"<script>alert(1)" not in content
    if kind == "html":  # it needs no network
        assert not re.findall(rb"<(?:script|link)[^>]+(?:src|href)=", content)
        assert all(("alert(1)" in text) == (name in OF) for text in [content.decode()])


def test_a_notebook_takes_no_name_for_code() -> None:
    chart = plot.reliability({HOSTILE: evaluate(Y, P)})
    bundle = chart._repr_mimebundle_()
    page = (bundle[0] if isinstance(bundle, tuple) else bundle)["text/html"]
    assert "alert(1)" in page
    assert "<script>alert(1)" not in page
    assert "<script>alert(1)" not in chart.to_html()


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "no outsiders": (lambda: plot.roc(Y, P), "this picture needs `roc` curves, which need an OOD"),
    "no shift": (lambda: plot.shift(Y, P), "this picture needs accuracy and ECE of `shift/"),
    "no folder": (lambda: plot.reliability("no such folder"), "no such folder is not a folder"),
    "no runs": (lambda: plot.reliability(Path(__file__).parent), "no runs in"),
    "not probabilities": (lambda: plot.reliability(Y, 3 * P), "outside"),
    "no probabilities": (lambda: plot.reliability(Y), "targets come with probabilities"),
    "a folder without": (lambda: plot.landscape(RESULTS / "digits"), "only problems in the plane"),
    "no plane": (lambda: plot.landscape(len, P), "points in the plane"),
    "no model": (lambda: plot.landscape(3, P[:, :2]), "a model with predict_proba"),
    "no confidences": (lambda: plot.landscape(lambda g: g[:1, 0], P[:, :2]), "of shape"),
    "no targets": (lambda: plot.embedding(P, Y[:3]), "a target each"),
    "no features": (lambda: plot.embedding(SAID), "have no features"),
    "a format": (lambda: plot.reliability(Y, P).save("x.gif"), "one of png, svg, pdf, html, json"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_drawn_has_its_sentence(name: str) -> None:
    make, said = BAD[name]
    with pytest.raises(BadInput, match=said):
        make()


def test_without_the_extra_there_is_a_sentence() -> None:
    program = (
        "import sys; sys.modules['altair'] = None\nimport ova\n"
        "try: ova.plot\nexcept ova.BadInput as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "this needs Altair: pip install 'ova[report]'\n"


def test_it_is_a_public_name() -> None:
    assert ova.plot is plot
    assert "plot" in ova.__all__
