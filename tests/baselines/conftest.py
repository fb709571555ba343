from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="package")
def planted():
    """People whose group leaks through one feature and sways the label; another feature is honest merit."""
    rng = np.random.default_rng(7)
    group = rng.integers(0, 2, 2000)
    merit = rng.normal(size=2000)
    leak = 2.0 * (2 * group - 1) + rng.normal(size=2000)
    X = np.column_stack([merit, leak / leak.std(), rng.normal(size=2000)])
    y = (merit + 0.8 * (2 * group - 1) + 0.3 * rng.normal(size=2000) > 0).astype(int)
    return X, np.where(y == 1, "yes", "no"), np.where(group == 1, "m", "f")
