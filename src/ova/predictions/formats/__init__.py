"""The files people bring predictions in, read as chunks of columns under our names.

A new format is a file beside this that has a function `chunks`, and a line in `_FILES`.
"""

from importlib import import_module

from ova.predictions.formats.layout import NEEDED as NEEDED
from ova.predictions.formats.layout import Chunk as Chunk
from ova.predictions.formats.layout import Chunks as Chunks
from ova.predictions.formats.wanted import Wanted as Wanted

_FILES = {  # ending -> file
    ".parquet": "parquet",
    ".csv": "csv",
    ".npz": "npz",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".arrow": "ipc",
    ".feather": "ipc",
}
FORMATS: dict[str, Chunks] = {
    ending: import_module(f"ova.predictions.formats.{file}").chunks
    for ending, file in _FILES.items()
}
