"""What Prometheus is told."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from evenhand.decisions.loop import DecisionLoop


class Meters:
    """What Prometheus is told."""

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
