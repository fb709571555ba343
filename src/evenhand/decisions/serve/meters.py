"""Metrics for Prometheus."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from evenhand.decisions.deciding import Row
from evenhand.decisions.loop import DecisionLoop


class Meters:
    """The metrics of a service, for Prometheus."""

    def __init__(self, loop: DecisionLoop) -> None:
        self.registry = CollectorRegistry()
        kept = self.registry
        labels = ["action", "group", "version"]
        self.decisions = Counter("evenhand_decisions", "Answers given", labels, registry=kept)
        self.outcomes = Counter("evenhand_outcomes", "Outcomes told", ["status"], registry=kept)
        self.failures = Counter("evenhand_failures", "Requests refused", ["status"], registry=kept)
        self.seconds = Histogram("evenhand_decide_seconds", "Until an answer is on disk", registry=kept)
        version = Gauge("evenhand_policy_version", "The policy in force", registry=kept)
        version.set_function(lambda: float(loop.version))
        loop.meter = self  # also counts what this process asks without a request, as the demonstration does

    def count_decisions(self, rows: Sequence[Row]) -> None:
        """Count answers by action, group and version."""
        for told, times in Tally((one.action, one.group, one.version) for one in rows).items():
            self.decisions.labels(*map(str, told)).inc(times)

    def count_outcomes(self, statuses: Sequence[str]) -> None:
        """Count outcomes by what was done with them."""
        for status, times in Tally(statuses).items():
            self.outcomes.labels(status).inc(times)
