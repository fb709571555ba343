from __future__ import annotations

import numpy as np
import pytest

from evenhand import metrics
from evenhand.metrics.answers import Answers
from evenhand.metrics.group_table import group_rows, share
from evenhand.metrics.measures import SHOWN, measure, value_of


def _said(n=200, groups=3, actions=2, seed=0):
    rng = np.random.default_rng(seed)
    said = rng.dirichlet(np.ones(actions), size=(n, groups))
    return said, rng.integers(groups, size=n), np.array([f"l{i}" for i in range(actions)]), rng


def _answers(y, said, own, labels):
    groups = list(range(said.shape[1]))
    return Answers(labels.tolist(), groups, own, said, y=np.asarray(y), pos_label="l1")


@pytest.mark.parametrize("actions", [2, 3])
def test_every_value_is_that_of_the_metrics(actions):
    said, own, labels, rng = _said(actions=actions)
    y = labels[rng.integers(actions, size=len(own))]
    found = measure(_answers(y, said, own, labels))
    mine = said[np.arange(len(own)), own]
    decided = labels[mine.argmax(1)]
    common = {"sensitive_features": own, "pos_label": "l1"}
    assert value_of(found, "accuracy") == pytest.approx(np.mean(decided == y))
    assert value_of(found, "discrimination") == pytest.approx(metrics.discrimination(y, decided, **common))
    assert value_of(found, "delta") == pytest.approx(
        value_of(found, "accuracy") - value_of(found, "discrimination")
    )
    assert value_of(found, "flip_rate") == metrics.flip_rate(said.argmax(2), own)
    assert value_of(found, "positive_rate") == np.mean(decided == "l1")
    assert value_of(found, "auc") == pytest.approx(
        metrics.auc(y, mine, pos_label="l1", labels=labels.tolist())
    )
    assert value_of(found, "gap") == pytest.approx(metrics.metric_free_gap(said, own).mean)
    assert list(found) == [name for name in SHOWN if name in found]
    for name in ("accuracy", "flip_rate", "gap"):
        assert found[name]["low"] <= found[name]["value"] <= found[name]["high"]


def test_without_intervals_the_values_are_the_same():
    said, own, labels, rng = _said()
    y = labels[rng.integers(2, size=len(own))]
    full, bare = (measure(_answers(y, said, own, labels), intervals=i) for i in (True, False))
    assert {name: found["value"] for name, found in full.items()} == pytest.approx(
        {name: found["value"] for name, found in bare.items()}
    )
    assert {found["low"] for found in bare.values()} == {None}


def test_nobody_flipping_among_few_is_not_certain_but_one_policy_for_all_is():
    said = np.tile([[0.9, 0.1], [0.8, 0.2]], (20, 1, 1))
    own, labels = np.arange(20) % 2, np.array(["l0", "l1"])
    y = labels[own]
    assert measure(_answers(y, said, own, labels))["flip_rate"]["high"] > 0.1
    alike = np.repeat(said[:, :1], 2, axis=1)
    assert measure(_answers(y, alike, own, labels))["flip_rate"]["high"] == 0
    assert share(np.ones(50, dtype=bool))["low"] < 0.95
    assert share(np.zeros(0, dtype=bool)) == {"value": None, "low": None, "high": None}


def test_one_label_has_no_auc():
    said, own, labels, _ = _said()
    assert "auc" not in measure(_answers(["l0"] * len(own), said, own, labels))


def test_groups_are_counted():
    own = np.array([0, 0, 0, 1, 1])
    y, decided = np.array(["y", "n", "y", "n", "n"]), np.array([1, 1, 0, 0, 0])
    rows = group_rows(Answers(["n", "y"], ["a", "b", "nobody"], own, y=y, pos_label="y", decided=decided))
    assert [row["group"] for row in rows] == ["a", "b"]
    assert rows[0]["positive_rate"]["value"] == pytest.approx(2 / 3)
    assert rows[0]["base_rate"]["value"] == pytest.approx(2 / 3)
    assert rows[0]["true_positive_rate"]["value"] == 0.5
    assert rows[1]["true_positive_rate"]["value"] is None
