"""The experiments are scripts: they import each other from their own folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "experiments"


@pytest.fixture(scope="session", autouse=True)
def _folder():
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))
