"""Metrics of predictions; `docs/metrics.md` has the formulas and which way is better."""

from ova.metrics.resampling import Draws as Draws
from ova.metrics.resampling import Interval as Interval
from ova.metrics.resampling import bootstrap as bootstrap
from ova.metrics.resampling import paired_difference as paired_difference
from ova.metrics.table import DETECTION as DETECTION
from ova.metrics.table import METRICS as METRICS
from ova.metrics.table import detection as detection
