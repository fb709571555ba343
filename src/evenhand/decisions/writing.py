"""Read and write many rows with as few calls of the database driver as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Dialect, Insert, select
from sqlalchemy.exc import IntegrityError

from evenhand.decisions.log import Log

_AT_ONCE = 10_000  # ids in one query
# Rows in one SQLite statement, during which other threads run. Some builds take no more than 999 values.
_TOGETHER = 50
_TRIES = 5  # another process may write the same id between our read and our write


def rows_of(connection: Connection, columns: list[Any], ids: Sequence[str]) -> dict[str, Any]:
    """Return the rows of some ids, by id."""
    found: dict[str, Any] = {}
    for at in range(0, len(ids), _AT_ONCE):
        query = select(*columns).where(columns[0].in_(ids[at : at + _AT_ONCE]))
        found |= {row.id: row for row in connection.execute(query)}
    return found


def write(connection: Connection, statement: Insert, rows: Sequence[Any]) -> None:
    """Insert rows, which are named tuples that begin with an id. An id that exists is an error."""
    if connection.dialect.name != "sqlite":
        # Two processes that write the same ids wait for each other. In the same order, they can't deadlock.
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
    """Return a statement that inserts several rows. Its text never changes, so SQLite prepares it once."""
    return statement + f", {statement.rpartition('VALUES ')[2]}" * (_TOGETHER - 1)


@cache
def sql(statement: Any, dialect: Dialect, columns: Sequence[str] = ()) -> str:
    """Return a statement as text for the driver: the checks of SQLAlchemy take too long."""
    return str(statement.compile(dialect=dialect, column_keys=columns))


def written_once(log: Log, ids: Sequence[str], work: Callable[[Connection, bool], Any]) -> Any:
    """Do work in a transaction and return its result; its second argument says that all ids are new.

    Most ids are new. If one is known, the database refuses the write, and the work is done again without
    this assumption.
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
