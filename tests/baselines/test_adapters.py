from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from evenhand.baselines import (
    LR,
    ExponentiatedGradientClassifier,
    OxonFairClassifier,
    ThresholdOptimizerClassifier,
)


def discrimination(decisions, s):
    return abs((decisions[s == "m"] == "yes").mean() - (decisions[s == "f"] == "yes").mean())


@pytest.fixture(scope="module")
def reduced(planted):
    X, y, s = planted
    return ExponentiatedGradientClassifier().fit(X, y, sensitive_features=s)


def test_drawn_decisions_keep_the_bound_that_logistic_regression_breaks(planted, reduced):
    X, y, s = planted
    assert discrimination(LR().fit(X, y).predict(X), s) > 0.4
    drawn = np.array([discrimination(reduced.sample_actions(X, random_state=seed), s) for seed in range(20)])
    assert drawn.mean() < 0.05
    assert (reduced.predict(X) == y).mean() > 0.6


def test_drawn_decisions_follow_the_mixture(planted, reduced):
    X, _, _ = planted
    drawn = np.mean([reduced.sample_actions(X, random_state=seed) == "yes" for seed in range(200)], axis=0)
    assert np.abs(drawn - reduced.predict_proba(X)[:, 1]).max() < 5 * np.sqrt(0.25 / 200)
    assert (reduced.sample_actions(X, random_state=1) == reduced.sample_actions(X, random_state=1)).all()


def test_another_estimator(planted):
    X, y, s = planted
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    model = ExponentiatedGradientClassifier(tree, max_iter=3).fit(X, y, sensitive_features=s)
    assert isinstance(model.mitigator_.predictors_[0], DecisionTreeClassifier)
    assert not hasattr(tree, "tree_")


def test_thresholds_by_group_keep_the_bound_and_flip_people(planted):
    pytest.importorskip("oxonfair")
    X, y, s = planted
    model = OxonFairClassifier(difference_bound=0.02).fit(X, y, sensitive_features=s)
    decided = model.predict(X, sensitive_features=s)
    assert discrimination(decided, s) <= 0.02
    by_group = model.probabilities_by_group(X).argmax(axis=2)
    assert (by_group[:, 0] != by_group[:, 1]).mean() > 0.2


def test_fairlearns_thresholds_keep_their_bound_when_drawn_and_flip_people(planted):
    X, y, s = planted
    model = ThresholdOptimizerClassifier().fit(X, y, sensitive_features=s)
    drawn = [model.sample_actions(X, sensitive_features=s, random_state=seed) for seed in range(20)]
    assert np.mean([discrimination(decided, s) for decided in drawn]) < 0.05
    by_group = model.probabilities_by_group(X).argmax(axis=2)
    assert (by_group[:, 0] != by_group[:, 1]).mean() > 0.2
    loose = ThresholdOptimizerClassifier(difference_bound=1.0).fit(X, y, sensitive_features=s)
    assert discrimination(loose.predict(X, sensitive_features=s), s) > 0.3


@pytest.mark.parametrize("kind", [ExponentiatedGradientClassifier, ThresholdOptimizerClassifier])
def test_draws_that_differ_are_counted_as_drawn(planted, kind):
    X, y, s = planted
    model = kind().fit(X, y, sensitive_features=s)
    one, other = (
        np.array(
            [model.sample_actions(X, sensitive_features=s, random_state=seed + at) for seed in range(40)]
        )
        for at in (0, 1000)
    )
    share = model.draws_differ(X, sensitive_features=s)
    assert (one != other).mean() == pytest.approx(share, abs=0.01)


def test_a_loose_bound_costs_no_accuracy(planted):
    pytest.importorskip("oxonfair")
    X, y, s = planted
    model = OxonFairClassifier(difference_bound=1.0).fit(X, y, sensitive_features=s)
    assert (model.predict(X, sensitive_features=s) == y).mean() >= (LR().fit(X, y).predict(X) == y).mean()


@pytest.mark.parametrize(
    ("kind", "package"),
    [
        (ExponentiatedGradientClassifier, "fairlearn"),
        (ThresholdOptimizerClassifier, "fairlearn"),
        (OxonFairClassifier, "oxonfair"),
    ],
)
def test_a_missing_package_is_named(planted, monkeypatch, kind, package):
    X, y, s = planted
    for name in list(sys.modules):
        if name.split(".")[0] == package:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        ImportError, match=f"{kind.__name__} needs the package {package}, which is not installed"
    ):
        kind().fit(X, y, sensitive_features=s)
