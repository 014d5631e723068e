"""The names of what lies in a model folder; a module of its own, because knowing them needs no torch."""

MODEL, WEIGHTS, MANIFEST = "model.json", "weights.safetensors", "manifest.json"
CALIBRATION, RUN, REPORT = "calibration.json", "run", "report.html"
HELD = "held.json"  # of the rows that carry the promise, for sets and for a batch at once
SCORES, EXAMPLES = (
    "scores",
    "examples.json",
)  # what the score that decides has learnt (a folder), its rows
FEATURES, ROWS = "features.safetensors", "rows.json"  # of an extended model: the rows it rests on
