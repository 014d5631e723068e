"""The nineteen corruptions of ImageNet-C and CIFAR-10-C for batches of images, the same for a seed."""

from ova.corruptions.corruption import Corruption as Corruption
from ova.corruptions.table import CORRUPTIONS as CORRUPTIONS
from ova.corruptions.table import SEVERITIES as SEVERITIES
from ova.corruptions.table import SUBSETS as SUBSETS
from ova.corruptions.table import corrupt as corrupt
from ova.corruptions.textures import Textures as Textures
