"""Calibration after training: confidences that are as often right as they say, fitted on held-out answers."""

from ova.calibration.methods import CALIBRATIONS as CALIBRATIONS
from ova.calibration.methods import Beta as Beta
from ova.calibration.methods import Calibration as Calibration
from ova.calibration.methods import Isotonic as Isotonic
from ova.calibration.methods import Temperature as Temperature
from ova.calibration.methods import Top as Top
from ova.calibration.methods import from_json as from_json
from ova.calibration.methods import usual as usual
