from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.metrics.scores import auc, calibration_error, rank_auc

people = st.lists(st.tuples(st.booleans(), st.integers(0, 20)), min_size=1, max_size=40)


@given(people)
def test_auc_equals_the_share_of_pairs_in_order(drawn: list[tuple[bool, int]]) -> None:
    positives = [score for label, score in drawn if label]
    negatives = [score for label, score in drawn if not label]
    labels, scores = zip(*drawn, strict=True)
    got = auc(labels, np.array(scores) / 20)
    if not positives or not negatives:
        assert math.isnan(got)
        return
    in_order = sum((a > b) + (a == b) / 2 for a in positives for b in negatives)
    assert got == pytest.approx(in_order / (len(positives) * len(negatives)))


@given(people, st.integers(1, 12))
def test_calibration_error_equals_a_loop_over_bins(drawn: list[tuple[bool, int]], bins: int) -> None:
    labels = [label for label, _ in drawn]
    scores = [score / 20 for _, score in drawn]
    total = 0.0
    for b in range(bins):
        inside = [at for at, s in enumerate(scores) if min(int(s * bins), bins - 1) == b]
        if inside:
            claimed = sum(scores[at] for at in inside) / len(inside)
            found = sum(labels[at] for at in inside) / len(inside)
            total += len(inside) / len(drawn) * abs(claimed - found)
    if len(set(labels)) == 2:
        assert calibration_error(labels, scores, bins=bins) == pytest.approx(total)


def test_columns_of_scores() -> None:
    labels = ["no", "yes", "yes"]
    columns = np.array([[0.8, 0.2], [0.4, 0.6], [0.9, 0.1]])
    assert auc(labels, columns) == auc(labels, columns[:, 1]) == 0.5
    assert auc(labels, columns, pos_label="no") == auc(labels, columns[:, 0], pos_label="no")
    assert auc(labels, columns[:, ::-1], labels=["yes", "no"], pos_label="yes") == 0.5
    three = np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.2, 0.5, 0.3]])
    assert auc(list("xyz"), three) == 1
    # Only the top label's claim counts: 0.6 and 0.7 were right, 0.5 was wrong.
    assert calibration_error(list("xyz"), three) == pytest.approx((0.4 + 0.3 + 0.5) / 3)


def test_of_many_labels_the_positive_one_is_measured_against_the_rest() -> None:
    labels = np.array(list("xyzxyz"))
    three = np.array([[6, 3, 1], [2, 7, 1], [2, 5, 3], [1, 8, 1], [3, 3, 4], [1, 1, 8]]) / 10
    for at, label in enumerate("xyz"):
        of_label: dict[str, Any] = {"y_true": labels == label, "y_score": three[:, at]}
        for metric in (auc, calibration_error):
            assert metric(labels, three, pos_label=label) == metric(**of_label)
    assert auc(labels, three, pos_label="y") != auc(labels, three)
    assert calibration_error(labels, three, pos_label="y") != calibration_error(labels, three)


def test_a_label_that_does_not_occur_is_left_out() -> None:
    three = np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1]])
    assert auc(["x", "y"], three, labels=["x", "y", "z"]) == 1


def test_bad_input_says_what_came_and_what_was_wanted() -> None:
    for arguments, message in [
        (([0, 1], [0.1, math.nan]), "NaN or infinite"),
        (([0, 1], [0.1, 0.2, 0.3]), r"y_score of shape \(3,\)"),
        (([0, 1, 2], [0.1, 0.2, 0.3]), "one score per person for 3 labels"),
        (([0, 1], [[0.1, 0.2, 0.7]] * 2), "3 columns in y_score"),
    ]:
        with pytest.raises(ValueError, match=message):
            auc(*arguments)
    with pytest.raises(ValueError, match=r"scores from -1 to 2, but expected probabilities"):
        calibration_error([0, 1], [-1, 2])
    with pytest.raises(ValueError, match="Got label 'no' in y_true"):
        auc(["no", "yes"], [0.1, 0.2], labels=["yes", "perhaps"])
    with pytest.raises(ValueError, match="Got bins=0"):
        calibration_error([0, 1], [0.1, 0.2], bins=0)


def test_the_ranks_of_unknown_scores_are_unknown() -> None:
    assert math.isnan(rank_auc(np.array([True, False, True]), np.array([0.1, math.nan, 0.3])))
