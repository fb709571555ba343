"""The policies of a log: the one in force, candidates, promotions and rollbacks."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, Self

from sqlalchemy import Connection, func, insert, select
from sqlalchemy.exc import IntegrityError

from evenhand.decisions.errors import ConflictError, WrongLogError
from evenhand.decisions.lessons import PIECE, SITTING, close_sitting, learned
from evenhand.decisions.log import Log
from evenhand.decisions.policy import Policy, of_bytes, to_bytes
from evenhand.decisions.rules import Rules
from evenhand.decisions.schema import ABOUT, policies, promotions, settings

RULES = "rules"
ROLLED_BACK = "rolled back"
_NEWEST = select(func.max(policies.c.version))
_LAST_ROLLBACK = (
    select(promotions.c.evidence)
    .where(promotions.c.why == ROLLED_BACK)
    .order_by(promotions.c.number.desc())
    .limit(1)
)


class Learned(NamedTuple):
    """A new candidate: its version, its parent's version, and the number of lessons it learned on top."""

    version: int
    parent: int
    rows: int


class Versions:
    """The policies of an open log. `policy` is in force since promotion number `promotion`."""

    policy: Policy
    promotion: int

    def __init__(self, log: Log, rules: Rules) -> None:
        self._log, self.rules = log, rules
        self.reload()

    @classmethod
    def open(cls, log: Log, model: Any, told: Callable[[list[str]], Rules], now: float) -> Self:
        """Begin a log with a model, or open one that must have been begun with the same model and rules."""
        if log.setting(RULES) is None:
            if model is None:
                raise ValueError("Got no model, and a log that is empty; expected a model to begin it with.")
            with suppress(IntegrityError):  # another process has just begun it: it is compared below
                _begin(log, model, told, now)
        rules = Rules.of(log.setting(RULES) or "")
        found = cls(log, rules)
        given = found.policy if model is None else Policy(model)
        rules.check_same(told(given.actions), begins=model is not None)
        if model is not None:
            first = log.scalar(select(policies.c.fingerprint).where(policies.c.version == 1))
            if of_bytes(to_bytes(model), 1).fingerprint() != first:
                raise WrongLogError(
                    "Got a model that is not the one the log was begun with. To continue with the log's own, "
                    "give no model; to begin with this one, name a new log."
                )
        return found

    def refresh(self) -> None:
        """Load the policy in force if another process has changed it, in the thread that decides."""
        if self._log.scalar(select(func.max(promotions.c.number))) != self.promotion:
            self._log.commits.do(self.reload)

    def reload(self) -> None:
        """Load the policy in force from the log."""
        number, version = self._log.all(
            select(promotions.c.number, promotions.c.version).order_by(promotions.c.number.desc()).limit(1)
        )[0]
        if not hasattr(self, "policy") or self.policy.version != version:
            self.policy = self._stored(version)
        self.promotion = number

    def _stored(self, version: int) -> Policy:
        content = self._log.scalar(select(policies.c.model).where(policies.c.version == version))
        return of_bytes(content, version)

    def learn(self, now: float) -> Learned | None:
        """Write a policy that has learned from all lessons since its parent; None if there are none."""
        newest, abandoned = self._newest(), _abandoned(self._log.scalar)
        parent = self.policy.version if newest <= abandoned else newest
        reached = self._log.scalar(select(policies.c.learned_to).where(policies.c.version == parent))
        upto = close_sitting(self._log)
        made = learned(self._log, self._stored(parent), newest + 1, (reached, upto))
        if made is None:
            return None
        row = {
            "parent": parent,
            "at": now,
            "learned_to": upto,
            "rows": made.rows,
            "piece": PIECE,
            "fingerprint": made.policy.fingerprint(),
            "model": made.content,
        }

        def write(connection: Connection) -> int:
            if _abandoned(connection.scalar) != abandoned:
                raise ConflictError(
                    "Got a rollback while a candidate was learning, so it was dropped: learn again."
                )
            version = int(connection.scalar(_NEWEST)) + 1
            connection.execute(insert(policies).values(version=version, **row))
            return version

        return Learned(self._log.do(write), parent, made.rows)

    def candidate(self) -> Policy | None:
        """Return the newest policy, unless it was in force or abandoned by a rollback."""
        newest = self._newest()
        used = self._log.all(select(promotions.c.number).where(promotions.c.version == newest))
        return None if used or newest <= _abandoned(self._log.scalar) else self._stored(newest)

    def put_in_force(
        self, version: int, why: str, note: str, evidence: dict[str, Any], *, after: int, now: float
    ) -> None:
        """Let a version decide from now on, and record why.

        `after` is the number of the promotion that the choice was based on: it must still be the last one.
        """
        told = {"at": now, "version": version, "why": why, "note": note, "evidence": json.dumps(evidence)}

        def write() -> None:
            try:
                with self._log.write() as connection:
                    connection.execute(insert(promotions).values(number=after + 1, **told))
            except IntegrityError:
                raise ConflictError(
                    f"Got version {version} to put in force, but the policy in force has just been changed "
                    "by somebody else: look again."
                ) from None
            finally:
                self.reload()

        self._log.commits.do(write)

    def roll_back(self, note: str, now: float) -> int:
        """Put the policy back in force that decided before the present one; return its version."""
        steps = self._log.all(select(promotions).order_by(promotions.c.number))
        before: list[int] = []
        for step in steps:
            if step.why == ROLLED_BACK:
                before.pop()
            else:
                before.append(step.version)
        if len(before) < 2:
            raise ConflictError(
                f"Got a rollback, but version {before[-1]} is what the log began with: none is before it."
            )
        told = {"newest": self._newest()}
        self.put_in_force(before[-2], ROLLED_BACK, note, told, after=steps[-1].number, now=now)
        return before[-2]

    def listed(self) -> list[dict[str, Any]]:
        """Return every policy with its promotions."""
        put = self._log.all(select(promotions).order_by(promotions.c.number))
        return [
            {
                **row._asdict(),
                "in_force": row.version == put[-1].version,
                "promotions": [
                    {
                        "number": step.number,
                        "at": step.at,
                        "why": step.why,
                        "note": step.note,
                        "evidence": json.loads(step.evidence),
                    }
                    for step in put
                    if step.version == row.version
                ],
            }
            for row in self._log.all(select(*ABOUT).order_by(policies.c.version))
        ]

    def _newest(self) -> int:
        return int(self._log.scalar(_NEWEST))


def _abandoned(scalar: Callable[[Any], Any]) -> int:
    """Return the newest version at the time of the last rollback; 0 if there was no rollback."""
    last = scalar(_LAST_ROLLBACK)
    return int(json.loads(last)["newest"]) if last else 0


def _begin(log: Log, model: Any, told: Callable[[list[str]], Rules], now: float) -> None:
    content = to_bytes(Policy(model).model)  # `Policy` refuses what is not a model
    first = of_bytes(content, 1)
    with log.write() as connection:
        values = {RULES: told(first.actions).as_text(), SITTING: "1"}
        connection.execute(
            insert(settings), [{"name": name, "value": value} for name, value in values.items()]
        )
        connection.execute(
            insert(policies).values(
                version=1, parent=None, at=now, learned_to=0, rows=0, piece=PIECE,
                fingerprint=first.fingerprint(), model=content,
            )
        )  # fmt: skip
        connection.execute(insert(promotions).values(at=now, version=1, why="start", note="", evidence="{}"))
