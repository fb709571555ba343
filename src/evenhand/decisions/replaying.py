"""Recompute policies and decisions from the log alone, and report what differs or is missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select

from evenhand.decisions.deciding import COLUMNS, answers, ask_again
from evenhand.decisions.keeping import erased
from evenhand.decisions.lessons import learned
from evenhand.decisions.log import Log
from evenhand.decisions.policy import Policy, of_bytes
from evenhand.decisions.rules import Rules
from evenhand.decisions.schema import decisions, policies


@dataclass
class Replay:
    """The result of a replay.

    Attributes
    ----------
    policies, decisions : int
        The number of policies and decisions checked.
    differing : list of str
        The policies and decisions that differ from the log; empty if all is well.
    missing : dict of int
        For each version that can't be recomputed, the number of its lessons that have been erased.
    erased : int
        The number of decisions erased in all.
    """

    policies: int = 0
    decisions: int = 0
    differing: list[str] = field(default_factory=list)
    missing: dict[int, int] = field(default_factory=dict)
    erased: int = 0

    @property
    def same(self) -> bool:
        """Whether everything that can still be recomputed equals the log, bit for bit."""
        return not self.differing


def replay(log: Log, rules: Rules) -> Replay:
    """Recompute every policy from its parent and its lessons, and every decision from its policy."""
    found = Replay(erased=erased(log))
    known: dict[int, Policy] = {}
    reached: dict[int, int] = {}
    for row in log.all(select(policies).order_by(policies.c.version)):
        stored = of_bytes(row.model, row.version)
        found.policies += 1
        if stored.fingerprint() != row.fingerprint:
            found.differing.append(f"policy {row.version}: its model is not the one that was written")
        elif row.parent is not None:
            _again(log, found, row, known[row.parent], (reached[row.parent], row.learned_to))
        known[row.version], reached[row.version] = stored, row.learned_to
    for version, policy in known.items():
        _decide_again(log, found, rules, policy, version)
    return found


def _again(log: Log, found: Replay, row: Any, parent: Policy, sittings: tuple[int, int]) -> None:
    made = learned(log, parent, row.version, sittings, row.piece)
    rows = 0 if made is None else made.rows
    if rows < row.rows:
        found.missing[row.version] = row.rows - rows
    elif made is None or rows > row.rows or made.policy.fingerprint() != row.fingerprint:
        found.differing.append(
            f"policy {row.version}: {rows} lessons make another one of version {row.parent}"
        )


def _decide_again(log: Log, found: Replay, rules: Rules, policy: Policy, version: int) -> None:
    query = select(*COLUMNS).where(decisions.c.version == version).order_by(decisions.c.number)
    for piece in log.pieces(query):
        made = answers(policy, rules, ask_again(piece), [row.floor for row in piece])
        for row, answer in zip(piece, made, strict=True):
            found.decisions += 1
            if row != (answer if row.explored is not None else (*answer[:-1], None)):
                found.differing.append(f"decision {row.id!r} of version {version}")
