"""Calibration after training: confidences that are as often right as they say, fitted on held-out answers."""

from ova.posthoc.calibration.methods import CALIBRATIONS as CALIBRATIONS
from ova.posthoc.calibration.methods import Beta as Beta
from ova.posthoc.calibration.methods import Calibration as Calibration
from ova.posthoc.calibration.methods import Isotonic as Isotonic
from ova.posthoc.calibration.methods import Temperature as Temperature
from ova.posthoc.calibration.methods import Top as Top
from ova.posthoc.calibration.methods import from_json as from_json
from ova.posthoc.calibration.methods import usual as usual
