"""Many rows at a time into the database and out of it, by as few calls of its driver as can be."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Dialect, Insert, select

_AT_ONCE = 10_000  # ids in one question to the database
# Rows that SQLite takes in one step, in which other threads go on. Some of it take no more than 999 values.
_TOGETHER = 50


def rows_of(connection: Connection, columns: list[Any], ids: Sequence[str]) -> dict[str, Any]:
    """Return what the log has under some ids, by id."""
    found: dict[str, Any] = {}
    for at in range(0, len(ids), _AT_ONCE):
        query = select(*columns).where(columns[0].in_(ids[at : at + _AT_ONCE]))
        found |= {row.id: row for row in connection.execute(query)}
    return found


def write(connection: Connection, statement: Insert, rows: Sequence[Any]) -> None:
    """Insert rows, which are named tuples that begin with an id; whoever is there already is an error."""
    if connection.dialect.name != "sqlite":
        # Two deciders that write the same ids wait for each other's; in one order, never both at once.
        rows = sorted(rows, key=itemgetter(0))
    one = sql(statement, connection.dialect, rows[0]._fields)
    whole = len(rows) // _TOGETHER * _TOGETHER if connection.dialect.name == "sqlite" else 0
    if whole:
        several = _several(one)
        pieces = (rows[at : at + _TOGETHER] for at in range(0, whole, _TOGETHER))
        connection.exec_driver_sql(several, [tuple(chain.from_iterable(piece)) for piece in pieces])
    if whole < len(rows):
        connection.exec_driver_sql(one, rows[whole:])


@cache
def _several(statement: str) -> str:
    """Return the statement that inserts several rows; the same text each time, which SQLite has prepared."""
    return statement + f", {statement.rpartition('VALUES ')[2]}" * (_TOGETHER - 1)


@cache
def sql(statement: Any, dialect: Dialect, columns: Sequence[str] = ()) -> str:
    """Return what the driver reads: SQLAlchemy looks at each value, which takes longer than to write it."""
    return str(statement.compile(dialect=dialect, column_keys=columns))
