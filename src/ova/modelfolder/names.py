"""The names of what lies in a model folder; a module of its own, because knowing them needs no torch."""

MODEL, WEIGHTS, MANIFEST = "model.json", "weights.safetensors", "manifest.json"
CALIBRATION, RUN, REPORT = "calibration.json", "run", "report.html"
SCORES, EXAMPLES = (
    "scores",
    "examples.json",
)  # what the score that decides has learnt (a folder), its rows
