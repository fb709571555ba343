"""Lessons: what each decision earned, joined from the log, and policies that learn from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, and_, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from evenhand.decisions.log import Log
from evenhand.decisions.policy import Policy, of_bytes, to_bytes
from evenhand.decisions.rules import Rules
from evenhand.decisions.schema import decisions, lessons, outcomes, settings

SITTING = "sitting"  # the setting that counts the joins; lessons are written under the present one
PIECE = 20_000  # lessons learned at a time
_WRITTEN = 2_000  # lessons in a transaction: whoever decides waits for one of them at most


def join(log: Log, rules: Rules, now: float) -> int:
    """Write a lesson for every decision whose reward is known by now; return how many.

    That is an outcome in time of an action that reveals it, at once the reward of an action that doesn't,
    and, if the rules have one, the reward of a decision whose outcome is overdue.
    """
    reasons = [~decisions.c.revealed, outcomes.c.id.is_not(None) & _in_time(rules)]
    if rules.overdue is not None and rules.within is not None:
        reasons.append(decisions.c.at < now - rules.within)
    query = (
        select(
            decisions.c.number, decisions.c.action, decisions.c.revealed, outcomes.c.reward, outcomes.c.label,
            (outcomes.c.id.is_not(None) & _in_time(rules)).label("came"),
        )
        .outerjoin(lessons, lessons.c.decision == decisions.c.number)
        .outerjoin(outcomes, outcomes.c.id == decisions.c.id)
        .where(lessons.c.decision.is_(None), or_(*reasons))
        .order_by(decisions.c.number)
    )  # fmt: skip
    written = 0
    for piece in log.pieces(query, _WRITTEN):
        written += log.commits.do(_Writing(log), [_lesson(rules, row) for row in piece])
    return written


def _in_time(rules: Rules) -> Any:
    if rules.within is None:
        return outcomes.c.at.is_not(None)
    return outcomes.c.at <= decisions.c.at + rules.within


def _lesson(rules: Rules, row: Any) -> dict[str, Any]:
    if not row.revealed:
        return {"decision": row.number, "reward": rules.unrevealed, "why": "unrevealed"}
    if row.came:
        return {
            "decision": row.number,
            "reward": rules.reward(row.action, row.reward, row.label),
            "why": "outcome",
        }
    return {"decision": row.number, "reward": rules.overdue, "why": "overdue"}


@dataclass(frozen=True)
class _Writing:
    """Lessons written between decisions, by the thread that writes those."""

    log: Log

    def __call__(self, pieces: list[list[dict[str, Any]]]) -> list[int]:
        return [self._write(rows) for rows in pieces]

    def _write(self, rows: list[dict[str, Any]]) -> int:
        while True:
            try:
                with self.log.write() as connection:
                    sitting = _sitting(connection)
                    numbers = [row["decision"] for row in rows]
                    known = set(
                        connection.scalars(select(lessons.c.decision).where(lessons.c.decision.in_(numbers)))
                    )
                    # A decision erased since it was read must not come back as a lesson.
                    there = set(
                        connection.scalars(select(decisions.c.number).where(decisions.c.number.in_(numbers)))
                    )
                    new = [{**row, "sitting": sitting} for row in rows if row["decision"] in there - known]
                    if new:
                        connection.execute(insert(lessons), new)
                    return len(new)
            except IntegrityError:  # another process joins the same decisions
                continue


def _sitting(connection: Connection) -> int:
    """Return the number of the present sitting, held until the transaction ends."""
    query = select(settings.c.value).where(settings.c.name == SITTING).with_for_update()
    return int(connection.execute(query).scalar_one())


def close_sitting(log: Log) -> int:
    """End the present sitting: nothing is added any more to the lessons up to it. Return its number."""

    def close(jobs: list[None]) -> list[int]:
        with log.write() as connection:
            sitting = _sitting(connection)
            connection.execute(
                update(settings).where(settings.c.name == SITTING).values(value=str(sitting + 1))
            )
        return [sitting] * len(jobs)

    return int(log.commits.do(close, None))


class Made(NamedTuple):
    """A policy learned from lessons, as the log keeps it."""

    policy: Policy
    content: bytes
    rows: int


def learned(
    log: Log, parent: Policy, version: int, sittings: tuple[int, int], piece: int = PIECE
) -> Made | None:
    """Return what a parent becomes by the lessons of the sittings after the first, up to the second.

    Lessons are met once, in the order of sittings and decisions, so many at a time; held-out ones are not.
    """
    model, part = parent.learner()
    rows = 0
    for X, actions, rewards, propensities, groups in _taught(log, parent, sittings, piece):
        names = np.array(list(parent.classes.values()))[actions]
        if hasattr(part, "groups_"):
            told = {"sensitive_features": np.asarray(part.groups_, dtype=object)[groups]}
        else:
            told = {}
        part.update(X, names, rewards, propensities, **told)
        rows += len(actions)
    if not rows:
        return None
    content = to_bytes(model)
    return Made(of_bytes(content, version), content, rows)


def _taught(log: Log, policy: Policy, sittings: tuple[int, int], piece: int) -> Iterator[tuple[Any, ...]]:
    after, upto = sittings
    query = (
        select(
            decisions.c.context, decisions.c.group, decisions.c.action, decisions.c.probability,
            lessons.c.reward,
        )
        .join(lessons, lessons.c.decision == decisions.c.number)
        .where(and_(lessons.c.sitting > after, lessons.c.sitting <= upto, ~decisions.c.held_out))
        .order_by(lessons.c.sitting, decisions.c.number)
    )  # fmt: skip
    for found in log.pieces(query, piece):
        read = policy.read([row.context for row in found], [row.group for row in found])
        assert not any(read.reasons), "whoever was decided about can be read again"
        yield (
            read.features,
            np.array([policy.actions.index(row.action) for row in found]),
            np.array([row.reward for row in found]),
            np.array([row.probability for row in found]),
            read.groups,
        )
