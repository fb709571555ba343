"""A model, people, logs in SQLite and in a private PostgreSQL."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from private_postgresql import NoPostgreSQLError, PostgreSQL, private_postgresql

from evenhand import CooperativeBandits, DecisionLoop
from evenhand.decisions.serve.app import make_app
from evenhand.report.api import api_page
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


@pytest.fixture(scope="session")
def server() -> Iterator[PostgreSQL]:
    try:
        with private_postgresql() as running:
            yield running
    except NoPostgreSQLError as error:
        pytest.skip(str(error))


@pytest.fixture
def database(server: PostgreSQL) -> str:
    """Return a PostgreSQL log that does not exist yet."""
    return server.new_database()


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
    with TestClient(make_app(loop, page=live_page, describe=api_page), base_url="http://127.0.0.1") as client:
        client.loop = loop
        yield client
