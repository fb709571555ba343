"""Bounded rates where one group is small: its rate is learned late, and each of its people weighs much."""

import numpy as np
import pytest

from evenhand import CooperativeBandits, Likelihood, LogRatio, Parity
from evenhand.bandits import base as learner
from evenhand.rewards import pack_terms
from factories import make_arrays


def world(share, seed, n=3000):
    return make_arrays(n, 5, groups=("few", "many"), shares=(share, 1 - share), seed=seed)


def rates(reward, X, y, s, seed):
    model = CooperativeBandits(0, reward=reward, random_state=seed).fit(X, y, sensitive_features=s)
    own = model.predict(X, sensitive_features=s) == "yes"
    return [own[s == group].mean() for group in ("few", "many")]


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_parity_does_not_decide_all_of_a_small_group_alike(seed):
    X, y, s = world(0.02, seed)
    free = rates(Likelihood(), X, y, s, seed)
    few, many = rates(Likelihood() + Parity(0.02), X, y, s, seed)
    assert free[1] - free[0] > 0.25
    assert abs(many - few) < 0.1


def test_from_a_fifth_on_a_group_is_treated_as_half():
    half, fifth, tenth = (
        pack_terms(Likelihood() + Parity(averaging=0.1), 0.0, 2, group_sizes=sizes).rates
        for sizes in ([500, 500], [800, 200], [900, 100])
    )
    for name in ("dual_step", "averaging"):
        np.testing.assert_array_equal(getattr(half, name), getattr(fifth, name))
    np.testing.assert_allclose(tenth.dual_step, half.dual_step / 2)
    np.testing.assert_allclose(tenth.averaging, [[0.1, 0.2]])


def test_online_a_group_is_as_small_as_it_was_so_far(monkeypatch):
    sizes = []

    def spy(*given, group_sizes=(1,), **options):
        sizes.append(list(group_sizes))
        return pack_terms(*given, group_sizes=group_sizes, **options)

    X, y, s = world(0.5, 0, n=60)
    model = CooperativeBandits(reward=Likelihood() + LogRatio() + Parity(), random_state=0)
    model.partial_fit(X, y, classes=["no", "yes"], sensitive_features=s)
    monkeypatch.setattr(learner, "pack_terms", spy)
    model.partial_fit(X[:1], y[:1], sensitive_features=s[:1])
    assert sizes == [[np.sum(s == g) + (s[0] == g) for g in ("few", "many")]]


def test_prices_slow_down_with_the_learning_rate():
    """With policies that stand still, the excess is the same all along: three quarters of the rise come first."""
    X, y, s = world(0.5, 0)
    duals = []
    model = CooperativeBandits(
        reward=Likelihood() + Parity(), learning_rate=1e-12, epochs=4, checkpoint_every=6000, random_state=0
    )
    model.fit(
        X,
        y,
        sensitive_features=s,
        callback=lambda step, model: duals.append(np.ptp(model._training.rates.dual)),
    )
    middle, end = duals
    assert middle > 0.1
    assert middle / end == pytest.approx(0.75, abs=0.03)


@pytest.mark.parametrize("seed", [0, 1])
def test_four_people_do_not_keep_parity_from_the_others(seed):
    """Prices as slow as a group of four needs would leave two large groups as unequal as they were."""
    X, y, s = world(0.5, seed)
    s = s.astype(object)
    s[:4] = "tiny"

    def apart(min_group):
        reward = Likelihood() + Parity(0.02, min_group=min_group)
        model = CooperativeBandits(0, reward=reward, random_state=seed).fit(X, y, sensitive_features=s)
        own = model.predict(X, sensitive_features=s) == "yes"
        return abs(own[s == "many"].mean() - own[s == "few"].mean())

    assert apart(20) < 0.05
    assert apart(1) > 0.15
