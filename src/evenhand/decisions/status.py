"""The state of a log: what was decided, awaited and earned, per group and per policy."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import numpy as np
from sqlalchemy import select

from evenhand.decisions import lessons
from evenhand.decisions.counting import Counts
from evenhand.decisions.deciding import COLUMNS, Decision, Row
from evenhand.decisions.drifting import drift_of
from evenhand.decisions.errors import LogUnavailableError
from evenhand.decisions.exploration import draw
from evenhand.decisions.keeping import erased
from evenhand.decisions.loop import DecisionLoop
from evenhand.decisions.schema import decisions
from evenhand.decisions.schema import lessons as joined
from evenhand.decisions.watching import Watch

_PATIENCE = 1.0  # seconds


class Status:
    """The state of a log at each look: its counts, the treatment of groups, shifts, and its policies."""

    def __init__(self, loop: DecisionLoop) -> None:
        self._loop = loop
        self._counts, self._watch = Counts(loop._log), Watch(loop)

    def look(self) -> dict[str, Any]:
        """Return the state of the log as plain data.

        `explored` counts decisions that the policy alone, with the same draw, would have made differently.
        `floors` is the sum of the minimum probabilities of all decisions.
        """
        self._loop._versions.refresh()
        _join(self._loop)
        found, shows = self._counts.look(), self._loop.rules.shows
        cells = []
        for (version, group, action), (made, explored, floors) in sorted(found["decisions"].items()):
            known, earned, _ = found["lessons"].get((version, group, action), (0, 0.0, 0))
            cells.append(
                {
                    "version": version,
                    "group": group,
                    "action": action,
                    "decisions": made,
                    "revealed": made if shows(action) else 0,
                    "known": known,
                    "earned": earned,
                    "explored": explored,
                    "floors": floors,
                }
            )
        counts = {
            "decisions": sum(cell["decisions"] for cell in cells),
            "outcomes": found["outcomes"][()][0],
            "contradictions": found["contradictions"][()][0],
            "erased": erased(self._loop._log),
            "awaited": sum(cell["decisions"] - cell["known"] for cell in cells if shows(cell["action"])),
            "known": sum(cell["known"] for cell in cells),
            "earned": sum(cell["earned"] for cell in cells),
        }
        return {
            "version": self._loop.version,
            "counts": counts,
            "cells": cells,
            "explore": self._loop.rules.explore,
            "explore_per_day": self._loop.rules.explore_per_day,
            "policies": self._loop.policies(),
            "treated": self._watch.look(),
            "drift": drift_of(self._loop),
        }


def _join(loop: DecisionLoop) -> None:
    """Write down the rewards that became known since the loop last learned, unless it is learning now.

    Somebody who looks does not wait long for others who write: the next look shows what this one misses.
    """

    def work() -> None:
        if loop._log.learning.acquire(blocking=False):
            try:
                with suppress(LogUnavailableError):  # a full disk can still be looked at
                    lessons.join(loop._log, loop.rules, loop.clock())
            finally:
                loop._log.learning.release()

    thread = threading.Thread(target=work, name="evenhand-join", daemon=True)
    thread.start()
    thread.join(_PATIENCE)


def find(loop: DecisionLoop, id: str) -> tuple[Decision, dict[str, Any]] | None:
    """Return the decision of an id, and what else the log knows about it; None if there is none."""
    _join(loop)
    query = (
        select(*COLUMNS, joined.c.reward)
        .outerjoin(joined, joined.c.decision == decisions.c.number)
        .where(decisions.c.id == id)
    )
    with loop._log.read() as connection:
        row = connection.execute(query).first()
    if row is None:
        return None
    found = loop.answered([Row._make(row[:-1])])[0]
    said = np.array([list(chances.values()) for chances in found.by_group.values()])
    drawn = draw(said, np.full(len(said), loop.rules.draws([id])[0]))
    actions = list(next(iter(found.by_group.values())))
    instead = {group: actions[at] for group, at in zip(found.by_group, drawn.tolist(), strict=True)}
    return found, {"with_same_draw": instead, "revealed": row.revealed, "reward": row.reward}
