from __future__ import annotations

import numpy as np
import pytest

from evenhand.metrics.group_rows import group_rows


def test_groups_are_counted():
    own = np.array([0, 0, 0, 1, 1])
    rows = group_rows(["y", "n", "y", "n", "n"], ["y", "y", "n", "n", "n"], own, ["a", "b", "nobody"], "y")
    assert [row["group"] for row in rows] == ["a", "b"]
    assert rows[0]["positive_rate"]["value"] == pytest.approx(2 / 3)
    assert rows[0]["base_rate"]["value"] == pytest.approx(2 / 3)
    assert rows[0]["true_positive_rate"]["value"] == 0.5
    assert rows[1]["true_positive_rate"]["value"] is None
