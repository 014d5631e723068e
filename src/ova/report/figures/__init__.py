"""The figures by name: what each answers, the rows it needs and how it is drawn."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from altair.utils.schemapi import debug_mode

from ova.files import Row
from ova.report.figures import (
    calibrated,
    embedding,
    heatmap,
    histogram,
    landscape,
    mean_severity,
    precision_recall,
    reliability,
    risk_coverage,
    roc,
    search,
    severity,
    threshold,
    training,
)
from ova.report.theme import LATER
from ova.training.run_folder import Run


@dataclass(frozen=True)
class Figure:
    """One figure: runs -> rows -> chart; the caption says how to read it."""

    title: str
    caption: str
    needs: str  # what to measure so that the figure can be drawn
    rows: Callable[[Sequence[Run]], list[Row]]
    draw: Callable[[Sequence[Row], Sequence[str]], Any]

    def spec(self, rows: Sequence[Row], labels: Sequence[str]) -> dict[str, Any]:
        """The chart as Vega-Lite, quickly: unchecked (the tests check it) and without copying rows."""
        with debug_mode(False):
            chart = self.draw(rows, labels)
            chart.data = LATER
            found: dict[str, Any] = chart.to_dict(validate=False)
        name = f"rows-{hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]}"
        found["data"] = {"name": name}
        found["datasets"] = found.get("datasets", {}) | {name: list(rows)}
        return found


FIGURES = {
    "reliability": Figure(
        "Does 80 % mean 80 %?",
        "Bars on the diagonal are honest. Below it the model claims more than it keeps, above it "
        "less; the broken outline is the gap. Beneath: how many answers have that confidence.",
        "a `reliability` curve of the test set",
        reliability.rows,
        reliability.draw,
    ),
    "reliability-shift": Figure(
        "And under the strongest shift?",
        "The same for all types of shift together at the largest severity; the ECE is that of the "
        "pooled answers.",
        "`reliability` curves of `shift/*/<severity>`",
        reliability.shifted_rows,
        reliability.draw,
    ),
    "severity": Figure(
        "As the inputs drift",
        "Each box holds all types of shift at one severity: median, quartiles, extremes. High "
        "accuracy is good, low ECE is good.",
        "accuracy and ECE of `shift/<type>/<severity>` sets",
        severity.rows,
        severity.draw,
    ),
    "mean-severity": Figure(
        "The same, on average",
        "Mean over all types of shift; whiskers span the seeds.",
        "accuracy and ECE of `shift/<type>/<severity>` sets",
        mean_severity.rows,
        mean_severity.draw,
    ),
    "calibrated": Figure(
        "And after calibration?",
        "Mean ECE over all types of shift at each severity, 0 being the test set: left as trained, "
        "right with a calibration that was fitted on validation examples. It cannot know the shift.",
        "ECE of `shift/<type>/<severity>` sets after calibration",
        calibrated.rows,
        calibrated.draw,
    ),
    "heatmap-ece": Figure(
        "Where its confidence breaks",
        "ECE for each type of shift and severity, mean over seeds. Brighter is worse.",
        "accuracy and ECE of `shift/<type>/<severity>` sets",
        heatmap.ece_rows,
        heatmap.draw_ece,
    ),
    "heatmap-accuracy": Figure(
        "Where its answers break",
        "Accuracy for each type of shift and severity, mean over seeds. Darker is worse.",
        "accuracy and ECE of `shift/<type>/<severity>` sets",
        heatmap.accuracy_rows,
        heatmap.draw_accuracy,
    ),
    "threshold": Figure(
        "Accuracy of the answered, at every threshold",
        "The model answers only when its confidence reaches the threshold. Mixed with unknown "
        "inputs every answer to one of them is wrong. Bands span the seeds.",
        "`accuracy_confidence` curves of the test set",
        threshold.rows,
        threshold.draw,
    ),
    "histogram": Figure(
        "What a threshold has to tell apart",
        "Confidence of right answers, wrong answers and unknown inputs, each set summing to one. "
        "The less they overlap, the better a threshold works.",
        "`histogram` curves, which need an OOD set",
        histogram.rows,
        histogram.draw,
    ),
    "risk-coverage": Figure(
        "Errors among the most confident",
        "Answer only the most confident share of the inputs: how many of the answers are wrong? "
        "Lower is better.",
        "a `risk_coverage` curve of the test set",
        risk_coverage.rows,
        risk_coverage.draw,
    ),
    "roc": Figure(
        "Keeping the known, refusing the unknown",
        "Up: known inputs that are answered. Right: unknown inputs let through by mistake. The "
        "nearer to the upper left corner, the better; dots mark the threshold that is set above.",
        "`roc` curves, which need an OOD set",
        roc.rows,
        roc.draw,
    ),
    "precision-recall": Figure(
        "How pure are the answers?",
        "Of the inputs that are answered, how many are known at all? Higher is better.",
        "`precision_recall` curves, which need an OOD set",
        precision_recall.rows,
        precision_recall.draw,
    ),
    "landscape": Figure(
        "Confidence over the plane",
        "Bright is confident; what lies below the threshold is grey. A classifier that knows what it "
        "does not know is dark far away from its training data.",
        "a `landscape` curve, which only problems in the plane have",
        landscape.rows,
        landscape.draw,
    ),
    "embedding": Figure(
        "Embeddings and class centres",
        "Examples (dots, coloured by class) and the class centres of the last layer (diamonds) on "
        "two principal components.",
        "an `embedding` curve, which only the toy problem writes",
        embedding.rows,
        embedding.draw,
    ),
    "training": Figure(
        "Training",
        "Means over seeds. Whole lines: validation; dotted lines: training.",
        "`log.jsonl` of the runs",
        training.rows,
        training.draw,
    ),
    "search": Figure(
        "Search",
        "Each dot is a trial of the search; the line is the best so far.",
        "trials of `ova tune`",
        search.rows,
        search.draw,
    ),
}
