"""Pictures by one call: the figures of the report for predictions, arrays, runs or a model."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import torch
from altair.utils.schemapi import debug_mode

from ova.errors import BadInput
from ova.files import Row
from ova.metrics.arrays import evaluate
from ova.metrics.measured import Evaluation
from ova.predictions import Predictions
from ova.predictions.columns import Array
from ova.predictions.sets import TEST
from ova.report import runs as found_below
from ova.report.figures import FIGURES
from ova.report.runs import labels as labels_of
from ova.training.geometry import class_means, picture
from ova.training.run_folder import Run

NAME = "model"  # what one model is called that has no name
SCALE = 2  # pixels of a PNG per unit, as in the report's own files
POINTS = 81  # along a side of a landscape


def reliability(source: Any, probs: Any = None, **how: Any) -> Any:
    """Accuracy in bins of the confidence, and where the answers are.

    `source` is `Predictions`, targets with their probabilities, a data frame, an evaluation of `ova.evaluate`, a
    model, run folders, or a mapping from names to any of these, for one panel each. Further
    keywords (ood, shift, labels, normalised) are those of `ova.evaluate`.

    >>> p = np.random.default_rng(0).dirichlet([1, 1, 1], size=300)
    >>> chart = reliability(p.argmax(1), p)
    >>> chart.to_html().count("</html>")  # chart.save("reliability.png"), .svg, .pdf, .html
    1
    >>> type(reliability({"sharp": (p.argmax(1), p), "flat": (p.argmax(1), p**0 / 3)})).__name__
    'ConcatChart'
    """
    return drawn("reliability", source, probs, how)


def accuracy_confidence(source: Any, probs: Any = None, **how: Any) -> Any:
    """Accuracy of what is answered, at every threshold, and how much that is.

    >>> p = np.random.default_rng(0).dirichlet([1, 1, 1], size=300)
    >>> type(accuracy_confidence(p.argmax(1), p)).__name__
    'ConcatChart'
    """
    return drawn("threshold", source, probs, how)


def risk_coverage(source: Any, probs: Any = None, **how: Any) -> Any:
    """Errors among the most confident share of the inputs.

    >>> p = np.random.default_rng(0).dirichlet([1, 1, 1], size=300)
    >>> type(risk_coverage(p.argmax(1), p)).__name__
    'Chart'
    """
    return drawn("risk-coverage", source, probs, how)


def histogram(source: Any, probs: Any = None, **how: Any) -> Any:
    """Confidences of right and wrong answers, and with `ood` of unknown inputs.

    >>> p = np.random.default_rng(0).dirichlet([1, 1, 1], size=300)
    >>> far = np.random.default_rng(1).dirichlet([3, 3, 3], size=100)
    >>> type(histogram(p.argmax(1), p, ood=far)).__name__
    'ConcatChart'
    """
    return drawn("histogram", source, probs, how)


def roc(source: Any, probs: Any = None, **how: Any) -> Any:
    """Known inputs that are answered against unknown ones let through; needs `ood`.

    >>> p = np.random.default_rng(0).dirichlet([1, 1, 1], size=300)
    >>> far = np.random.default_rng(1).dirichlet([3, 3, 3], size=100)
    >>> type(roc(p.argmax(1), p, ood=far)).__name__
    'ConcatChart'
    """
    return drawn("roc", source, probs, how)


def shift(source: Any, probs: Any = None, **how: Any) -> Any:
    """Accuracy and ECE as the inputs drift; needs `shift`.

    >>> p = np.random.default_rng(0).dirichlet([1, 1, 1], size=300)
    >>> foggy = {"fog/1": (p.argmax(1), p), "fog/3": (p[::-1].argmax(1), p)}
    >>> type(shift(p.argmax(1), p, shift=foggy)).__name__
    'ConcatChart'
    """
    return drawn("severity", source, probs, how)


def landscape(source: Any, points: Any = None) -> Any:
    """Confidence over the plane: of run folders, or of a function or a fitted model around points.

    A model has `predict_proba`; a function takes an N x 2 array and gives N confidences.

    >>> type(landscape(lambda x: np.exp(-(x**2).sum(1)), [[0, 0], [1, 1]])).__name__
    'FacetChart'
    """
    if points is None:
        return picture_of("landscape", runs_of(source, None, {}))
    if not isinstance(source, Mapping):
        source = {NAME: source}
    return picture_of(
        "landscape", [run(name, [surface(of, points)]) for name, of in source.items()]
    )


def embedding(source: Any, targets: Any = None) -> Any:
    """Features and class means on two principal components: of arrays (features, targets) or runs.

    >>> f = np.random.default_rng(0).normal(size=(30, 4))
    >>> type(embedding(f, np.arange(30) % 3)).__name__
    'FacetChart'
    """
    if isinstance(source, Predictions):
        if source.features is None:
            raise BadInput("these predictions have no features; give an array of them, and targets")
        source, targets = source.features, source.target
    if targets is None:
        return picture_of("embedding", runs_of(source, None, {}))
    return picture_of("embedding", [run(NAME, [components(source, targets)])])


def drawn(figure: str, source: Any, probs: Any, how: Mapping[str, Any]) -> Any:
    """The figure of the report for whatever has predictions."""
    return picture_of(figure, runs_of(source, probs, how))


def picture_of(figure: str, runs: Sequence[Run]) -> Any:
    """The chart, with data, theme and a white ground, that saves itself."""
    rows = FIGURES[figure].rows(runs)
    if not rows:
        raise BadInput(f"this picture needs {FIGURES[figure].needs}")
    with debug_mode(False):  # our rows are many and need no check
        chart = FIGURES[figure].draw(rows, labels_of(runs))
    chart.config = chart.config | {"background": "white"}
    chart.usermeta = alt.Undefined  # what only the page asks
    # Altair keeps attributes as parts of the chart, its class is none.
    object.__setattr__(chart, "__class__", SAVED[type(chart)])
    return chart


class Inert(json.JSONEncoder):
    """JSON inside a page: no text in it can end the script that it stands in."""

    def iterencode(self, o: Any, _one_shot: bool = False) -> Iterator[str]:
        for part in super().iterencode(o, _one_shot):
            yield part.replace("<", "\\u003c")


class Saved:
    """A chart whose files need no network, and whose pages take nothing in its texts for code."""

    def save(self, fp: Any, format: Any = None, **options: Any) -> None:  # noqa: A002
        """Write .png, .svg, .pdf, .html or .json."""
        ending = str(format or Path(str(fp)).suffix.lstrip(".")).lower()
        if ending not in ENDINGS:
            raise BadInput(f"{fp}: the ending says the format, one of {', '.join(ENDINGS)}")
        super().save(fp, format=ending, **(ENDINGS[ending] | options))  # type: ignore[misc]

    def to_html(self, *args: Any, **options: Any) -> str:
        """A page, as Altair makes it."""
        page: str = super().to_html(*args, **(INERT | options))  # type: ignore[misc]
        return page

    def _repr_mimebundle_(self, *args: Any, **options: Any) -> Any:
        if alt.renderers.active not in PAGES:
            return super()._repr_mimebundle_(*args, **options)  # type: ignore[misc]
        renderer: Any = alt.renderers.get()
        return renderer(self.to_dict(context={"pre_transform": False}), **INERT)  # type: ignore[attr-defined]


INERT: dict[str, Any] = {"json_kwds": {"cls": Inert}}
PAGES = ("default", "html")  # renderers that write a page
ENDINGS: dict[str, dict[str, Any]] = {
    "png": {"scale_factor": SCALE},
    "svg": {},
    "pdf": {},
    "html": {"inline": True, **INERT},
    "json": {},
}
CHARTS = (
    alt.Chart,
    alt.LayerChart,
    alt.ConcatChart,
    alt.HConcatChart,
    alt.VConcatChart,
    alt.FacetChart,
)
SAVED: dict[type, type] = {kind: type(kind.__name__, (Saved, kind), {}) for kind in CHARTS}


def runs_of(source: Any, probs: Any, how: Mapping[str, Any]) -> list[Run]:
    """What can be drawn, as runs that have a name each."""
    if isinstance(source, str | Path):
        return found_below.read([Path(source)])
    if (
        isinstance(source, list | tuple)
        and source
        and all(isinstance(s, str | Path) for s in source)
    ):
        return found_below.read([Path(each) for each in source])
    if isinstance(source, Mapping) and probs is None and named(source):
        several = {str(name): one(of, how) for name, of in source.items()}
        return [run(name, each.curves, each.rows) for name, each in several.items()]
    if hasattr(source, "run_folder"):  # a trained model
        return found_below.read([Path(source.run_folder)])
    found = one(source, how, probs)
    return [run(NAME, found.curves, found.rows)]


def named(source: Mapping[Any, Any]) -> bool:
    """Whether a mapping has models by their names: evaluations, or pairs (y_true, probs)."""
    kinds = Evaluation | tuple | Predictions
    return TEST not in source and all(isinstance(each, kinds) for each in source.values())


def one(source: Any, how: Mapping[str, Any], probs: Any = None) -> Evaluation:
    """The evaluation of one model."""
    if isinstance(source, Evaluation):
        return source
    y, p = source if isinstance(source, tuple) and probs is None else (source, probs)
    return evaluate(y, p, **how)


def run(name: str, curves: Sequence[Row], rows: Sequence[Row] = ()) -> Run:
    """What was measured in memory, as the figures take it."""
    return Run("plot", name, name, 0, measurements=rows, curves=curves)


def surface(of: Any, points: Any) -> Row:
    """The confidences on a grid that is three times as wide as the points."""
    x = np.asarray(points, np.float64)
    if x.ndim != 2 or x.shape[1] != 2 or not len(x) or not np.isfinite(x).all():
        raise BadInput(
            f"a landscape is of points in the plane, N x 2 finite numbers, not of shape {x.shape}"
        )
    low, high = x.min(0), x.max(0)
    middle, half = (low + high) / 2, 1.5 * np.maximum(high - low, 1e-9)
    axes = [np.linspace(m - h, m + h, POINTS) for m, h in zip(middle, half, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
    c = confidences(of, grid)
    columns = {"x": grid[:, 0].tolist(), "y": grid[:, 1].tolist(), "confidence": c.tolist()}
    return {"dataset": "grid", "curve": "landscape", "columns": columns}


def confidences(of: Any, grid: Array) -> Array:
    """The confidence at each point."""
    ask: Any = getattr(of, "predict_proba", of)
    if not callable(ask):
        raise BadInput("a landscape is of a model with predict_proba, or of a function of points")
    c = np.asarray(ask(grid), np.float64)
    c = c.max(1) if c.ndim == 2 else c
    if c.shape != (len(grid),):
        raise BadInput(f"for {len(grid)} points there are confidences of shape {c.shape}")
    return c


def components(features: Any, targets: Any) -> Row:
    """Features and the means of their classes on two principal components."""
    f = torch.as_tensor(np.asarray(features, np.float64))
    names, y = np.unique(np.asarray(targets), return_inverse=True)
    if f.ndim != 2 or len(f) != len(y) or not f.isfinite().all():
        raise BadInput(
            f"features are N x D finite numbers with a target each, not {tuple(f.shape)} with {len(y)}"
        )
    k = torch.as_tensor(y)
    return picture(f, k, class_means(f, k, len(names)))
