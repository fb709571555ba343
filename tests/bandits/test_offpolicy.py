import numpy as np
import pytest

from evenhand import GradientBandit
from evenhand.bandits.offpolicy import cross_fitted_rewards, doubly_robust_value, inverse_propensity_value


def log(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    means = np.stack([0.2 + 0 * X[:, 0], 0.5 + 0.3 * X[:, 0]], axis=1)
    logging = np.stack([0.7 + 0 * X[:, 0], 0.3 + 0 * X[:, 0]], axis=1)
    actions = (rng.random(n) > logging[:, 0]).astype(int)
    rewards = means[np.arange(n), actions] + 0.1 * rng.normal(size=n)
    new = np.stack([0.1 + 0 * X[:, 0], 0.9 + 0 * X[:, 0]], axis=1)
    return X, actions, rewards, logging[np.arange(n), actions], new, float((new * means).sum(1).mean())


def test_inverse_propensity_is_unbiased_and_normalising_steadies_it():
    _, actions, rewards, propensities, new, truth = log()
    taken = new[np.arange(len(new)), actions]
    plain = inverse_propensity_value(taken, rewards, propensities)
    steady = inverse_propensity_value(taken, rewards, propensities, self_normalised=True)
    assert plain.value == pytest.approx(truth, abs=4 * plain.standard_error)
    assert steady.value == pytest.approx(truth, abs=4 * steady.standard_error)
    assert steady.standard_error < plain.standard_error


def test_doubly_robust_is_right_if_either_part_is():
    X, actions, rewards, propensities, new, truth = log()
    good = cross_fitted_rewards(X, actions, rewards, 2)
    for predicted, chances in ((good, np.full_like(propensities, 0.5)), (np.zeros_like(good), propensities)):
        estimate = doubly_robust_value(new, actions, rewards, chances, predicted)
        assert estimate.value == pytest.approx(truth, abs=5 * estimate.standard_error)
    both = doubly_robust_value(new, actions, rewards, propensities, good)
    neither = doubly_robust_value(new, actions, rewards, propensities, np.zeros_like(good))
    assert both.standard_error < neither.standard_error
    low, high = both.interval()
    assert low < truth < high


def test_the_standard_error_is_the_spread_over_logs():
    values = []
    for seed in range(200):
        _, actions, rewards, propensities, new, _ = log(300, seed)
        values.append(inverse_propensity_value(new[np.arange(300), actions], rewards, propensities))
    claimed = np.mean([estimate.standard_error for estimate in values])
    assert claimed == pytest.approx(np.std([estimate.value for estimate in values]), rel=0.15)


def test_bad_logs_are_named():
    with pytest.raises(ValueError, match="Got 1 rewards that are NaN"):
        inverse_propensity_value([0.5, 0.5], [1.0, np.nan], [0.5, 0.5])
    with pytest.raises(ValueError, match=r"Got a propensity of 0\.0"):
        inverse_propensity_value([0.5, 0.5], [1.0, 1.0], [0.5, 0.0])
    with pytest.raises(ValueError, match=r"Got probabilities of shape \(3,\)"):
        inverse_propensity_value([0.5, 0.5, 0.5], [1.0, 1.0], [0.5, 0.5])
    with pytest.raises(ValueError, match=r"expected \(people, actions\) for the 2 people"):
        doubly_robust_value([[1, 0]], [0, 1], [1.0, 1.0], [0.5, 0.5], [[1, 0]])
    with pytest.raises(ValueError, match="Got an action outside 0 … 1"):
        doubly_robust_value([[1, 0], [1, 0]], [0, 2], [1.0, 1.0], [0.5, 0.5], [[1, 0], [1, 0]])


def test_on_its_own_training_log_a_policy_looks_better_than_it_is():
    """The rewards are coins: every policy earns 0.5, and only a log it did not learn from says so."""
    learned, fresh = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, actions = rng.normal(size=(400, 10)), rng.integers(0, 2, 400)
        people = X, actions, rng.integers(0, 2, 400).astype(float), np.full(400, 0.5)
        seen, unseen = ([part[rows] for part in people] for rows in (slice(200), slice(200, None)))
        bandit = GradientBandit(random_state=0, epochs=40).fit_logged(*seen)
        learned.append(bandit.estimate_value(*seen).value)
        fresh.append(bandit.estimate_value(*unseen).value)
    error = 0.05 / np.sqrt(8)
    assert np.mean(learned) > 0.5 + 3 * error
    assert np.mean(fresh) == pytest.approx(0.5, abs=3 * error)


@pytest.mark.parametrize("impossible", [-0.1, 1.5, np.nan])
def test_probabilities_outside_0_and_1_are_refused(impossible):
    wanted = "NaN or infinite" if np.isnan(impossible) else f"with the value {impossible}, but expected prob"
    with pytest.raises(ValueError, match=wanted):
        inverse_propensity_value([0.5, impossible], [1.0, 1.0], [0.5, 0.5])
    with pytest.raises(ValueError, match=f"Got a policy with the value {impossible}"):
        doubly_robust_value([[1, impossible]] * 2, [0, 1], [1.0, 1.0], [0.5, 0.5], [[1, 0]] * 2)
    assert inverse_propensity_value([0.0, 1.0], [1.0, 1.0], [0.5, 0.5]).value == 1


def test_predictions_alone_claim_no_standard_error():
    X, actions, rewards, propensities, new, _ = log(2000)
    predicted = cross_fitted_rewards(X, actions, rewards, 2)
    alone = doubly_robust_value(new, actions, rewards, propensities, predicted, clip=0)
    assert alone.value == pytest.approx((new * predicted).sum(1).mean())
    assert np.isnan(alone.standard_error)
    assert np.isnan(alone.interval()).all()
    assert doubly_robust_value(new, actions, rewards, propensities, predicted).standard_error > 0


def test_actions_never_taken_and_short_logs():
    X = np.arange(10.0)[:, None]
    predicted = cross_fitted_rewards(X, np.zeros(10, int), np.ones(10), 3)
    np.testing.assert_allclose(predicted, 1)
    with pytest.raises(ValueError, match="Got a log of 3 people, but expected at least 5"):
        cross_fitted_rewards(X[:3], [0, 0, 0], [1, 1, 1], 1)


@pytest.mark.parametrize("clip", [-1, np.nan, -np.inf, "2"])
def test_a_clip_that_is_no_largest_weight_is_refused(clip):
    with pytest.raises(ValueError, match="Got clip=.*, but expected a finite number of at least 0"):
        inverse_propensity_value([0.5, 0.5], [1.0, 0.0], [0.5, 0.5], clip=clip)
    both = [[0.5, 0.5], [0.5, 0.5]]
    with pytest.raises(ValueError, match="Got clip="):
        doubly_robust_value(both, [0, 1], [1.0, 0.0], [0.5, 0.5], both, clip=clip)


def test_an_infinite_clip_is_none():
    log = [0.9, 0.1], [1.0, 1.0], [0.1, 0.9]
    assert inverse_propensity_value(*log, clip=np.inf) == inverse_propensity_value(*log, clip=1e9)
