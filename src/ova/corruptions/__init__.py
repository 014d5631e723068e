"""The nineteen corruptions, seeded and whole-batch."""

from ova.corruptions.corruption import Corruption as Corruption
from ova.corruptions.table import CORRUPTIONS as CORRUPTIONS
from ova.corruptions.table import SEVERITIES as SEVERITIES
from ova.corruptions.table import SUBSETS as SUBSETS
from ova.corruptions.table import corrupt as corrupt
from ova.corruptions.textures import Textures as Textures
