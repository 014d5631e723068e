"""Calibration after training: confidences that are as often right as they say, fitted on held-out answers.

A new one is a file beside this that says `CALIBRATION = ...`, and its name in `table.py`.
"""

from ova.posthoc.calibration.beta import Beta as Beta
from ova.posthoc.calibration.calibration import Calibration as Calibration
from ova.posthoc.calibration.isotonic import Isotonic as Isotonic
from ova.posthoc.calibration.table import CALIBRATIONS as CALIBRATIONS
from ova.posthoc.calibration.table import from_json as from_json
from ova.posthoc.calibration.table import usual as usual
from ova.posthoc.calibration.temperature import Temperature as Temperature
from ova.posthoc.calibration.top import Top as Top
