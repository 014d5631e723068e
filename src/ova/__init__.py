"""Classifiers that know what they do not know: one-vs-all and distance-based last layers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ova.calibration import CALIBRATIONS as CALIBRATIONS
    from ova.conversion import convert as convert
    from ova.corruptions import CORRUPTIONS as CORRUPTIONS
    from ova.corruptions import corrupt as corrupt
    from ova.errors import BadInput as BadInput
    from ova.estimator import OneVsAllClassifier as OneVsAllClassifier
    from ova.evaluation import evaluate as evaluate
    from ova.formulations import FORMULATIONS as FORMULATIONS
    from ova.metrics import METRICS as METRICS
    from ova.modules import Head as Head
    from ova.modules import Loss as Loss
    from ova.predictions import Predictions as Predictions
    from ova.recipe import Recipe as Recipe
    from ova.recipes import EXPERIMENTS as EXPERIMENTS
    from ova.threshold import fit_threshold as fit_threshold

# Where each public name lives. They are imported when first asked for, so that `import ova` and
# `ova --help` do not wait for PyTorch.
_HOME = {
    "CORRUPTIONS": "corruptions",
    "BadInput": "errors",
    "CALIBRATIONS": "calibration",
    "EXPERIMENTS": "recipes",
    "FORMULATIONS": "formulations",
    "Head": "modules",
    "Loss": "modules",
    "METRICS": "metrics",
    "OneVsAllClassifier": "estimator",
    "Predictions": "predictions",
    "Recipe": "recipe",
    "convert": "conversion",
    "corrupt": "corruptions",
    "evaluate": "evaluation",
    "fit_threshold": "threshold",
}

__all__ = sorted(_HOME)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"ova.{_HOME[name]}"), name)
    raise AttributeError(f"module 'ova' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
