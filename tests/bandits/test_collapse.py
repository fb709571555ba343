"""A fit says when it decides alike for everybody, though many have another label."""

import warnings

import numpy as np
import pytest

from emulated import CXX, emulate
from evenhand import CooperativeBandits, Correctness, GradientBandit, fit_many
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


class Earliest:
    """A criterion that all checkpoints meet alike, so that the first is the best."""

    name = "earliest"

    def rank(self, scores):
        return ()


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize(
    "engine", ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(CXX is None, reason="no C++ compiler"))]
)
def test_of_all_checkpoints_the_one_that_is_returned_is_looked_at(engine, standardize, monkeypatch):
    monkeypatch.setattr(learner, "SHORT", 1000)
    if engine == "cuda":
        emulate(monkeypatch)
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=(400, 3)) * [1, 3, 1] + [2, 0, 0], np.full(400, 7)]
    s, noise = np.arange(400) % 2, np.where(rng.random(400) < 0.3, "yes", "no")
    split = {"sensitive_features": s, "cv": [(np.arange(300), np.arange(300, 400))]}
    plain = CooperativeBandits(steps=1000, checkpoint_every=20, learning_rate=0.01, standardize=standardize)

    def decided(y, select, **given):
        grid = {name: [value] for name, value in given.items()}
        (model,) = fit_many(plain, grid, X, y, select=select, engine=engine, **split)
        return set(model.predict(X, sensitive_features=s).tolist())

    collapsing = {"reward": "correctness + log_ratio", "random_state": 9}
    with pytest.warns(CollapseWarning, match="decides 'no' for 300 of 300"):
        assert decided(noise, None, **collapsing) == {"no"}
    assert decided(noise, Earliest(), **collapsing) == {"no", "yes"}  # a warning would be an error

    y = np.where(X[:, 0] > 2.3, "yes", "no")
    assert decided(y, None, random_state=11) == {"no", "yes"}
    with pytest.warns(CollapseWarning, match="Possible causes: a criterion of select") as told:
        assert decided(y, Earliest(), random_state=11) == {"no"}
    assert [each.filename for each in told] == [__file__]
