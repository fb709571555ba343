from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.metrics.counts import count

rows = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["a", "b", "d"]), st.sampled_from([3, 1, 2])),
    min_size=1,
    max_size=30,
)


@given(rows)
def test_equals_a_loop_over_people(people: list[tuple[str, str, int]]) -> None:
    truth, decisions, groups = (list(column) for column in zip(*people, strict=True))
    counts = count(truth, decisions, groups)
    assert counts.groups == sorted(set(groups))
    assert counts.labels == sorted(set(truth) | set(decisions))
    table = np.zeros_like(counts.table)
    for label, decision, group in people:
        table[counts.groups.index(group), counts.labels.index(label), counts.labels.index(decision)] += 1
    np.testing.assert_array_equal(counts.table, table)


def test_the_positive_label() -> None:
    assert count([0, 1], [0, 0]).positive == 1
    assert count([0, 1], [0, 0], pos_label=0).positive == 0
    assert count(["x", "y", "z"], ["x", "y", "y"]).positive is None
    assert count(["x", "y", "z"], ["x", "y", "y"], pos_label="z").positive == 2


def test_one_label_is_the_negative_one_unless_it_is_one() -> None:
    nobody = count(["no", "no"], ["no", "no"])
    assert nobody.table.shape == (1, 2, 2)
    assert nobody.table[:, :, nobody.positive].sum() == 0
    everybody = count([True, True], [1, 1])
    assert everybody.table[:, :, everybody.positive].sum() == 2
    named = count(["no", "no"], ["no", "no"], pos_label="yes")
    assert named.table[:, :, named.positive].sum() == 0


def test_labels_of_equal_value_are_one_label() -> None:
    assert count(np.array([True, False]), np.array([1.0, 0.0])).labels == [False, True]
    assert count(pd.Series([0, 1], dtype="category"), [[0], [1]]).table.sum() == 2


def test_bad_input_says_what_came_and_what_was_wanted() -> None:
    for truth, decisions, message in [
        ([0, 1, 1], [0, 1], "Got 3 labels in y_true and 2 in y_pred"),
        ([], [], "y_true of shape"),
        ([0.0, np.nan], [0, 1], "1 missing labels in y_true"),
        ([0, 1], [None, 1], "1 missing labels in y_pred"),
        (["0", "1"], [0, 1], "labels like '0' in y_true and 0 in y_pred"),
        ([0, 1], [[0.5, 0.5], [0.1, 0.9]], r"y_pred of shape \(2, 2\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            count(truth, decisions)
    with pytest.raises(
        ValueError, match=r"pos_label='Yes', but the labels are 'no', 'yes'\. Did you mean 'yes'"
    ):
        count(["no", "yes"], ["no", "no"], pos_label="Yes")
    with pytest.raises(ValueError, match="decisions, not scores"):
        count(np.zeros(2000), np.linspace(0, 1, 2000))
    with pytest.raises(ValueError, match="sensitive_features for 3 people"):
        count([0, 1], [0, 1], ["f", "m", "m"])
