"""Measures, groups and people of a report where of more than two labels none is the positive one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from evenhand.metrics import Answers
from evenhand.metrics.group_table import group_rows
from evenhand.metrics.measures import measure
from evenhand.report.persons import persons

LABELS = np.array(["A", "B", "C"])


@pytest.fixture
def said():
    """What two policies say of 90 people, and their groups and labels."""
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(3), (90, 2)), rng.integers(0, 2, 90), rng.choice(LABELS, 90)


@pytest.mark.parametrize("intervals", [True, False])
def test_without_a_positive_label_differences_are_the_largest_over_labels(said, intervals):
    policies, own, y = said
    answers = Answers(LABELS.tolist(), ["f", "m"], own, policies, y=y)
    found = measure(answers, intervals=intervals)
    each = [measure(replace(answers, pos_label=label), intervals=intervals) for label in LABELS]
    largest = max(one["discrimination"]["value"] for one in each)
    assert found["discrimination"]["value"] == pytest.approx(largest)
    assert found["delta"]["value"] == pytest.approx(found["accuracy"]["value"] - largest)
    assert (found["discrimination"]["low"] is None) != intervals
    assert list(found) == [name for name in each[0] if name != "positive_rate"]
    for name in ("accuracy", "flip_rate", "gap", "balanced_accuracy"):
        assert all(one[name] == found[name] for one in each)
    # Each label against the rest; without a positive one, their mean.
    assert found["auc"]["value"] == pytest.approx(np.mean([one["auc"]["value"] for one in each]))


def test_groups_and_people_show_nothing_of_a_label_that_nobody_named(said):
    policies, own, y = said
    unnamed, named = (Answers(LABELS.tolist(), ["f", "m"], own, policies, y, label) for label in (None, "A"))
    rows = group_rows(unnamed)
    assert [set(row) for row in rows] == [{"group", "people", "accuracy", "flip_rate", "decided"}] * 2
    here = policies[own == 0, 0].argmax(1)
    assert rows[0]["decided"]["B"]["value"] == (here == 1).mean()
    assert "positive_rate" in group_rows(named)[0]
    contexts = pd.DataFrame({"x": np.arange(90)})
    hidden, shown = (persons(contexts, answers)["rows"] for answers in (unnamed, named))
    assert all(row["probabilities"] == [None, None] for row in hidden)
    assert [row["decisions"] for row in hidden] == [row["decisions"] for row in shown]
    assert None not in shown[0]["probabilities"]
