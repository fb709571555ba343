"""How far a log may be read for good, while others write to it."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import Connection, func, select, text

from evenhand.decisions.log import Log

_WAIT = 2.0  # seconds for those who are writing; they take milliseconds, unless they hang

# Who has written to a table and may not have committed. The lock is given back after the rows can be seen.
_WRITING = text(
    "SELECT virtualtransaction FROM pg_locks WHERE relation = CAST(:table AS regclass) "
    "AND mode = 'RowExclusiveLock' AND pid <> pg_backend_pid() "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def settled(log: Log, table: Any, before: int = 0) -> int:
    """Return a number up to which no row will appear any more; `before`, if one who writes does not end.

    Rows are numbered as they are written and seen once they are committed. SQLite has one writer at a time;
    in PostgreSQL a smaller number may be committed after a greater one. So wait, without holding anybody up,
    for all who were writing when the greatest number was read: whoever began later has greater ones.
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
