from __future__ import annotations

import numpy as np
import pandas as pd

from evenhand.metrics import Answers
from evenhand.report.persons import persons


def test_persons_come_with_those_who_flip_first_then_the_largest_gap():
    said = np.array([[[0.9, 0.1], [0.6, 0.4]], [[0.45, 0.55], [0.55, 0.45]], [[0.5, 0.5], [0.5, 0.5]]])
    answers = Answers(["no", "yes"], ["f", "m"], np.array([0, 1, 0]), said, pos_label="yes")
    found = persons(pd.DataFrame({"age": [1.5, np.nan, 3.0]}), answers, limit=2, numbers=[10, 20, 30])
    assert [row["person"] for row in found["rows"]] == [21, 11]
    assert found["rows"][0]["decisions"] == ["yes", "no"]
    assert found["rows"][0]["flips"]
    assert found["rows"][0]["features"] == [None]
    assert (found["people"], found["flips"]) == (3, 1)
