from __future__ import annotations

import numpy as np
import pytest

from evenhand.metrics import Answers
from evenhand.metrics.group_rows import group_rows


def test_groups_are_counted():
    own = np.array([0, 0, 0, 1, 1])
    y, decided = np.array(["y", "n", "y", "n", "n"]), np.array([1, 1, 0, 0, 0])
    rows = group_rows(Answers(["n", "y"], ["a", "b", "nobody"], own, y=y, pos_label="y", decided=decided))
    assert [row["group"] for row in rows] == ["a", "b"]
    assert rows[0]["positive_rate"]["value"] == pytest.approx(2 / 3)
    assert rows[0]["base_rate"]["value"] == pytest.approx(2 / 3)
    assert rows[0]["true_positive_rate"]["value"] == 0.5
    assert rows[1]["true_positive_rate"]["value"] is None
