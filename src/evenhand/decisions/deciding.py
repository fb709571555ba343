"""Decisions and outcomes as the log takes them: each id once, several people in one transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, func, insert, select
from sqlalchemy.exc import IntegrityError

from evenhand.decisions.errors import ConflictError
from evenhand.decisions.exploration import draw
from evenhand.decisions.log import Log
from evenhand.decisions.policy import Policy
from evenhand.decisions.rules import Rules
from evenhand.decisions.schema import contradictions, decisions, outcomes, promotions

_AT_ONCE = 10_000  # ids in one question to the database
_TRIES = 5  # another decider may write the same id between our look and our write


@dataclass(frozen=True)
class Decision:
    """What was decided about a person.

    Attributes
    ----------
    id : str
        The id it was asked under.
    action : object
        The action, drawn with the probabilities of the person's own group.
    probability : float
        Its probability, with the floor of exploration.
    by_group : dict
        Every group's probabilities: what each group's policy would have said about this person.
    group : str
        The person's group.
    version : int
        The policy that decided.
    at : float
        When, in seconds since 1970.
    """

    id: str
    action: Any
    probability: float
    by_group: dict[str, dict[Any, float]]
    group: str
    version: int
    at: float


class Asked(NamedTuple):
    """A person to be decided about, as the log writes them."""

    id: str
    context: str
    group: str
    at: float


class Told(NamedTuple):
    """An outcome, as the log writes it."""

    id: str
    at: float
    received: float
    reward: float | None
    label: str | None


def as_decision(row: Any, policy: Policy) -> Decision:
    """Return a row of the log as it was answered."""
    named = {
        group: dict(zip(policy.classes.values(), chances, strict=True))
        for group, chances in zip(policy.groups, json.loads(row["by_group"]), strict=True)
    }
    return Decision(
        row["id"],
        policy.classes[row["action"]],
        row["probability"],
        named,
        row["group"],
        row["version"],
        row["at"],
    )


def answers(policy: Policy, rules: Rules, people: Sequence[Asked]) -> list[dict[str, Any] | str]:
    """Return the row that the log gets for each person, or the reason why there is none."""
    read = policy.read([person.context for person in people], [person.group for person in people])
    said = policy.probabilities(read.features, rules.explore)
    drawn = [rules.draws(person.id) for person in people]
    good = [at for at, reason in enumerate(read.reasons) if not reason]
    own = said[np.arange(len(good)), read.groups]
    taken = draw(own, np.array([drawn[at][0] for at in good]))
    found: list[dict[str, Any] | str] = list(read.reasons)
    chances, every = own[np.arange(len(good)), taken].tolist(), said.tolist()
    for place, at in enumerate(good):
        person, action = people[at], policy.actions[taken[place]]
        found[at] = {
            **person._asdict(),
            "action": action,
            "probability": chances[place],
            "by_group": json.dumps(every[place]),
            "version": policy.version,
            "revealed": rules.shows(action),
            "held_out": drawn[at][1],
        }
    return found


def decide(
    log: Log, policy: Policy, rules: Rules, jobs: Sequence[Sequence[Asked]]
) -> tuple[list[list[dict[str, Any]] | Exception], int]:
    """Answer each job's people, all of a job or none; return the rows, and the newest promotion's number."""
    people = [person for job in jobs for person in job]
    made = answers(policy, rules, people)
    for left in reversed(range(_TRIES)):
        try:
            with log.write() as connection:
                known = _rows(connection, decisions, [person.id for person in people])
                results: list[list[dict[str, Any]] | Exception] = []
                new: dict[str, dict[str, Any]] = {}
                at = 0
                for job in jobs:
                    result = _settle(job, made[at : at + len(job)], {**known, **new} if new else known)
                    at += len(job)
                    if not isinstance(result, Exception):
                        new |= {row["id"]: row for row in result if row["id"] not in known}
                    results.append(result)
                if new:
                    connection.execute(insert(decisions), list(new.values()))
                return results, connection.scalar(select(func.max(promotions.c.number))) or 0
        except IntegrityError:
            if not left:
                raise
    raise AssertionError


def _settle(
    job: Sequence[Asked], made: Sequence[dict[str, Any] | str], known: dict[str, dict[str, Any]]
) -> list[dict[str, Any]] | Exception:
    rows: dict[str, dict[str, Any]] = {}
    for person, answer in zip(job, made, strict=True):
        before = known.get(person.id) or rows.get(person.id)
        if before is not None:
            if (before["context"], before["group"]) != (person.context, person.group):
                return ConflictError(
                    f"Got id {person.id!r} with another context or group than before, but expected the same: "
                    "one id is one decision. Use a new id to decide about the person anew."
                )
            rows[person.id] = before
        elif isinstance(answer, str):
            return ValueError(f"Got id {person.id!r} with {answer}.")
        else:
            rows[person.id] = answer
    return [rows[person.id] for person in job]


def take_outcomes(log: Log, rules: Rules, jobs: Sequence[Sequence[Told]]) -> list[list[str] | Exception]:
    """Write each job's outcomes; return what became of each (see `DecisionLoop.outcome`)."""
    told = [one for job in jobs for one in job]
    for left in reversed(range(_TRIES)):
        try:
            with log.write() as connection:
                ids = [one.id for one in told]
                known = _rows(connection, outcomes, ids)
                made = _rows(connection, decisions, ids)
                new, against = [], []
                status = []
                for one in told:
                    before = known.get(one.id)
                    if before is None:
                        known[one.id] = one._asdict()
                        new.append(known[one.id])
                        status.append(_standing(rules, one, made.get(one.id)))
                    elif (before["reward"], before["label"]) == (one.reward, one.label):
                        status.append("repeated")
                    else:
                        against.append(one)
                        status.append("contradicting")
                if new:
                    connection.execute(insert(outcomes), new)
                _keep_contradictions(connection, against)
            found = iter(status)
            return [[next(found) for _ in job] for job in jobs]
        except IntegrityError:
            if not left:
                raise
    raise AssertionError


def _standing(rules: Rules, told: Told, decision: dict[str, Any] | None) -> str:
    if decision is None:
        return "early"
    if not decision["revealed"]:
        return "unrevealed"
    return "accepted" if rules.in_time(decision["at"], told.at) else "late"


def _keep_contradictions(connection: Connection, against: list[Told]) -> None:
    if not against:
        return
    query = select(contradictions).where(contradictions.c.id.in_({one.id for one in against}))
    kept = {(row.id, row.reward, row.label) for row in connection.execute(query)}
    new = {(one.id, one.reward, one.label): one._asdict() for one in against}
    rows = [row for key, row in new.items() if key not in kept]
    if rows:
        connection.execute(insert(contradictions), rows)


def _rows(connection: Connection, table: Any, ids: list[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for at in range(0, len(ids), _AT_ONCE):
        query = select(table).where(table.c.id.in_(ids[at : at + _AT_ONCE]))
        found |= {row["id"]: dict(row) for row in connection.execute(query).mappings()}
    return found
