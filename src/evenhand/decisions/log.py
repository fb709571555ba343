"""The decision log: a SQLite file or PostgreSQL. What is committed is on disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, delete, event, insert, make_url, select
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError

from evenhand.decisions.commits import GroupCommit
from evenhand.decisions.errors import LogUnavailableError, WrongLogError
from evenhand.decisions.schema import migrate, settings

PIECE = 20_000  # rows read at a time


class Log:
    """An open decision log.

    Parameters
    ----------
    where : str or Path
        A file for SQLite, or 'postgresql://user@host/name'.
    """

    def __init__(self, where: str | Path) -> None:
        url = make_url(str(where) if "://" in str(where) else f"sqlite:///{where}")
        if url.drivername == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
        if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
            raise ValueError(f"Got log={str(where)!r}, but expected a file: a log in memory is not durable.")
        shown = repr(url.render_as_string() if "://" in str(where) else str(where))  # without a password
        if url.get_backend_name() not in ("sqlite", "postgresql"):
            raise ValueError(f"Got log={shown}, but expected a file, or 'postgresql://user@host/name'.")
        self.engine = _engine(url)
        self._writer = self.engine.execution_options(writes=True)
        self.commits = GroupCommit()
        self.learning = threading.Lock()  # one at a time in this process
        try:
            self._migrate()
        except BaseException as error:
            self.close()
            if isinstance(error, LogUnavailableError):
                reason = _reason(error.__cause__)
                if "not a database" in reason:
                    raise WrongLogError(f"Got log={shown}, which is not a decision log: {reason}.") from error
                raise LogUnavailableError(f"Got log={shown}, which can't be opened: {reason}.") from error
            raise

    def _migrate(self) -> None:
        for attempt in range(3):  # another process may begin the same log at this moment
            try:
                with self.write() as connection:
                    migrate(connection)
                return
            except (IntegrityError, ProgrammingError):
                if attempt == 2:
                    raise

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Begin a transaction. When it ends, all of it is on disk; if it fails, nothing is."""
        with _unavailable(self.engine), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Begin to read the log as it is now, without blocking writers."""
        with _unavailable(self.engine), self.engine.connect() as connection, connection.begin():
            yield connection

    def pieces(self, query: Any, size: int = PIECE) -> Iterator[list[Any]]:
        """Read the rows of a query, `size` at a time."""
        with self.read() as connection:
            found = connection.execution_options(stream_results=True, yield_per=size).execute(query)
            for piece in found.partitions():
                yield list(piece)

    def all(self, query: Any) -> list[Any]:
        """Read the rows of a query."""
        with self.read() as connection:
            return list(connection.execute(query).all())  # at once: row by row takes twice as long

    def scalar(self, query: Any) -> Any:
        """Read the first value of a query; None if there is none."""
        with self.read() as connection:
            return connection.scalar(query)

    def setting(self, name: str) -> str | None:
        """Return a setting of the log."""
        found: str | None = self.scalar(select(settings.c.value).where(settings.c.name == name))
        return found

    def do(self, work: Callable[[Connection], Any]) -> Any:
        """Do work in a transaction, in the thread that writes; return its result once it is on disk."""

        def job() -> Any:
            with self.write() as connection:
                return work(connection)

        return self.commits.do(job)

    def close(self) -> None:
        """Finish pending writes and close the log."""
        self.commits.close()
        self.engine.dispose()


def put_setting(connection: Connection, name: str, value: str) -> None:
    """Write a setting of the log, replacing its old value."""
    connection.execute(delete(settings).where(settings.c.name == name))
    connection.execute(insert(settings).values(name=name, value=value))


def _engine(url: Any) -> Engine:
    if url.get_backend_name() != "sqlite":
        # PostgreSQL answers a commit once it is on disk (synchronous_commit=on, its default).
        return create_engine(
            url, pool_pre_ping=True, paramstyle="format", connect_args={"connect_timeout": 5}
        )
    engine = create_engine(url, connect_args={"timeout": 30, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def opened(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # `began` says how a transaction begins
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def began(connection: Connection) -> None:
        # A writer waits for its turn here. A reader that began to write later could not wait.
        writes = connection.get_execution_options().get("writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


@contextmanager
def _unavailable(engine: Engine) -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        if isinstance(error, DataError):  # such as U+0000, which PostgreSQL can't store
            raise ValueError(f"Got something that the log can't hold: {error.orig}") from error
        if isinstance(error, (IntegrityError, ProgrammingError)):
            raise
        engine.dispose()  # whatever state its connections are in
        raise LogUnavailableError(
            f"The log can't be used now ({_reason(error)}); nothing was written. Ask again with the same id."
        ) from error


def _reason(error: Any) -> str:
    """Return the message of a database as one line."""
    return next(iter(str(error.orig).strip().splitlines()), type(error).__name__)
