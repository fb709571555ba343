from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import beta, norm

from evenhand.metrics.bootstrap import CELLS, bootstrap_interval, cells_of, mean_interval
from evenhand.metrics.group import (
    accuracy,
    balanced_accuracy,
    equal_opportunity_difference,
    positive_rates,
)
from evenhand.metrics.scores import auc, calibration_error


def sample(n: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    group = rng.choice(["f", "m", "x"], n)
    truth = rng.random(n) < 0.4
    score = 1 / (1 + np.exp(-(truth * 1.2 + (group == "m") * 0.8 - 1 + rng.normal(size=n))))
    return {"y_true": truth.astype(int), "score": score, "y_pred": (score > 0.5).astype(int), "group": group}


def people_one_by_one(metric: Any, y_true: Any, y_pred: Any, group: Any, n: int = 600) -> np.ndarray:
    rng = np.random.default_rng(1)
    values = []
    for _ in range(n):
        at = rng.integers(len(y_true), size=len(y_true))
        values.append(metric(y_true[at], y_pred[at], sensitive_features=group[at]))
    return np.quantile(values, [0.025, 0.975])


@pytest.mark.parametrize("metric", [accuracy, balanced_accuracy], ids=lambda metric: metric.__name__)
def test_intervals_from_counts_agree_with_resampled_people(metric: Any) -> None:
    drawn = sample(400)
    arguments = (drawn["y_true"], drawn["y_pred"])
    got = bootstrap_interval(metric, *arguments, sensitive_features=drawn["group"], n=4000, random_state=0)
    assert got.estimate == metric(*arguments, sensitive_features=drawn["group"])
    want = people_one_by_one(metric, *arguments, drawn["group"])
    np.testing.assert_allclose([got.low, got.high], want, atol=0.015)


def test_resampled_scores_agree_with_resampled_people() -> None:
    drawn = sample(2500)
    arguments = (drawn["y_true"], drawn["score"])
    assert len(np.unique(drawn["score"])) > CELLS
    got = bootstrap_interval(auc, *arguments, n=2000, random_state=0)
    assert got.estimate == pytest.approx(auc(*arguments))
    want = people_one_by_one(auc, *arguments, drawn["group"], n=400)
    np.testing.assert_allclose([got.low, got.high], want, atol=0.004)


@pytest.mark.parametrize("people", [300, 3000])
@pytest.mark.parametrize("steeper", [1.0, 1.2, 2.0])  # 1 is calibrated
def test_intervals_of_the_calibration_error_contain_it(people: int, steeper: float) -> None:
    rng = np.random.default_rng(0)

    def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
        odds = rng.normal(0, 1.5, n)
        return expit(odds), expit(steeper * odds)

    chance, score = drawn(1_000_000)
    known = 0.0 if steeper == 1 else np.abs(np.bincount((10 * score).astype(int), score - chance)).sum() / 1e6
    within = 0
    for seed in range(60):
        chance, score = drawn(people)
        y = rng.random(people) < chance
        got = bootstrap_interval(calibration_error, y, score, n=200, random_state=seed)
        assert got.estimate == pytest.approx(calibration_error(y, score))
        assert 0 <= got.low <= got.estimate <= got.high <= 1
        within += got.low <= known <= got.high
    assert within >= 56


@pytest.mark.parametrize(
    ("people", "chance", "score"),
    [(100, 0.02, 0.02), (100, 0.01, 0.01), (300, 0.005, 0.005), (40, 0.05, 0.02), (100, 0.001, 0.02)],
)
def test_intervals_of_the_calibration_error_contain_it_where_positives_are_rare(
    people: int, chance: float, score: float
) -> None:
    rng, within = np.random.default_rng(0), 0
    for seed in range(200):
        y = rng.random(people) < chance
        got = bootstrap_interval(
            calibration_error, y, np.full(people, score), pos_label=True, n=200, random_state=seed
        )
        within += got.low - 1e-9 <= abs(score - chance) <= got.high + 1e-9
    assert within >= 190


@pytest.mark.parametrize(("people", "rare", "right"), [(300, 9, 0.97), (30, 15, 0.95), (400, 150, 0.8)])
def test_intervals_of_balanced_accuracy_contain_it(people: int, rare: int, right: float) -> None:
    rng, truth = np.random.default_rng(0), np.arange(people) < rare
    times = []
    for _ in range(200):
        decided = truth ^ (rng.random(people) > right)
        found = bootstrap_interval(balanced_accuracy, truth, decided)
        assert 0 <= found.low <= found.estimate <= found.high <= 1
        assert found.low < found.high
        times.append(found.low <= right <= found.high)
    assert np.mean(times) > 0.93


@pytest.mark.parametrize(("people", "rare", "apart"), [(100, 5, 1.5), (60, 30, 3), (500, 150, 1)])
@pytest.mark.parametrize("spread", [1, 3])
def test_intervals_of_auc_contain_it(people: int, rare: int, apart: float, spread: float) -> None:
    rng, truth = np.random.default_rng(0), np.arange(people) < rare
    area = norm.cdf(apart / np.hypot(1, spread))
    times = []
    for _ in range(200):
        scores = rng.normal(size=people) * np.where(truth, spread, 1) + apart * truth
        found = bootstrap_interval(auc, truth, scores)
        assert 0 <= found.low <= found.estimate <= found.high <= 1
        assert found.low < found.high
        times.append(found.low <= area <= found.high)
    assert np.mean(times) >= 0.92


def test_nobody_positive_leaves_the_calibration_error_uncertain() -> None:
    got = bootstrap_interval(calibration_error, [0] * 50, np.full(50, 0.02), pos_label=1, random_state=0)
    assert got.estimate == pytest.approx(0.02)
    # The true share may be up to the 97.5th percentile of Jeffreys' posterior.
    share = beta.ppf(0.975, 0.5, 50.5)
    assert got.low == 0
    assert got.high == pytest.approx(share - 0.02, abs=0.01)


def test_any_other_metric_is_computed_again_on_resampled_people() -> None:
    drawn = sample(200)

    def rate_of_f(y_true: Any, y_pred: Any, **keywords: Any) -> float:
        return positive_rates(y_true, y_pred, **keywords)["f"]

    got = bootstrap_interval(
        rate_of_f, drawn["y_true"], drawn["y_pred"], sensitive_features=drawn["group"], n=300, random_state=0
    )
    of_f = drawn["y_pred"][drawn["group"] == "f"]
    assert got.estimate == of_f.mean()
    width = 2 * 1.96 * np.sqrt(of_f.var() / len(of_f))
    assert got.high - got.low == pytest.approx(width, rel=0.25)


def test_the_interval_of_a_share_is_the_binomials() -> None:
    decided = np.repeat([0, 1], [700, 300])
    got = bootstrap_interval(accuracy, np.zeros(1000, dtype=int), decided, n=4000, random_state=0)
    error = np.sqrt(0.7 * 0.3 / 1000)
    assert got.low == pytest.approx(0.7 - 1.96 * error, abs=0.004)
    assert got.high == pytest.approx(0.7 + 1.96 * error, abs=0.004)
    narrow = bootstrap_interval(
        accuracy, np.zeros(1000, dtype=int), decided, n=4000, confidence=0.5, random_state=0
    )
    assert narrow.high - narrow.low == pytest.approx(2 * 0.674 * error, rel=0.1)


@pytest.mark.parametrize("distinct", [3, 10_000])
def test_mean_interval_is_the_central_limits(distinct: int) -> None:
    values = np.random.default_rng(0).integers(0, distinct, 20_000).astype(float)
    got = mean_interval(values, n=2000, random_state=0)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert got.estimate == values.mean()
    assert got.low == pytest.approx(values.mean() - half, abs=0.15 * half)
    assert got.high == pytest.approx(values.mean() + half, abs=0.15 * half)


def test_cells_keep_the_order_and_are_bounded() -> None:
    values = np.random.default_rng(0).normal(size=10_000)
    cell, n_cells = cells_of(values)
    assert n_cells <= CELLS
    assert (np.diff(cell[np.argsort(values)]) >= 0).all()
    assert np.bincount(cell).max() <= 20
    few, n_few = cells_of(np.array([3.0, 1.0, 3.0]))
    assert (few.tolist(), n_few) == ([1, 0, 1], 2)


def test_same_seed_same_interval() -> None:
    drawn = sample(100)
    arguments = {"sensitive_features": drawn["group"], "n": 50}
    one, two, other = (
        bootstrap_interval(calibration_error, drawn["y_true"], drawn["score"], random_state=seed, **arguments)
        for seed in (3, 3, 4)
    )
    assert one == two != other


def test_what_cannot_be_measured_is_nan_without_a_warning() -> None:
    got = bootstrap_interval(
        equal_opportunity_difference, [1, 0], [1, 0], sensitive_features=["f", "m"], n=20, random_state=0
    )
    assert np.isnan(got).all()


def test_bad_input_says_what_came_and_what_was_wanted() -> None:
    with pytest.raises(ValueError, match="Got n=0"):
        bootstrap_interval(accuracy, [0, 1], [0, 1], n=0)
    with pytest.raises(ValueError, match="Got confidence=95"):
        bootstrap_interval(accuracy, [0, 1], [0, 1], confidence=95)
