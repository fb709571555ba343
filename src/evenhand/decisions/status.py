"""What a log looks like now: decided, awaited and earned, by group and by policy."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Integer, cast, func, select

from evenhand.decisions.deciding import Decision
from evenhand.decisions.loop import DecisionLoop
from evenhand.decisions.schema import contradictions, decisions, erasures, lessons, outcomes


def status_of(loop: DecisionLoop) -> dict[str, Any]:
    """Return counts of a log as plain data."""
    log = loop._log
    cells = log.all(
        select(
            decisions.c.version, decisions.c.group, decisions.c.action, func.count(),
            func.sum(cast(decisions.c.revealed, Integer)), func.count(lessons.c.decision),
            func.sum(lessons.c.reward),
        )
        .outerjoin(lessons, lessons.c.decision == decisions.c.number)
        .group_by(decisions.c.version, decisions.c.group, decisions.c.action)
        .order_by(decisions.c.version, decisions.c.group, decisions.c.action)
    )  # fmt: skip
    names = ("version", "group", "action", "decisions", "revealed", "known", "earned")
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
        "erased": log.all(select(func.coalesce(func.sum(erasures.c.decisions), 0)))[0][0],
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


def find(loop: DecisionLoop, id: str) -> Decision | None:
    """Return the decision of an id; None if there is none."""
    with loop._log.read() as connection:
        rows = connection.execute(select(decisions).where(decisions.c.id == id)).mappings().all()
    return loop.answered(list(rows))[0] if rows else None


def _count(loop: DecisionLoop, table: Any) -> int:
    return int(loop._log.all(select(func.count()).select_from(table))[0][0])
