"""Attacks on the commands as an adversary would: kills, bad inputs, hostile machines. Nothing may be lost or wrong."""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]  # what makes small data is in tests
