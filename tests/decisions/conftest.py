"""A model, people, logs in SQLite and in a private PostgreSQL."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from evenhand import CooperativeBandits, DecisionLoop
from evenhand.decisions.serve.app import make_app
from evenhand.report.live import live_page


@pytest.fixture(scope="session")
def model() -> CooperativeBandits:
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(400, 3)), rng.choice(["f", "m"], 400)
    y = np.where(X[:, 0] + 0.3 * (s == "m") > 0.5, "grant", "refuse")
    return CooperativeBandits(epochs=5, random_state=0).fit(X, y, sensitive_features=s)


@pytest.fixture(scope="session")
def crowd() -> list[tuple[str, list[float], str]]:
    rng = np.random.default_rng(1)
    X, s = rng.normal(size=(4000, 3)).round(4), rng.choice(["f", "m"], 4000)
    return [(f"person {at}", X[at].tolist(), str(s[at])) for at in range(len(X))]


class Server:
    """A private PostgreSQL on a socket of its own."""

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

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)  # at once, whoever is connected
        self.process.wait(60)

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://postgres@/{database}?host={self.folder}"


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    if not shutil.which("postgres") or not shutil.which("initdb"):
        pytest.skip("there is no postgres on this machine")
    user = None
    if os.geteuid() == 0:  # which PostgreSQL refuses
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam("postgres").pw_name
        if user is None:
            pytest.skip("PostgreSQL does not run as root, and there is no user 'postgres'")
    folder = Path(tempfile.mkdtemp(prefix="evenhand-pg-"))
    try:
        if user:
            shutil.chown(folder, user)
        running = Server(folder, user)
        yield running
        running.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def database(server: Server) -> str:
    """Return a PostgreSQL log that does not exist yet."""
    name = f"log_{uuid.uuid4().hex}"
    engine = create_engine(server.url("postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.url(name).replace("+psycopg", "")


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a log that does not exist yet, in each kind of database."""
    if request.param == "sqlite":
        return str(tmp_path / "log.db")
    return str(request.getfixturevalue("database"))


@pytest.fixture
def begin(model: CooperativeBandits) -> Iterator[Callable[..., DecisionLoop]]:
    """Open loops that are closed at the end."""
    with contextlib.ExitStack() as open_ones:

        def begin(log: object, *, model: object = model, **options: object) -> DecisionLoop:
            return open_ones.enter_context(DecisionLoop(model, log, **{"seed": "0" * 32, **options}))

        yield begin


@pytest.fixture
def client(model: CooperativeBandits, tmp_path: Path) -> Iterator[TestClient]:
    """Return what asks a service in this process; its loop is `client.loop`."""
    loop = DecisionLoop(model, tmp_path / "log.db", seed="0" * 32, held_out=0.0)
    with TestClient(make_app(loop, page=live_page), base_url="http://127.0.0.1") as client:
        client.loop = loop
        yield client
