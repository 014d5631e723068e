"""The names of what lies in a model folder; a module of its own, because knowing them needs no torch."""

from ova.training import run_folder

MODEL, RUN = run_folder.OF_MODEL, run_folder.IN_MODEL
WEIGHTS, MANIFEST = "weights.safetensors", "manifest.json"
CALIBRATION, REPORT = "calibration.json", "report.html"
SCHEME = "hf://"  # of addresses on the Hugging Face Hub
HELD = "held.json"  # of the rows that carry the promise, for sets and for a batch at once
SCORES, EXAMPLES = (
    "scores",
    "examples.json",
)  # what the score that decides has learnt (a folder), its rows
FEATURES, ROWS = "features.safetensors", "rows.json"  # of an extended model: the rows it rests on
