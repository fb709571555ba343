"""How far a log is complete while others write to it."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import Connection, func, select, text

from evenhand.decisions.log import Log

_WAIT = 2.0  # seconds to wait for writers; they take milliseconds, unless they hang

# Who has written to a table and may not have committed. The lock is released after the rows are visible.
_WRITING = text(
    "SELECT virtualtransaction FROM pg_locks WHERE relation = CAST(:table AS regclass) "
    "AND mode = 'RowExclusiveLock' AND pid <> pg_backend_pid() "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def settled(log: Log, table: Any, before: int = 0) -> int:
    """Return a number up to which no new row can appear, or `before` if a writer does not finish.

    Rows are numbered when they are written, and visible once they are committed. SQLite has one writer at a
    time. In PostgreSQL, a smaller number may be committed after a greater one. So wait, without blocking
    anybody, for all who were writing when the greatest number was read. Later writers get greater numbers.
    """
    with log.read() as connection:
        upto = connection.scalar(select(func.max(table.c.number))) or 0
        if connection.dialect.name != "postgresql":
            return upto
        at_work, until = _writing(connection, table), time.monotonic() + _WAIT
        while at_work and time.monotonic() < until:
            time.sleep(0.002)
            at_work &= _writing(connection, table)
    return before if at_work else upto


def _writing(connection: Connection, table: Any) -> set[str]:
    return set(connection.scalars(_WRITING, {"table": table.name}))
