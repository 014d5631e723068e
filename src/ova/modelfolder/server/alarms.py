"""What watches the answers of a server, as gauges for Prometheus: wealth, alarms and since which row."""

import math
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from ova.modelfolder.live import Live
from ova.posthoc.monitoring.wealth import limit

LABELS = ("about", "watched")
PER_BETTOR = {
    "ova_monitor_wealth": "Log10 of the wealth of a bettor on a change, who began with 1.",
    "ova_monitor_needed": "Log10 of the wealth that an alarm takes.",
    "ova_monitor_alarm": "1 if the wealth was ever so large; an alarm stays.",
    "ova_monitor_alarm_row": "The row after which it first was, from 1 on; only with an alarm.",
    "ova_monitor_since_row": "The row since which something likeliest changed; only with an alarm.",
}


class Alarms(Collector):
    """Read when they are asked for."""

    def __init__(self, watch: Live | str) -> None:
        self.watch = watch

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All gauges; where nothing is watched, only that."""
        watched = isinstance(self.watch, Live)
        yield GaugeMetricFamily(
            "ova_monitor_watching",
            "1 if the answers are watched; /model says why not.",
            int(watched),
        )
        if not isinstance(self.watch, Live):
            return
        yield GaugeMetricFamily(
            "ova_monitor_rows", "Rows that were watched, those of the log too.", self.watch.rows
        )
        gauges = {
            name: GaugeMetricFamily(name, said, labels=LABELS) for name, said in PER_BETTOR.items()
        }
        for found, wealth in self.watch.look():
            alarm, since = found.alarm, found.since
            values = {
                "wealth": wealth / math.log(10),
                "needed": limit(found.level) / math.log(10),
                "alarm": int(alarm is not None),
                "alarm_row": None if alarm is None else alarm + 1,
                "since_row": None if since is None else since + 1,
            }
            for name, value in values.items():
                if value is not None:
                    gauges[f"ova_monitor_{name}"].add_metric((found.about, found.name), value)
        yield from gauges.values()
