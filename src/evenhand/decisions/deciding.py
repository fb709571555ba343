"""Write decisions to the log: each id once, several people in one transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, Dialect, func, insert, select

from evenhand.arrays import Floats
from evenhand.decisions.budget import Budget
from evenhand.decisions.contexts import check_ids, parsed
from evenhand.decisions.errors import ConflictError
from evenhand.decisions.exploration import draw, with_floor
from evenhand.decisions.log import Log
from evenhand.decisions.policy import Policy
from evenhand.decisions.rules import Rules
from evenhand.decisions.schema import decisions, promotions
from evenhand.decisions.writing import rows_of, sql, write, written_once


@dataclass(frozen=True)
class Decision:
    """What was decided about a person.

    Attributes
    ----------
    id : str
        The id of the decision.
    action : object
        The action, drawn with the probabilities of the policy of the person's own group.
    probability : float
        The probability of the action, including exploration.
    by_group : dict
        The probabilities of each group's policy for this person: {group: {action: probability}}.
    group : str
        The person's group.
    version : int
        The version of the policy that decided.
    at : float
        When it was decided, in seconds since 1970.
    """

    id: str
    action: Any
    probability: float
    by_group: dict[str, dict[Any, float]]
    group: str
    version: int
    at: float


class Asked(NamedTuple):
    """People to decide about, in columns."""

    ids: Sequence[str]
    times: Sequence[float]
    groups: Sequence[str]
    contexts: Sequence[str]  # as JSON, as in the log
    values: Sequence[Any]  # the contexts as plain values


class Row(NamedTuple):
    """A decision as the log writes it."""

    id: str
    at: float
    group: str
    context: str
    action: str
    probability: float
    by_group: str
    version: int
    revealed: int  # 0 or 1: SQLite has no booleans, and its driver is slow with other types
    held_out: int
    floor: float
    explored: int | None  # None in logs of an earlier version


COLUMNS = [decisions.c[name] for name in Row._fields]
_DECIDED = insert(decisions).inline()
_NEWEST = select(func.max(promotions.c.number))


def ask(
    policy: Policy, ids: Sequence[Any], contexts: Sequence[Any], groups: Sequence[Any], at: float
) -> Asked:
    """Return new people in columns; raise if an id, a context or a group is not valid."""
    names = check_ids(ids)
    values, texts = policy.take(contexts)
    return Asked(names, [at] * len(names), policy.named(groups, contexts), texts, values)


def ask_again(rows: Sequence[Any]) -> Asked:
    """Return the people of rows of the log, to decide about them again."""
    ids, times, groups, contexts = list(zip(*rows, strict=True))[:4]
    return Asked(ids, times, groups, contexts, parsed(contexts))


def as_decisions(rows: Sequence[Row], policy: Policy) -> list[Decision]:
    """Return rows of the log as decisions."""
    actions, groups, found = list(policy.classes.values()), list(policy.groups), []
    for row, said in zip(rows, parsed([row.by_group for row in rows]), strict=True):
        named = [dict(zip(actions, chances, strict=True)) for chances in said]
        action, by_group = policy.classes[row.action], dict(zip(groups, named, strict=True))
        found.append(Decision(row.id, action, row.probability, by_group, row.group, row.version, row.at))
    return found


def answers(
    policy: Policy, rules: Rules, people: Asked, floors: float | Sequence[float] | Budget
) -> list[Row | str]:
    """Return the row to log for each person, or the reason why there is none.

    `floors` is one floor for everybody, a floor for each person, or the budget that sets them.
    """
    read = policy.features(people.values, people.groups)
    good = [at for at, reason in enumerate(read.reasons) if not reason]
    some = len(good) < len(read.reasons)
    columns = [[column[at] for at in good] for column in people[:4]] if some else people[:4]
    drawn, held_out = rules.draws(people.ids)
    numbers = drawn[good]
    plain = policy.probabilities(read.features)
    own = (np.arange(len(good)), read.groups)
    if isinstance(floors, Budget):
        floor = floors.floors(columns[1:3], read.features, plain[own], numbers)
    else:
        floor = np.broadcast_to(floors, len(read.reasons))[good]
    said = with_floor(plain, floor)
    taken, unexplored = draw(said[own], numbers), draw(with_floor(plain[own], 0.0), numbers)
    actions = [policy.actions[at] for at in taken.tolist()]
    shows = {action: int(rules.shows(action)) for action in policy.actions}
    rows: Iterable[Row] = map(
        Row, *columns, actions, said[(*own, taken)].tolist(), _texts(said), [policy.version] * len(good),
        [shows[action] for action in actions], held_out[good].astype(int).tolist(), floor.tolist(),
        (taken != unexplored).astype(int).tolist(),
    )  # fmt: skip
    if not some:
        return [*rows]
    found: list[Row | str] = list(read.reasons)
    for at, row in zip(good, rows, strict=True):
        found[at] = row
    return found


def _texts(said: Floats) -> list[str]:
    """Return each person's probabilities as JSON; all at once is several times faster."""
    inner = json.dumps(said.tolist())[3:-3].split("]], [[") if len(said) else []
    return [f"[[{one}]]" for one in inner]


