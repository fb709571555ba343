"""Every learner of one policy per group learns from a log, and says what it would earn, group by group."""

import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from evenhand import CooperativeBandits, CooperativeBoosting, CooperativeEnsemble, GradientBandit
from evenhand.bandits.offpolicy import METHODS

LEARNERS = {
    "networks": CooperativeBandits(epochs=4, random_state=0),
    "trees": CooperativeBoosting(rounds=60, random_state=0),
    "both": CooperativeEnsemble(
        bandits=CooperativeBandits(epochs=4), boosting=CooperativeBoosting(rounds=60), random_state=0
    ),
}


def stream(n, seed):
    """Return a log of 'yes' and 'no', each person's group, and what 'yes' would have earned everyone."""
    rng = np.random.default_rng(seed)
    s = rng.choice(["f", "m"], n, p=[0.4, 0.6])
    X = rng.normal(size=(n, 3))
    worth = np.where(X[:, 0] + 0.3 * (s == "m") > 0, 1.0, -1.0)
    yes = 1 / (1 + np.exp(-X[:, 1]))
    actions = np.where(rng.random(n) < yes, "yes", "no")
    propensities = np.where(actions == "yes", yes, 1 - yes)
    return X, actions, np.where(actions == "yes", worth, 0.0), propensities, s, worth


@cache
def learned(name):
    X, actions, rewards, propensities, s, _ = stream(3000, 0)
    return clone(LEARNERS[name]).fit_logged(X, actions, rewards, propensities, sensitive_features=s)


@pytest.mark.parametrize("name", LEARNERS)
def test_it_earns_more_than_the_log_did_and_most_of_what_can_be_earned(name):
    X, _, rewards, _, s, worth = stream(4000, 1)
    model = learned(name)
    yes = model.predict_proba(X, sensitive_features=s)[:, list(model.classes_).index("yes")]
    best = worth.clip(0).mean()
    assert (yes * worth).mean() > 0.8 * best > rewards.mean()


@pytest.mark.parametrize("name", LEARNERS)
def test_nobodys_action_depends_on_their_group(name):
    decisions = learned(name).probabilities_by_group(stream(4000, 1)[0]).argmax(2)
    assert (decisions[:, 0] != decisions[:, 1]).mean() < 0.02


@pytest.mark.parametrize("method", [method for method in METHODS if method != "direct"])
@pytest.mark.parametrize("name", LEARNERS)
def test_values_are_the_full_informations_overall_and_by_group(name, method):
    """95 % intervals of 30 logs: fewer than 24 covering has a chance of 1 in 600."""
    model, covered = learned(name), {"everyone": 0, "f": 0, "m": 0}
    for seed in range(30):
        X, actions, rewards, propensities, s, worth = stream(600, 100 + seed)
        found = model.estimate_value(X, actions, rewards, propensities, sensitive_features=s, method=method)
        earned = model.predict_proba(X, sensitive_features=s)[:, 1] * worth
        assert list(found.by_group) == ["f", "m"]
        for group, estimate in {"everyone": found, **found.by_group}.items():
            # The people are given, so that only what is not known of them is uncertain.
            low, high = estimate.interval()
            covered[group] += low <= earned[np.isin(s, group) | (group == "everyone")].mean() <= high
    assert min(covered.values()) >= 24, covered


def test_one_policy_for_all_is_valued_by_group_too():
    X, actions, rewards, propensities, s, _ = stream(2000, 2)
    bandit = GradientBandit(epochs=2, random_state=0).fit_logged(X, actions, rewards, propensities)
    found = bandit.estimate_value(X, actions, rewards, propensities, sensitive_features=s)
    assert found[:2] == bandit.estimate_value(X, actions, rewards, propensities)[:2]
    of_f = [part[s == "f"] for part in (X, actions, rewards, propensities)]
    weighted = bandit.estimate_value(
        X, actions, rewards, propensities, sensitive_features=s, method="self_normalised"
    )
    assert weighted.by_group["f"] == bandit.estimate_value(*of_f, method="self_normalised")
    assert pickle.loads(pickle.dumps(found)) == found
    assert bandit.estimate_value(X, actions, rewards, propensities).by_group is None


def test_frames_with_categories_and_gaps_are_valued():
    X, actions, rewards, propensities, s, worth = stream(2000, 3)
    people = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        job=np.where(X[:, 0] > 0, "cook", "clerk"), sex=s
    )
    people.loc[::7, "a"] = np.nan
    model = CooperativeBoosting(rounds=40, random_state=0)
    model.fit_logged(people, actions, rewards, propensities, sensitive_features="sex")
    found = model.estimate_value(people, actions, rewards, propensities)
    assert found.value > 0.5 * worth.clip(0).mean()
    assert list(found.by_group) == ["f", "m"]


@pytest.mark.parametrize("name", LEARNERS)
def test_a_log_without_propensities_or_with_a_group_never_met_is_refused(name):
    X, actions, rewards, propensities, s, _ = stream(50, 4)
    with pytest.raises(ValueError, match="Got no propensities"):
        clone(LEARNERS[name]).fit_logged(X, actions, rewards, None, sensitive_features=s)
    with pytest.raises(ValueError, match="Got group 'x' in sensitive_features, but fit saw only"):
        learned(name).estimate_value(X, actions, rewards, propensities, sensitive_features=["x"] * 50)
