"""Metrics of people who stand for several: against other libraries, and against as many people."""

from __future__ import annotations

import numpy as np
import pytest
from fairlearn.metrics import (
    MetricFrame,
    demographic_parity_difference,
    equalized_odds_difference,
    selection_rate,
)
from sklearn import metrics as theirs

from evenhand.metrics import (
    Answers,
    accuracy,
    auc,
    balanced_accuracy,
    bootstrap_interval,
    by_group,
    calibration_error,
    delta,
    discrimination,
    equal_opportunity_difference,
    flip_rate,
    mean_interval,
    measure,
    positive_rates,
)
from evenhand.metrics import equalized_odds_difference as odds
from evenhand.metrics.group_table import group_rows
from evenhand.metrics.weights import effective

N = 500
RNG = np.random.default_rng(0)
S = RNG.choice(["a", "b", "c"], N, p=[0.5, 0.3, 0.2])
Y = RNG.integers(0, 2, N)
SAID = np.clip(0.3 * Y + 0.1 * (S == "b") + RNG.uniform(0, 0.7, N), 0, 1).round(2)
PRED = (SAID > 0.5).astype(int)
W = np.round(RNG.exponential(3, N))
AGAIN = np.repeat(np.arange(N), W.astype(int))
GROUPED = {"sensitive_features": S, "sample_weight": W}


def test_as_fairlearn_and_scikit_learn():
    frame = MetricFrame(
        metrics={"rate": selection_rate, "right": theirs.accuracy_score}, y_true=Y, y_pred=PRED, sensitive_features=S,
        sample_params={"rate": {"sample_weight": W}, "right": {"sample_weight": W}},
    )  # fmt: skip
    assert positive_rates(Y, PRED, **GROUPED) == pytest.approx(frame.by_group["rate"].to_dict())
    assert by_group(accuracy, Y, PRED, **GROUPED) == pytest.approx(frame.by_group["right"].to_dict())
    for ours, other in (
        (accuracy(Y, PRED, **GROUPED), theirs.accuracy_score(Y, PRED, sample_weight=W)),
        (balanced_accuracy(Y, PRED, **GROUPED), theirs.balanced_accuracy_score(Y, PRED, sample_weight=W)),
        (auc(Y, SAID, sample_weight=W), theirs.roc_auc_score(Y, SAID, sample_weight=W)),
        (discrimination(Y, PRED, **GROUPED), demographic_parity_difference(Y, PRED, **GROUPED)),
        (odds(Y, PRED, **GROUPED), equalized_odds_difference(Y, PRED, **GROUPED)),
    ):
        assert ours == pytest.approx(other)


METRICS = [accuracy, balanced_accuracy, discrimination, delta, equal_opportunity_difference, odds]


@pytest.mark.parametrize("metric", METRICS)
def test_whole_weights_are_so_many_people(metric):
    ours = metric(Y, PRED, sensitive_features=S, sample_weight=W)
    assert ours == pytest.approx(metric(Y[AGAIN], PRED[AGAIN], sensitive_features=S[AGAIN]))
    assert metric(Y, PRED, sensitive_features=S, sample_weight=np.full(N, 7)) == pytest.approx(
        metric(Y, PRED, sensitive_features=S)
    )
    for of in (auc, calibration_error):
        assert of(Y, SAID, sample_weight=W) == pytest.approx(of(Y[AGAIN], SAID[AGAIN]))
    decided = np.stack([PRED, PRED, RNG.integers(0, 2, N)], axis=1)
    own = np.unique(S, return_inverse=True)[1]
    assert flip_rate(decided, own, sample_weight=W) == pytest.approx(flip_rate(decided[AGAIN], own[AGAIN]))


