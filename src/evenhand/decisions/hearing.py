"""Write outcomes to the log: each id once, several people in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, insert, select

from evenhand.decisions.log import Log
from evenhand.decisions.rules import Rules
from evenhand.decisions.schema import contradictions, decisions, outcomes
from evenhand.decisions.writing import rows_of, write, written_once

_ASKED = [decisions.c.id, decisions.c.at, decisions.c.revealed]
_KEPT = [outcomes.c.id, outcomes.c.reward, outcomes.c.label]
_HEARD = insert(outcomes).inline()


class Told(NamedTuple):
    """An outcome as a row of the log."""

    id: str
    at: float
    received: float
    reward: float | None
    label: str | None


def take_outcomes(log: Log, rules: Rules, jobs: Sequence[Sequence[Told]]) -> list[list[str] | Exception]:
    """Write each job's outcomes; return the status of each (see `DecisionLoop.outcome`)."""
    told = [one for job in jobs for one in job]
    ids = [one.id for one in told]

    def work(connection: Connection, once: bool) -> list[str]:
        known = {} if once else rows_of(connection, _KEPT, ids)
        made = rows_of(connection, _ASKED, ids)
        new, against, status = [], [], []
        for one in told:
            before = known.setdefault(one.id, one)
            if before is one:
                new.append(one)
                status.append(_standing(rules, one, made.get(one.id)))
            elif (before.reward, before.label) == (one.reward, one.label):
                status.append("repeated")
            else:
                against.append(one)
                status.append("contradicting")
        if new:
            write(connection, _HEARD, new)
        _keep_contradictions(connection, against)
        return status

    found = iter(written_once(log, ids, work))
    return [[next(found) for _ in job] for job in jobs]


def _standing(rules: Rules, told: Told, decision: Any) -> str:
    if decision is None:
        return "early"
    if not decision.revealed:
        return "unrevealed"
    return "accepted" if rules.in_time(decision.at, told.at) else "late"


def _keep_contradictions(connection: Connection, against: list[Told]) -> None:
    if not against:
        return
    query = select(contradictions).where(contradictions.c.id.in_({one.id for one in against}))
    kept = {(row.id, row.reward, row.label) for row in connection.execute(query)}
    new = {(one.id, one.reward, one.label): one._asdict() for one in against}
    rows = [row for key, row in new.items() if key not in kept]
    if rows:
        connection.execute(insert(contradictions), rows)
