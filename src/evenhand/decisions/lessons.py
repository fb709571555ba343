"""Lessons: the reward of each decision, joined from the log, and policies that learn from them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, and_, case, func, insert, literal, or_, select, update
from sqlalchemy.exc import IntegrityError

from evenhand.decisions.log import Log, put_setting
from evenhand.decisions.policy import Policy, of_bytes, to_bytes
from evenhand.decisions.rules import Rules
from evenhand.decisions.schema import decisions, lessons, outcomes, settings
from evenhand.decisions.settling import settled

SITTING = "sitting"  # the setting with the number of the current sitting, under which lessons are written
JOINED = "joined"  # the setting that says how far the joins have come
PIECE = 20_000  # lessons learned at a time
_WRITTEN = 5_000  # decisions or outcomes per transaction: whoever decides waits for at most one


class Joined(NamedTuple):
    """How far the joins have come: in the rows of decisions and outcomes, and in time for overdue ones.

    A decision and its outcome may come in either order. Their lesson is written when the second is there.
    """

    decisions: int = 0
    outcomes: int = 0
    overdue: float | None = None  # outcomes of decisions before this time are no longer awaited


def join(log: Log, rules: Rules, now: float) -> int:
    """Write a lesson for every decision whose reward became known since the last join; return the number.

    The reward of an action that reveals an outcome is known when the outcome comes in time or, if the rules
    say what that earns, when it is overdue. The reward of any other action is known at once. A join that was
    killed, or ran beside another, is repeated. A decision never gets a second lesson.
    """
    before = Joined(*json.loads(log.setting(JOINED) or "[]"))
    waits = rules.overdue is not None and rules.within is not None
    after = Joined(
        settled(log, decisions, before.decisions),
        settled(log, outcomes, before.outcomes),
        now - (rules.within or 0.0) if waits else None,
    )
    known, written = _known(rules, after), 0
    # New decisions are found by their own number, earlier ones by a new outcome.
    others = known.where(decisions.c.number <= before.decisions)
    for query, table, low, high in (
        (known, decisions, before.decisions, after.decisions),
        (known, decisions, *_silent(log, before, after)),
        (others, outcomes, before.outcomes, after.outcomes if before.decisions else 0),
    ):
        for at in range(low, high, _WRITTEN):
            piece = and_(table.c.number > at, table.c.number <= min(at + _WRITTEN, high))
            written += _write(log, query.where(piece))
    if after != before:
        _set_joined(log, before, after)
    return written


def _silent(log: Log, before: Joined, after: Joined) -> tuple[int, int]:
    """Return the range of numbers that contains the decisions overdue since the last join."""
    if after.overdue is None or not before.decisions:
        return 0, 0
    since = [] if before.overdue is None else [decisions.c.at >= before.overdue]
    query = select(func.min(decisions.c.number), func.max(decisions.c.number)).where(
        decisions.c.at < after.overdue, decisions.c.number <= before.decisions, *since
    )
    low, high = log.all(query)[0]
    return (0, 0) if low is None else (low - 1, high)


def _known(rules: Rules, after: Joined) -> Any:
    """Return the query of lessons that are not written yet, without their sitting."""
    in_time: Any = outcomes.c.id.is_not(None)
    if rules.within is not None:
        in_time &= outcomes.c.at <= decisions.c.at + rules.within
    reasons = [~decisions.c.revealed, in_time]
    if after.overdue is not None:
        reasons.append(decisions.c.at < after.overdue)
    told = case(
        (outcomes.c.label.is_(None), outcomes.c.reward),
        *(
            ((decisions.c.action == action) & (outcomes.c.label == label), reward)
            for action, of in (rules.earns or {}).items()
            for label, reward in of.items()
        ),
        else_=0.0 if rules.earns else case((decisions.c.action == outcomes.c.label, 1.0), else_=0.0),
    )
    reward = case((~decisions.c.revealed, rules.unrevealed), (in_time, told), else_=rules.overdue)
    why = case((~decisions.c.revealed, "unrevealed"), (in_time, "outcome"), else_="overdue")
    return (
        select(decisions.c.number, reward, why)
        .outerjoin(outcomes, outcomes.c.id == decisions.c.id)
        .where(or_(*reasons), ~select(lessons).where(lessons.c.decision == decisions.c.number).exists())
    )


def _write(log: Log, query: Any) -> int:
    """Write lessons in the thread that writes decisions, in between them."""

    def work(connection: Connection) -> int:
        found = query.add_columns(literal(hold_sitting(connection)))
        names = ["decision", "reward", "why", "sitting"]
        return connection.execute(insert(lessons).from_select(names, found)).rowcount

    while True:
        try:
            return int(log.do(work))
        except IntegrityError:  # another process joins the same decisions
            continue


def _set_joined(log: Log, before: Joined, after: Joined) -> None:
    """Store how far the join has come, unless another one has done so meanwhile."""

    def work(connection: Connection) -> None:
        hold_sitting(connection)
        kept = connection.scalar(select(settings.c.value).where(settings.c.name == JOINED))
        if Joined(*json.loads(kept or "[]")) == before:
            put_setting(connection, JOINED, json.dumps(after))

    log.do(work)


def hold_sitting(connection: Connection) -> int:
    """Return the current sitting, locked: nobody else writes lessons until the transaction ends."""
    query = select(settings.c.value).where(settings.c.name == SITTING).with_for_update()
    return int(connection.execute(query).scalar_one())


def close_sitting(log: Log) -> int:
    """End the current sitting, so that it gets no more lessons, and return its number."""

    def close(connection: Connection) -> int:
        sitting = hold_sitting(connection)
        connection.execute(update(settings).where(settings.c.name == SITTING).values(value=str(sitting + 1)))
        return sitting

    return int(log.do(close))


class Made(NamedTuple):
    """A policy that has learned from lessons, with its content for the log."""

    policy: Policy
    content: bytes
    rows: int


def learned(
    log: Log, parent: Policy, version: int, sittings: tuple[int, int], piece: int = PIECE
) -> Made | None:
    """Return the policy that a parent becomes by learning; None if there are no lessons.

    It learns from the lessons after the first of the two sittings, up to the second: each once, in the order
    of sittings and decisions, `piece` at a time. Held-out lessons are left out.
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
    rows = _in_order(log, sittings, piece)
    while found := list(islice(rows, piece)):
        _, contexts, groups, actions, probabilities, rewards = zip(*found, strict=True)
        read = policy.read(contexts, groups)
        assert not any(read.reasons), "whoever was decided about can be read again"
        place = {action: at for at, action in enumerate(policy.actions)}
        taken = np.array([place[action] for action in actions])
        yield read.features, taken, np.array(rewards), np.array(probabilities), read.groups


def _in_order(log: Log, sittings: tuple[int, int], size: int) -> Iterator[Any]:
    """Yield lessons to learn from, in short reads of the log: a long read would let its journal grow."""
    query = (
        select(
            lessons.c.decision, decisions.c.context, decisions.c.group, decisions.c.action,
            decisions.c.probability, lessons.c.reward,
        )
        .join(decisions, lessons.c.decision == decisions.c.number)
        .where(~decisions.c.held_out)
        .order_by(lessons.c.decision)
        .limit(size)
    )  # fmt: skip
    for sitting in range(sittings[0] + 1, sittings[1] + 1):
        reached = 0
        while found := log.all(query.where(lessons.c.sitting == sitting, lessons.c.decision > reached)):
            yield from found
            reached = found[-1].decision
