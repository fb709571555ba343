from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from evenhand.auditing.predictions import read_predictions

SEX = ["f", "m", "m"]
LABELS = ["no", "yes", "yes"]


def test_decisions_are_taken_as_they_are() -> None:
    assert read_predictions(["yes", "no", "no"], LABELS, sensitive_features=SEX).decisions.tolist() == [
        "yes",
        "no",
        "no",
    ]
    ones = read_predictions([1.0, 0.0, 1.0], [0, 1, 1], sensitive_features=SEX)
    assert ones.scores is None


def test_scores_are_decided_at_the_threshold() -> None:
    said = read_predictions([0.2, 0.5, 0.7], LABELS, sensitive_features=SEX)
    assert said.decisions.tolist() == ["no", "yes", "yes"]
    np.testing.assert_allclose(said.scores, [[0.8, 0.2], [0.5, 0.5], [0.3, 0.7]])
    other = read_predictions([0.2, 0.5, 0.7], LABELS, sensitive_features=SEX, pos_label="no", threshold=0.6)
    assert other.decisions.tolist() == ["yes", "yes", "no"]
    np.testing.assert_allclose(other.scores, [[0.2, 0.8], [0.5, 0.5], [0.7, 0.3]])
    # With a threshold, numbers that could be labels are scores.
    zero_one = read_predictions([0, 1, 1], [0, 1, 1], sensitive_features=SEX, threshold=0.5)
    assert zero_one.scores is not None


@pytest.mark.parametrize("said", [[1, 0, 0], [1.0, 0.0, 1.0], [[1], [0], [1]]])
def test_0_and_1_beside_other_labels_need_a_threshold(said: Any) -> None:
    with pytest.raises(ValueError, match="Got predictions of 0 and 1 only, but the labels are 'bad', 'good'"):
        read_predictions(said, ["bad", "good", "good"], sensitive_features=SEX)
    with pytest.raises(ValueError, match="the positive label, 'bad', give the threshold 0.5"):
        read_predictions(said, ["bad", "good", "good"], sensitive_features=SEX, pos_label="bad")
    read = read_predictions(
        said, ["bad", "good", "good"], sensitive_features=SEX, pos_label="bad", threshold=0.5
    )
    assert (read.decisions == "bad").tolist() == np.ravel(said).astype(bool).tolist()


def test_probabilities_decide_by_the_largest() -> None:
    said = read_predictions(
        [[0.2, 0.3, 0.5], [0.6, 0.2, 0.2], [0, 1, 0]], list("abc"), sensitive_features=SEX
    )
    assert said.decisions.tolist() == ["c", "a", "b"]


@pytest.mark.parametrize("labels", [["no", "yes", "yes"], [0, 1, 1], [False, True, True]])
@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame])
def test_columns_named_by_the_labels_may_come_in_any_order(labels: list[Any], table: Any) -> None:
    first, second = labels[:2]
    said = table({str(second): [0.1, 0.7, 0.8], str(first): [0.9, 0.3, 0.2]})
    read = read_predictions(said, labels, sensitive_features=SEX)
    assert read.decisions.tolist() == labels
    np.testing.assert_array_equal(read.scores, [[0.9, 0.1], [0.3, 0.7], [0.2, 0.8]])


def test_columns_may_be_named_by_another_kind_of_number() -> None:
    said = pd.DataFrame({1: [0.1, 0.7, 0.8], 0: [0.9, 0.3, 0.2]})
    assert read_predictions(said, [0.0, 1.0, 1.0], sensitive_features=SEX).decisions.tolist() == [0, 1, 1]


def test_columns_of_other_names_are_in_the_labels_order() -> None:
    said = pd.DataFrame({"P(no)": [0.9, 0.3, 0.2], "yes": [0.1, 0.7, 0.8]})
    assert read_predictions(said, LABELS, sensitive_features=SEX).decisions.tolist() == LABELS


def test_bad_input_says_what_came_and_what_was_wanted() -> None:
    for given, labels, message in [
        ([0.2, 0.3], LABELS, r"predictions of shape \(2,\), but"),
        ([[0.2, 0.9]] * 3, LABELS, "sum to one"),
        (
            [[0.2, 0.2, 0.6]] * 3,
            LABELS,
            r"Got 3 probabilities per person, but y has the labels \['no', 'yes'\]",
        ),
        ([3.0, 7, 9], LABELS, "Got predictions from 3 to 9, which are neither labels"),
        ([0.2, np.nan, 0.4], LABELS, "missing, infinite or non-numeric"),
        ([0.2, 0.3, 0.4], list("abc"), "one score per person for the labels"),
    ]:
        with pytest.raises(ValueError, match=message):
            read_predictions(given, labels, sensitive_features=SEX)
    with pytest.raises(ValueError, match="non-numeric scores"):
        read_predictions(LABELS, LABELS, sensitive_features=SEX, threshold=0.5)