@pytest.mark.parametrize("metric", [*METRICS, auc, calibration_error])
def test_intervals_are_those_of_the_effective_number_of_people(metric):
    said = SAID if metric in (auc, calibration_error) else PRED
    alike, plain = (
        bootstrap_interval(metric, Y, said, sensitive_features=S, sample_weight=weight, random_state=0)
        for weight in (np.full(N, 3.0), None)
    )
    assert alike == pytest.approx(plain)
    # Half of the people at weight 0 say as much as that half alone.
    half = np.arange(N) % 2.0
    some, alone = (
        bootstrap_interval(
            metric, Y[rows], said[rows], sensitive_features=S[rows], sample_weight=weight, random_state=0
        )
        for rows, weight in ((slice(None), half), (half > 0, None))
    )
    assert some == pytest.approx(alone, abs=0.02)
    weighted = bootstrap_interval(metric, Y, said, sensitive_features=S, sample_weight=W, random_state=0)
    assert weighted.high - weighted.low > plain.high - plain.low


def test_intervals_hold_over_samples():
    """People are sampled with unequal chances and weighted by one over them: the truth is within, 95 % of the time."""
    rng = np.random.default_rng(1)
    scores = rng.normal(size=20_000)
    right = rng.random(20_000) < 1 / (1 + np.exp(-scores))
    chance = 0.01 + 0.04 * (scores < 0)
    within = 0
    for _ in range(300):
        here = rng.random(20_000) < chance
        _, low, high = mean_interval(right[here], sample_weight=1 / chance[here])
        within += low <= right.mean() <= high
    assert within / 300 > 0.93


def test_one_s_own_metric_gets_resampled_weights():
    def share(y_true, y_pred, *, sensitive_features, pos_label, sample_weight):
        return float(np.average(y_pred, weights=sample_weight))

    found = bootstrap_interval(share, Y, PRED, sample_weight=W, n=200, random_state=0)
    exact = mean_interval(PRED == 1, sample_weight=W)
    assert found.estimate == pytest.approx(exact.estimate)
    assert found.low == pytest.approx(exact.low, abs=0.02)


def answers_of(rows=slice(None), weights=None, labels=2):
    own = np.unique(S, return_inverse=True)[1][rows]
    every = np.random.default_rng(3).dirichlet(np.ones(labels), size=(N, 3))[rows]
    y = Y if labels == 2 else Y + (SAID > 0.8)
    names = list(range(labels))
    return Answers(names, ["a", "b", "c"], own, every, y=y[rows], weights=weights, min_group=1)


@pytest.mark.parametrize("labels", [2, 3])
def test_measures_and_group_rows_of_weighted_people(labels):
    weighted, repeated = answers_of(weights=W, labels=labels), answers_of(AGAIN, labels=labels)
    for intervals in (True, False):
        mine, other = (measure(one, intervals=intervals) for one in (weighted, repeated))
        assert set(mine) == set(other)
        for name in mine:
            assert mine[name]["value"] == pytest.approx(other[name]["value"]), name
    for mine, other in zip(group_rows(weighted), group_rows(repeated), strict=True):
        assert mine["people"] < other["people"]
        assert mine["accuracy"]["value"] == pytest.approx(other["accuracy"]["value"])
        assert mine["flip_rate"]["value"] == pytest.approx(other["flip_rate"]["value"])
        assert mine["accuracy"]["low"] < other["accuracy"]["low"]  # copies are no evidence


def test_small_groups_are_small_by_what_they_say():
    """A group of five people who stand for a thousand is filled up as one of five is."""
    s, pred = np.repeat(["a", "b", "c"], [100, 100, 5]), np.repeat([1, 0, 1], [50, 150, 5])
    weights = np.where(s == "c", 200.0, 1.0)
    own = np.unique(s, return_inverse=True)[1]
    found = [
        Answers([0, 1], ["a", "b", "c"], own, y=pred, decided=pred, weights=weight, min_group=30).counts
        for weight in (weights, None)
    ]
    assert found[0].evidence @ found[0].table.sum(axis=(1, 2))[:, None] == pytest.approx(205)


def test_effective_numbers():
    assert effective(None, 3) is None
    assert effective([2, 2, 2], 3).tolist() == [1, 1, 1]
    assert effective([1, 0, 0], 3).sum() == 1
    with pytest.raises(
        ValueError, match=r"Got sample_weight of shape \(2,\), but expected one weight for each of 3"
    ):
        effective([1, 1], 3)
