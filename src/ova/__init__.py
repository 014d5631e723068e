"""Classifiers that know what they do not know: one-vs-all and distance-based last layers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ova import metrics as metrics
    from ova.corruptions import CORRUPTIONS as CORRUPTIONS
    from ova.corruptions import corrupt as corrupt
    from ova.errors import BadInput as BadInput
    from ova.experiments import EXPERIMENTS as EXPERIMENTS
    from ova.metrics import METRICS as METRICS
    from ova.metrics.arrays import evaluate as evaluate
    from ova.metrics.scored import evaluate_scores as evaluate_scores
    from ova.modelfolder.door import train as train
    from ova.modelfolder.trained import load as load
    from ova.nn.convert import convert as convert
    from ova.nn.formulations import FORMULATIONS as FORMULATIONS
    from ova.nn.modules import Head as Head
    from ova.nn.modules import Loss as Loss
    from ova.nn.pretrained import from_pretrained as from_pretrained
    from ova.posthoc.calibration import CALIBRATIONS as CALIBRATIONS
    from ova.posthoc.monitoring import Monitor as Monitor
    from ova.posthoc.outside import outside as outside
    from ova.posthoc.sets import fit_sets as fit_sets
    from ova.posthoc.threshold import fit_threshold as fit_threshold
    from ova.predictions import Predictions as Predictions
    from ova.report import plot as plot
    from ova.training.estimator import OneVsAllClassifier as OneVsAllClassifier
    from ova.training.recipe import Recipe as Recipe
    from ova.training.selective import Selective as Selective

# Where each public name lives. They are imported when first asked for, so that `import ova` and
# `ova --help` do not wait for PyTorch.
_HOME = {
    "CORRUPTIONS": "corruptions",
    "BadInput": "errors",
    "CALIBRATIONS": "posthoc.calibration",
    "EXPERIMENTS": "experiments",
    "FORMULATIONS": "nn.formulations",
    "Head": "nn.modules",
    "Loss": "nn.modules",
    "METRICS": "metrics",
    "Monitor": "posthoc.monitoring",
    "OneVsAllClassifier": "training.estimator",
    "Predictions": "predictions",
    "Recipe": "training.recipe",
    "Selective": "training.selective",
    "convert": "nn.convert",
    "corrupt": "corruptions",
    "evaluate": "metrics.arrays",
    "evaluate_scores": "metrics.scored",
    "fit_sets": "posthoc.sets",
    "fit_threshold": "posthoc.threshold",
    "from_pretrained": "nn.pretrained",
    "load": "modelfolder.trained",
    "outside": "posthoc.outside",
    "train": "modelfolder.door",
}

_MODULES = {"metrics": "metrics", "plot": "report.plot"}

__all__ = sorted([*_HOME, *_MODULES])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name in _HOME or name in _MODULES:
        try:
            if name in _MODULES:
                return import_module(f"ova.{_MODULES[name]}")
            return getattr(import_module(f"ova.{_HOME[name]}"), name)
        except ModuleNotFoundError as error:
            from ova.errors import without

            raise without(error) from None
    raise AttributeError(f"module 'ova' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