def decide(
    log: Log, policy: Policy, rules: Rules, jobs: Sequence[Asked], budget: Budget
) -> tuple[list[list[Row] | Exception], int]:
    """Decide about each job's people, all or none; return their rows and the newest promotion's number."""
    people = jobs[0] if len(jobs) == 1 else Asked(*([*chain(*column)] for column in zip(*jobs, strict=True)))
    plain = [] if budget.limited else answers(policy, rules, people, rules.explore)
    ends = [0, *accumulate(len(job.ids) for job in jobs)]

    def work(connection: Connection, once: bool) -> tuple[list[Any], Any, int]:
        made = plain
        if budget.limited:
            budget.open(connection, people.times)
            made = answers(policy, rules, people, budget if once else rules.explore)
        results: list[Any] = [made[start:end] for start, end in pairwise(ends)]
        new: Any = made
        if not once or any(type(row) is str for row in made):
            known, added = rows_of(connection, COLUMNS, people.ids), dict[str, Row]()
            results = [_settle(people, range(*job), made, known, added) for job in pairwise(ends)]
            new = [*added.values()]
            if budget.limited and new:  # only now is it known who shares the budget
                new = answers(policy, rules, ask_again(new), budget)
                results = _replaced(results, new)
        if new:
            write(connection, _DECIDED, _typed(new, connection.dialect))
        if budget.limited:
            budget.spend(connection, new)
        return results, new, connection.exec_driver_sql(sql(_NEWEST, connection.dialect)).scalar() or 0

    results, new, newest = written_once(log, people.ids, work)
    if budget.limited and new:
        budget.note(new)
    return results, newest


def _typed(rows: Sequence[Row], dialect: Dialect) -> Sequence[Row]:
    """Return rows with the types of a database: PostgreSQL distinguishes numbers from booleans."""
    if dialect.name == "sqlite":
        return rows
    return [
        row._replace(revealed=bool(row.revealed), held_out=bool(row.held_out), explored=bool(row.explored))
        for row in rows
    ]


def _settle(
    people: Asked, job: range, made: Sequence[Row | str], known: Mapping[str, Row], new: dict[str, Row]
) -> list[Row] | Exception:
    """Return the rows of a job and add the new ones to `new`, or return the error if there are none."""
    own: dict[str, Row] = {}
    found = []
    for at in job:
        id, answer = people.ids[at], made[at]
        before = known.get(id) or new.get(id) or own.get(id)
        if before is None:
            if isinstance(answer, str):
                return ValueError(f"Got id {id!r} with {answer}.")
            before = own[id] = answer
        elif (before.context, before.group) != (people.contexts[at], people.groups[at]):
            return ConflictError(
                f"Got id {id!r} with another context or group than before, but expected the same: "
                "one id is one decision. Use a new id to decide about the person anew."
            )
        found.append(before)
    new |= own
    return found


def _replaced(results: Sequence[Any], rows: Sequence[Any]) -> list[Any]:
    """Return the results of jobs, with these rows instead of those with the same ids."""
    by_id = {row.id: row for row in rows}
    return [job if isinstance(job, Exception) else [by_id.get(row.id, row) for row in job] for job in results]
