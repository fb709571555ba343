from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from evenhand.metrics.group import (
    accuracy,
    balanced_accuracy,
    by_group,
    delta,
    discrimination,
    equal_opportunity_difference,
    equalized_odds_difference,
    impact_ratio,
    impact_ratios,
    parity_differences,
    positive_rates,
)
from evenhand.metrics.scores import auc

TRUTH = [1, 1, 0, 0, 1, 1, 0, 0]
DECIDED = [1, 0, 0, 0, 1, 1, 1, 0]
SEX = ["f"] * 4 + ["m"] * 4


def test_worked_by_hand() -> None:
    assert positive_rates(TRUTH, DECIDED, sensitive_features=SEX) == {"f": 0.25, "m": 0.75}
    assert discrimination(TRUTH, DECIDED, sensitive_features=SEX) == 0.5
    assert accuracy(TRUTH, DECIDED) == 0.75
    assert delta(TRUTH, DECIDED, sensitive_features=SEX) == 0.25
    assert balanced_accuracy(TRUTH, DECIDED) == 0.75
    assert equal_opportunity_difference(TRUTH, DECIDED, sensitive_features=SEX) == 0.5
    assert equalized_odds_difference(TRUTH, DECIDED, sensitive_features=SEX) == 0.5
    assert equal_opportunity_difference(TRUTH, DECIDED, sensitive_features=SEX, pos_label=0) == 0.5


def test_ratios_and_differences_are_to_the_highest_rate_or_to_a_reference() -> None:
    given = {"sensitive_features": SEX}
    assert impact_ratio(TRUTH, DECIDED, **given) == pytest.approx(1 / 3)
    assert impact_ratios(TRUTH, DECIDED, **given) == pytest.approx({"f": 1 / 3, "m": 1.0})
    assert impact_ratios(TRUTH, DECIDED, **given, reference="f") == pytest.approx({"f": 1.0, "m": 3.0})
    assert parity_differences(TRUTH, DECIDED, **given) == {"f": -0.5, "m": 0.0}
    assert parity_differences(TRUTH, DECIDED, **given, reference="f") == {"f": 0.0, "m": 0.5}
    with pytest.raises(ValueError, match="Got reference='x', but the groups are 'f', 'm'"):
        impact_ratios(TRUTH, DECIDED, **given, reference="x")


def test_the_impact_ratio_is_unknown_where_nobody_was_chosen_and_the_smallest_over_labels() -> None:
    assert math.isnan(impact_ratio(TRUTH, [0] * 8, sensitive_features=SEX))
    assert math.isnan(impact_ratios(TRUTH, [0] * 8, sensitive_features=SEX)["f"])
    three, group = ["a", "b", "b", "c", "a", "a", "b", "c"], ["f"] * 4 + ["m"] * 4
    assert impact_ratio(three, three, sensitive_features=group) == 0.5


def test_a_constant_classifier_discriminates_against_nobody() -> None:
    assert discrimination(TRUTH, [0] * 8, sensitive_features=SEX) == 0
    assert balanced_accuracy(TRUTH, [0] * 8) == 0.5


def test_a_group_without_the_label_is_left_out() -> None:
    truth, decided, group = [1, 1, 0, 1, 1], [1, 0, 1, 1, 1], ["a", "a", "b", "c", "c"]
    assert equal_opportunity_difference(truth, decided, sensitive_features=group) == 0.5  # a against c
    only = equal_opportunity_difference(truth[:3], decided[:3], sensitive_features=group[:3])
    assert math.isnan(only)  # a alone has positives
    assert discrimination(truth[:3], decided[:3], sensitive_features=group[:3]) == 0.5


def test_one_group_has_nobody_to_differ_from() -> None:
    for metric in (discrimination, equal_opportunity_difference, equalized_odds_difference):
        assert metric(TRUTH, DECIDED, sensitive_features=None) == 0
    assert impact_ratio(TRUTH, DECIDED, sensitive_features=None) == 1


def test_several_columns_make_their_combinations() -> None:
    columns = pd.DataFrame({"sex": SEX, "old": [0, 1] * 4})
    assert positive_rates(TRUTH, DECIDED, sensitive_features=columns) == {
        "sex=f, old=0": 0.5,
        "sex=f, old=1": 0.0,
        "sex=m, old=0": 1.0,
        "sex=m, old=1": 0.5,
    }
    assert discrimination(TRUTH, DECIDED, sensitive_features=columns) == 1


def test_more_labels_take_the_largest_or_the_named_one() -> None:
    truth, decided, group = list("xyzxyz"), list("xyyxyz"), list("fffmmm")
    assert discrimination(truth, decided, sensitive_features=group) == pytest.approx(1 / 3)
    assert discrimination(truth, decided, sensitive_features=group, pos_label="x") == 0
    with pytest.raises(ValueError, match="Got 3 labels and no pos_label"):
        positive_rates(truth, decided, sensitive_features=group)


def test_by_group_settles_the_positive_label_once() -> None:
    # In group m everybody is 'no': the positive label is still 'yes'.
    truth, scores = ["no", "yes", "no", "no"], [0.1, 0.9, 0.3, 0.6]
    areas = by_group(auc, truth, scores, sensitive_features=list("ffmm"))
    assert areas["f"] == 1
    assert math.isnan(areas["m"])
    assert by_group(accuracy, TRUTH, DECIDED, sensitive_features=np.array(SEX)) == {"f": 0.75, "m": 0.75}


def test_by_group_takes_scores_of_labels_that_a_group_lacks() -> None:
    truth, score = np.array(["no", "yes"] * 10 + ["no"] * 5), np.linspace(0, 1, 25)
    groups = ["a"] * 20 + ["b"] * 5
    for scores in (score, np.c_[1 - score, score]):
        found = by_group(auc, truth, scores, sensitive_features=groups)
        assert found["a"] == pytest.approx(0.55)
        assert np.isnan(found["b"])
