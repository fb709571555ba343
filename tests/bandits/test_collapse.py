"""A fit says when it decides alike for everybody, though many have another label."""

import warnings

import numpy as np
import pytest

from evenhand import CooperativeBandits, Correctness, GradientBandit
from evenhand.bandits import base as learner
from evenhand.baselines import CollapseWarning
from factories import make_arrays


@pytest.mark.parametrize("seed", [0, 1])  # the second decides otherwise for two people
def test_unscaled_columns_are_named_where_they_are_left_as_they_are(seed):
    X, y, s = make_arrays(1000, 2, seed=seed)
    X = X * [15_000, 10] + [45_000, 40]  # incomes and ages
    with pytest.warns(
        CollapseWarning, match=r"decides '\w+' for \d+ of 1000 people, but \d\d% .*scale them"
    ) as seen:
        CooperativeBandits(standardize=False, random_state=seed).fit(X, y, sensitive_features=s)
    assert "divergence_weight (now 20)" in str(seen[0].message)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CooperativeBandits(random_state=0).fit(X, y, sensitive_features=s)


def test_a_reward_that_learns_no_rare_label_is_named():
    X, y, _ = make_arrays(1000, 2, bar=1.6)
    model = GradientBandit(Correctness(gains=[[1, -1], [0, -1]]), random_state=0)
    with pytest.warns(CollapseWarning, match=r"GradientBandit decides 'no'.*Likelihood\(\)") as seen:
        model.fit(X, y)
    assert "divergence_weight" not in str(seen[0].message)


def test_one_decision_can_be_right_where_the_label_is_rare():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(500) < 0.12, "ill", "well")
    model = GradientBandit(random_state=0).fit(np.ones((500, 1)), y)
    assert set(model.predict(np.ones((500, 1)))) == {"well"}


def test_only_a_whole_fit_from_labels_is_looked_at():
    X, y, _ = np.ones((100, 1)), np.arange(100) % 2, None
    bandit = GradientBandit(random_state=0, checkpoint_every=10)
    bandit.partial_fit(X, y, classes=[0, 1])
    bandit.update(X, y, np.ones(100))
    bandit.fit(X, y, callback=lambda step, model: True)
    bandit.fit_logged(X, y, np.ones(100), np.full(100, 0.5))
    GradientBandit(random_state=0, steps=9_999).fit(X, y)
    GradientBandit("correctness + kl", random_state=0).fit(X, y)  # published, and known for it
    with pytest.warns(CollapseWarning, match="for 100 of 100 people, but 50%"):
        bandit.fit(X, y)


def test_of_many_people_the_first_are_looked_at(monkeypatch):
    monkeypatch.setattr(learner, "LOOKED_AT", 50)
    X, y = np.ones((100, 1)), np.arange(100) % 2
    with pytest.warns(CollapseWarning, match="for 50 of 50 people"):
        GradientBandit(random_state=0).fit(X, y)
    GradientBandit(random_state=0).fit(X, np.sort(y)[::-1])  # the first all have one label
