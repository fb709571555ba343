"""What a log looks like now: decided, awaited and earned, by group and by policy."""

from __future__ import annotations

from typing import Any

import numpy as np
from sqlalchemy import Integer, case, cast, func, select

from evenhand.decisions.deciding import COLUMNS, Decision, Row
from evenhand.decisions.exploration import draw
from evenhand.decisions.keeping import erased
from evenhand.decisions.loop import DecisionLoop
from evenhand.decisions.schema import contradictions, decisions, lessons, outcomes


def status_of(loop: DecisionLoop) -> dict[str, Any]:
    """Return counts of a log as plain data.

    `explored` counts decisions whose action had no more than the least probability.
    """
    log = loop._log
    least = decisions.c.probability <= loop.rules.explore * (1 + 1e-9)
    cells = log.all(
        select(
            decisions.c.version, decisions.c.group, decisions.c.action, func.count(),
            func.sum(cast(decisions.c.revealed, Integer)), func.count(lessons.c.decision),
            func.sum(lessons.c.reward), func.sum(case((least, 1), else_=0)),
        )
        .outerjoin(lessons, lessons.c.decision == decisions.c.number)
        .group_by(decisions.c.version, decisions.c.group, decisions.c.action)
        .order_by(decisions.c.version, decisions.c.group, decisions.c.action)
    )  # fmt: skip
    names = ("version", "group", "action", "decisions", "revealed", "known", "earned", "explored")
    rows = [dict(zip(names, cell, strict=True)) for cell in cells]
    awaited = (
        select(func.count())
        .select_from(decisions)
        .outerjoin(lessons, lessons.c.decision == decisions.c.number)
        .where(lessons.c.decision.is_(None), decisions.c.revealed)
    )
    counts = {
        "decisions": sum(row["decisions"] for row in rows),
        "outcomes": _count(loop, outcomes),
        "contradictions": _count(loop, contradictions),
        "erased": erased(log),
        "awaited": log.all(awaited)[0][0],
        "known": sum(row["known"] for row in rows),
        "earned": sum(row["earned"] or 0.0 for row in rows),
    }
    return {
        "version": loop.version,
        "counts": counts,
        "cells": rows,
        "explore": loop.rules.explore,
        "policies": loop.policies(),
    }


def find(loop: DecisionLoop, id: str) -> tuple[Decision, dict[str, Any]] | None:
    """Return the decision of an id, and what else the log knows of it; None if there is none."""
    query = (
        select(*COLUMNS, lessons.c.reward)
        .outerjoin(lessons, lessons.c.decision == decisions.c.number)
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


def _count(loop: DecisionLoop, table: Any) -> int:
    return int(loop._log.all(select(func.count()).select_from(table))[0][0])
