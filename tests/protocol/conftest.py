from __future__ import annotations

import pytest

from evenhand.datasets import Dataset
from factories import make_dataset


@pytest.fixture(scope="session")
def dataset() -> Dataset:
    return make_dataset()
