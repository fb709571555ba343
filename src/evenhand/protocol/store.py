"""The store of results: a SQLite file, written as results come, safe to kill and safe to share."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from evenhand.checks import JobFailedError
from evenhand.protocol.trial import Result

_LAYOUT = 1
_TABLE = """
CREATE TABLE IF NOT EXISTS results (
    key TEXT PRIMARY KEY,
    what TEXT NOT NULL,
    outcome TEXT,
    error TEXT,
    seconds REAL NOT NULL
)"""
# A success is final. A failure may be replaced by the result of a later run.
_WRITE = """
INSERT INTO results (key, what, outcome, error, seconds) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET outcome = excluded.outcome, error = excluded.error, seconds = excluded.seconds
WHERE results.error IS NOT NULL"""
_READ = "SELECT {columns} FROM results WHERE key IN (SELECT value FROM json_each(?))"
_PATIENCE = 60.0  # seconds to wait while another run writes


class StoreError(JobFailedError):
    """The store can't be read or written. The message says why and what to do."""


def key_of(what: Any) -> str:
    """Return the hash of everything that determines a result.

    >>> key_of({"seed": 0, "method": "LR"}) == key_of({"method": "LR", "seed": 0})
    True
    """
    return hashlib.sha256(json.dumps(what, sort_keys=True, allow_nan=False).encode()).hexdigest()


class Store:
    """Results by key. Finished results survive a SIGKILL, and two runs can share a store.

    Parameters
    ----------
    path : path or None
        The file. It is created, with its folders, if it does not exist. None keeps results in memory only.

    Examples
    --------
    >>> store = Store(None)
    >>> store.write("a1", {"method": "LR"}, Result(None, error="out of luck", seconds=0.2))
    >>> store.read(["a1", "b2"])["a1"].error
    'out of luck'
    """

    def __init__(self, path: str | Path | None) -> None:
        self.path = None if path is None else Path(path)
        self._lock = threading.Lock()  # joblib calls from its own threads
        with self._plainly("open"):
            if self.path is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                ":memory:" if self.path is None else self.path,
                timeout=_PATIENCE,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                self._lay_out()
            except BaseException:
                self._connection.close()
                raise

    def _lay_out(self) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")  # even a power cut loses no finished result
        state = self._connection.execute("PRAGMA quick_check").fetchone()[0]
        if state != "ok":
            raise sqlite3.DatabaseError(state)
        layout = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if layout not in (0, _LAYOUT):
            raise StoreError(
                f"{self.path} has layout {layout}, but this evenhand reads layout {_LAYOUT}: "
                "use the evenhand that wrote it, or another store."
            )
        self._connection.execute(_TABLE)
        self._connection.execute(f"PRAGMA user_version = {_LAYOUT}")

    def write(self, key: str, what: Any, result: Result) -> None:
        """Write a result in its own transaction. A success that is already there stays.

        `what` is JSON that tells people who open the file what the result belongs to.
        """
        self._write_together([(key, what, result)])

    @contextmanager
    def writing(self) -> Iterator[Callable[[str, Any, Result], None]]:
        """Give a function like `write` that returns at once. On leaving, everything is written.

        Results that come during a transaction go into the next one together. A disk takes some hundred
        transactions per second, and a GPU trains more models than that.
        """
        waiting: list[tuple[str, Any, Result]] = []
        problem: list[Exception] = []

        def write_what_waits() -> None:
            now = len(waiting)
            try:
                self._write_together(waiting[:now])
                del waiting[:now]
                problem.clear()
            except Exception as error:  # these are tried again with the next results
                problem[:] = [error]

        def write(key: str, what: Any, result: Result) -> None:
            waiting.append((key, what, result))
            writer.submit(write_what_waits)
            if problem:
                raise problem[0]

        with ThreadPoolExecutor(1) as writer:
            yield write
        if problem:
            raise problem[0]

    def _write_together(self, results: Sequence[tuple[str, Any, Result]]) -> None:
        rows = [
            (
                key, json.dumps(what), None if result.error else json.dumps(result.trained), result.error,
                float(result.seconds),
            )
            for key, what, result in results
        ]  # fmt: skip
        if not rows:
            return
        with self._plainly("write"), self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany(_WRITE, rows)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def succeeded(self, key: str) -> bool:
        """Return whether a key has succeeded, in this run or another."""
        return bool(self._execute("read", "SELECT 1 FROM results WHERE key = ? AND error IS NULL", key))

    def read(self, keys: Iterable[str]) -> dict[str, Result]:
        """Return the results of those of the given keys that are here."""
        found = self._found("key, outcome, error, seconds", keys)
        with self._plainly("read"):
            return {
                key: Result(None if trained is None else json.loads(trained), error, seconds)
                for key, trained, error, seconds in found
            }

    def errors(self, keys: Iterable[str]) -> dict[str, str | None]:
        """Return the errors of those of the given keys that are here; None for a success."""
        return dict(self._found("key, error", keys))

    def _found(self, columns: str, keys: Iterable[str]) -> list[Any]:
        return self._execute("read", _READ.format(columns=columns), json.dumps(list(keys)))

    def __len__(self) -> int:
        return int(self._execute("read", "SELECT count(*) FROM results")[0][0])

    def _execute(self, doing: str, statement: str, *values: Any) -> list[Any]:
        with self._plainly(doing), self._lock:
            return self._connection.execute(statement, values).fetchall()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _plainly(self, doing: str) -> Iterator[None]:
        """Turn SQLite's errors into messages that say what to do."""
        try:
            yield
        except (sqlite3.Error, OSError, json.JSONDecodeError) as error:
            text = str(error)
            if "full" in text or getattr(error, "errno", None) == 28:
                advice = "the disk is full. Everything finished so far is kept: free some space, run again"
            elif "locked" in text:
                advice = (
                    f"another run has held it for {_PATIENCE:g} seconds. Wait for it, or end it, run again"
                )
            elif isinstance(error, sqlite3.OperationalError | OSError):
                advice = "expected a file in a folder that can be written"
            else:
                advice = "it is damaged, or not a store of results. Move it away and run again"
            raise StoreError(f"Can't {doing} the results in {self.path}: {advice} ({text}).") from error
