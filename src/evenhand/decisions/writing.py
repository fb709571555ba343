"""Many rows at a time into the database and out of it, by as few calls of its driver as can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Dialect, Insert, select
from sqlalchemy.exc import IntegrityError

from evenhand.decisions.log import Log

_AT_ONCE = 10_000  # ids in one question to the database
# Rows that SQLite takes in one step, in which other threads go on. Some of it take no more than 999 values.
_TOGETHER = 50
_TRIES = 5  # another decider may write the same id between our look and our write


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


def written_once(log: Log, ids: Sequence[str], work: Callable[[Connection, bool], Any]) -> Any:
    """Return what work in a transaction returns; it is told whether to take all ids for new, once each.

    Most are. Where one is known, the database refuses the write, and the work is done again.
    """
    once = len({*ids}) == len(ids)
    for left in reversed(range(_TRIES)):
        try:
            with log.write() as connection:
                return work(connection, once)
        except IntegrityError:
            if not left:
                raise
            once = False
    raise AssertionError
