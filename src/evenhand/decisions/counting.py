"""Running counts of a log. Each look counts only what is new since the last one."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from typing import Any

from sqlalchemy import case, func, literal, select
from sqlalchemy.exc import IntegrityError

from evenhand.decisions.errors import LogUnavailableError
from evenhand.decisions.lessons import SITTING
from evenhand.decisions.log import Log, put_setting
from evenhand.decisions.schema import contradictions, decisions, erasures, lessons, outcomes
from evenhand.decisions.settling import settled

COUNTED = "counted"  # the setting with the counts
_MANY = 100_000  # new rows after which the counts are stored again
Sums = dict[Any, tuple[int, float, float]]


class Counts:
    """Counts that grow at each look, from those stored in the log. An erasure makes them start again."""

    _kept: dict[str, Sums]

    def __init__(self, log: Log) -> None:
        self._log, self._lock = log, threading.Lock()
        explored = func.sum(case((decisions.c.explored, 1), else_=0))
        cell = (decisions.c.version, decisions.c.group, decisions.c.action)
        # For each kind, what numbers its rows, and a query of three sums per cell. Lessons come first:
        # otherwise some could belong to decisions that came after the decisions were counted.
        self._kinds: dict[str, tuple[Any, Any]] = {
            "lessons": (
                lessons.c.sitting,
                select(func.count(), func.sum(lessons.c.reward), literal(0), *cell)
                .join(decisions, decisions.c.number == lessons.c.decision)
                .group_by(*cell),
            ),
            "decisions": (
                decisions.c.number,
                select(func.count(), explored, func.sum(decisions.c.floor), *cell).group_by(*cell),
            ),
            "outcomes": (outcomes.c.number, select(func.count(), literal(0), literal(0))),
            "contradictions": (contradictions.c.number, select(func.count(), literal(0), literal(0))),
        }
        self._begin(-1)
        if counted := log.setting(COUNTED):
            self._erasure, self._reached, kept = json.loads(counted)
            self._kept = {name: _sum({}, rows) for name, rows in kept.items()}
            self._written = self._rows()

    def _begin(self, erasure: int) -> None:
        self._erasure, self._written = erasure, 0
        self._reached = dict.fromkeys(self._kinds, 0)
        self._kept = {name: {} for name in self._kinds}

    def look(self) -> dict[str, Sums]:
        """Return, per version, group and action: decisions, explored ones and floors; lessons and rewards.

        `outcomes` and `contradictions` have one count, under an empty key.
        """
        with self._lock:
            erasure = self._log.scalar(select(func.coalesce(func.max(erasures.c.number), 0)))
            if erasure != self._erasure:
                self._begin(erasure)
            found = {name: self._go_on(name) for name in self._kinds}
            if self._rows() >= self._written + _MANY:
                self._write()
            return found

    def _go_on(self, name: str) -> Sums:
        number, query = self._kinds[name]
        reached = self._reached[name]
        if name == "lessons":  # a closed sitting gets no more
            upto = int(self._log.setting(SITTING) or 1) - 1
        else:
            upto = settled(self._log, number.table, reached)
        self._kept[name] = _sum(
            self._kept[name], self._log.all(query.where(number > reached, number <= upto))
        )
        self._reached[name] = upto
        return _sum(self._kept[name], self._log.all(query.where(number > upto)))

    def _rows(self) -> int:
        return sum(count for cells in self._kept.values() for count, *_ in cells.values())

    def _write(self) -> None:
        """Store the counts in the log, so that the first look after a start need not count all of it."""
        kept = {name: [[*sums, *cell] for cell, sums in cells.items()] for name, cells in self._kept.items()}
        text = json.dumps([self._erasure, self._reached, kept])
        # If the log is unavailable, the next look tries again. At a conflict, another one has just done so.
        with suppress(LogUnavailableError, IntegrityError):
            self._log.do(lambda connection: put_setting(connection, COUNTED, text))
            self._written = self._rows()


def _sum(sums: Sums, rows: list[Any]) -> Sums:
    found = dict(sums)
    for count, one, other, *cell in rows:
        before = found.get(tuple(cell), (0, 0, 0.0))
        found[tuple(cell)] = before[0] + count, before[1] + (one or 0), before[2] + (other or 0)
    return found
