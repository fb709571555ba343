"""A PostgreSQL of one's own, on a socket in a folder that is deleted: for tests and experiments."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError


class NoPostgreSQLError(RuntimeError):
    """There is none on this machine, or none that may run."""


class PostgreSQL:
    """A private server, which can be stopped and started."""

    def __init__(self, folder: Path, user: str | None) -> None:
        self.folder, self._as = folder, {"user": user, "cwd": folder}
        make = ["initdb", "-D", folder / "data", "-A", "trust", "-U", "postgres", "--no-sync"]
        subprocess.run(make, check=True, capture_output=True, **self._as)
        self.start()

    def start(self) -> None:
        command = ["postgres", "-D", self.folder / "data", "-k", self.folder, "-c", "listen_addresses="]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL, **self._as)
        engine = create_engine(self.url("postgres"))
        for _ in range(300):
            try:
                with engine.connect():
                    break
            except OperationalError:
                time.sleep(0.1)
        else:
            raise RuntimeError("PostgreSQL does not answer")
        engine.dispose()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it at once, whoever is connected; by SIGQUIT as if it had crashed."""
        self.process.send_signal(how)
        self.process.wait(60)

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://postgres@/{database}?host={self.folder}"

    def new_database(self) -> str:
        """Return a log that does not exist yet."""
        name = f"log_{uuid.uuid4().hex}"
        engine = create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        engine.dispose()
        return self.url(name).replace("+psycopg", "")


@contextmanager
def private_postgresql() -> Iterator[PostgreSQL]:
    """Start a server and delete all of it in the end."""
    if not shutil.which("postgres") or not shutil.which("initdb"):
        raise NoPostgreSQLError("there is no postgres on this machine")
    user = None
    if os.geteuid() == 0:  # which PostgreSQL refuses
        try:
            user = pwd.getpwnam("postgres").pw_name
        except KeyError:
            raise NoPostgreSQLError(
                "PostgreSQL does not run as root, and there is no user 'postgres'"
            ) from None
    folder = Path(tempfile.mkdtemp(prefix="evenhand-pg-"))
    try:
        if user:
            shutil.chown(folder, user)
        running = PostgreSQL(folder, user)
        yield running
        running.stop(signal.SIGQUIT)  # at once: to write down what is deleted now took a minute
    finally:
        shutil.rmtree(folder, ignore_errors=True)
