"""What a server counts, for Prometheus: answers, refusals, latency and the queue."""

from collections.abc import Callable, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.registry import Collector

from ova.modelfolder.answer import Answer
from ova.predictions import NONE_LABEL

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Counts:
    """The counters of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        at: Any = {"registry": self.registry}
        self.requests = Counter("ova_requests", "Requests to predict, by status.", ["status"], **at)
        self.seconds = Histogram(
            "ova_request_seconds", "From request to reply.", buckets=SECONDS, **at
        )
        self.answers = Counter("ova_answers", "Inputs that got a label.", **at)
        self.refusals = Counter("ova_refusals", "Inputs of none of the classes.", **at)
        self.unusable = Counter("ova_unusable", "Inputs that could not be used.", **at)
        self.batches = Histogram(
            "ova_batch_rows", "Inputs that the model was given at once.", buckets=ROWS, **at
        )
        self.waiting = Gauge("ova_waiting_rows", "Inputs that wait for the model.", **at)

    def register(self, collector: Collector) -> None:
        """Give also what is counted elsewhere."""
        self.registry.register(collector)

    def watch(self, waiting: Callable[[], float]) -> None:
        """Read the length of the queue when it is asked for."""
        self.waiting.set_function(waiting)

    def say(self, answers: Sequence[Answer], batch: int) -> None:
        """Count what was answered, and the batch that it came from."""
        unusable = sum(answer.problem is not None for answer in answers)
        refused = sum(answer.label == NONE_LABEL for answer in answers)
        self.answers.inc(len(answers) - refused - unusable)
        self.refusals.inc(refused)
        self.unusable.inc(unusable)
        self.batches.observe(batch)

    def page(self) -> bytes:
        """All of them, in the text format of Prometheus."""
        return generate_latest(self.registry)
