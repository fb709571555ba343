"""How the policy in force treats each group, with intervals that hold however often you look."""

from __future__ import annotations

import json
import threading
from typing import Any

import numpy as np
from sqlalchemy import select

from evenhand.decisions.exploration import flips_of
from evenhand.decisions.loop import DecisionLoop
from evenhand.decisions.schema import decisions
from evenhand.decisions.sequences import ConfidenceSequence
from evenhand.decisions.settling import settled

AT_ONCE = 10_000  # decisions read per look, so that a long log does not keep deciders waiting


class _Seen:
    """The sequences of one policy: each group's rate of each action, and its flip rate."""

    def __init__(self, groups: list[str], actions: list[str], risk: float) -> None:
        level = 1.0 - risk / len(groups) / (len(actions) + 1)  # all of them hold together
        self.reached = self.people = 0
        self.flips = {group: ConfidenceSequence(level) for group in groups}
        self.rates = {group: [ConfidenceSequence(level) for _ in actions] for group in groups}


class Watch:
    """Adds, at each look, the decisions since the last one. Decisions erased meanwhile stay counted."""

    def __init__(self, loop: DecisionLoop) -> None:
        self._loop, self._seen, self._lock = loop, dict[int, _Seen](), threading.Lock()

    def look(self) -> dict[str, Any]:
        """Return each group's rates and flip rate under the policy in force, as plain data."""
        policy, risk = self._loop._versions.policy, 1.0 - self._loop.bounds.confidence
        groups = list(policy.groups)
        with self._lock:
            new = _Seen(groups, policy.actions, risk)
            seen = self._seen.setdefault(policy.version, new)
            self._go_on(seen, policy.version, groups)
            return {
                "people": seen.people,
                "confidence": self._loop.bounds.confidence,
                "actions": policy.actions,
                "groups": [
                    {
                        "group": group,
                        "people": seen.flips[group].n,
                        "flip_rate": _measure(seen.flips[group]),
                        "rates": [_measure(sequence) for sequence in seen.rates[group]],
                    }
                    for group in groups
                ],
            }

    def _go_on(self, seen: _Seen, version: int, groups: list[str]) -> None:
        columns = (decisions.c.number, decisions.c.id, decisions.c.group, decisions.c.by_group)
        log = self._loop._log
        upto = settled(log, decisions, seen.reached)
        rows = log.all(
            select(*columns)
            .where(
                decisions.c.number > seen.reached, decisions.c.number <= upto, decisions.c.version == version
            )
            .order_by(decisions.c.number)
            .limit(AT_ONCE)
        )
        seen.reached = rows[-1].number if len(rows) == AT_ONCE else upto
        if not rows:
            return
        said = np.array([json.loads(row.by_group) for row in rows])
        numbers = self._loop.rules.draws([row.id for row in rows])[0]
        flips = flips_of(said, numbers)
        own = np.array([row.group for row in rows], dtype=object)
        for at, group in enumerate(groups):
            here = own == group
            seen.flips[group].update(flips[here])
            for action, sequence in enumerate(seen.rates[group]):
                sequence.update(said[here, at, action].clip(0.0, 1.0))
        seen.people += len(rows)


def _measure(sequence: ConfidenceSequence) -> dict[str, float | None]:
    low, high = sequence.interval()
    return {"value": sequence.up.total / sequence.n if sequence.n else None, "low": low, "high": high}
