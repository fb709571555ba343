"""Equal opportunity from a log that shows the label after one action only."""

import numpy as np
import pytest
from sklearn.base import clone

from evenhand import (
    CooperativeBandits,
    CooperativeBoosting,
    CooperativeEnsemble,
    EqualizedOdds,
    EqualOpportunity,
    Parity,
)
from evenhand.bandits import deciding
from evenhand.bandits.revealing import revealed

REWARD = EqualOpportunity(bound=0.0)
LEARNERS = {
    "networks": CooperativeBandits(0.0, reward=REWARD, random_state=0),
    "trees": CooperativeBoosting(0.0, reward=REWARD, random_state=0),
    "both": CooperativeEnsemble(0.0, reward=REWARD, random_state=0),
}


def stream(n=6000, seed=0):
    """In group m, the worthy are those whose first column is high; in f, that column says less about them.

    The old policy grants by the second column: it sees the worthy of f where they are easily told apart, and
    seldom those who are not.
    """
    rng = np.random.default_rng(seed)
    s = rng.choice(["f", "m"], n)
    worthy = rng.random(n) < 0.5
    hard = (s == "f") & (rng.random(n) < 0.6)
    X = np.c_[
        (2 * worthy - 1) * np.where(hard, 0.3, 1.2) + rng.normal(size=n), hard + 0.3 * rng.normal(size=n)
    ]
    chance = np.where(hard, 0.12, 0.88)
    grant = rng.random(n) < chance
    actions = np.where(grant, "grant", "deny")
    labels = np.where(grant, np.where(worthy, "grant", "deny"), None)
    rewards = np.where(grant, np.where(worthy, 1.0, -1.0), 0.0)
    return X, s, worthy, actions, rewards, np.where(grant, chance, 1 - chance), labels


def gap(model, seed=1):
    """The true difference between the groups in how often the worthy are granted."""
    X, s, worthy, *_ = stream(20_000, seed)
    yes = model.predict(X, sensitive_features=s) == "grant"
    rates = [yes[worthy & (s == group)].mean() for group in ("f", "m")]
    return abs(rates[0] - rates[1])


@pytest.mark.parametrize("name", LEARNERS)
def test_it_holds_for_people_whose_label_nobody_saw(name, monkeypatch):
    X, s, _, actions, rewards, propensities, labels = stream()
    log = {"sensitive_features": s, "labels": labels, "reveals": {"grant"}}
    model = clone(LEARNERS[name])
    fair = gap(model.fit_logged(X, actions, rewards, propensities, **log))
    free = clone(model).set_params(reward=Parity(bound=1.0))
    free = gap(free.fit_logged(X, actions, rewards, propensities, **log))
    # If each label seen counts for one, the rates are right for the people that the old policy granted.
    monkeypatch.setattr(deciding, "revealed", lambda labels, *more: (np.asarray(labels), np.ones(len(s))))
    naive = gap(clone(model).fit_logged(X, actions, rewards, propensities, **log))
    assert fair < 0.08 < 0.12 < min(naive, free)


def test_who_stands_for_whom():
    labels = ["a", None, "b", np.nan]
    given, shares = revealed(
        labels, {"a"}, ["a", "b", "a", "b"], ["a", "b"], np.array([0.5, 0.5, 0.05, 0.9]), 10.0
    )
    assert list(given[[0, 2]]) == ["a", "b"]
    np.testing.assert_allclose(shares, [2, 1, 10, 1])
    everyone = revealed(["a", "b"], None, ["a", "b"], ["a", "b"], np.array([0.1, 0.1]), 10.0)[1]
    assert everyone.tolist() == [1, 1]


def test_on_average_everybody_stands_for_one():
    rng = np.random.default_rng(0)
    chances = rng.dirichlet([2, 2, 2], 50_000)
    taken = (chances.cumsum(1) < rng.random((50_000, 1))).sum(1)
    labels = np.where(taken < 2, 1, None)
    p = chances[np.arange(50_000), taken]
    shares = np.where(taken < 2, revealed(labels, {0, 1}, taken, [0, 1, 2], p, np.inf)[1], 0)
    high = chances[:, 2] > 0.5  # rarely revealed
    assert shares.mean() == pytest.approx(1, abs=0.03)
    assert shares[high].mean() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("term", [EqualOpportunity(), EqualizedOdds()])
def test_a_log_that_shows_no_label_is_refused(name, term):
    X, s, _, actions, rewards, propensities, labels = stream(200)
    model = clone(LEARNERS[name]).set_params(reward=term)
    log = X, actions, rewards, propensities
    with pytest.raises(ValueError, match="but a log has no labels: expected terms that need none"):
        model.fit_logged(*log, sensitive_features=s)
    for reveals, wanted in (
        (set(), r"Got reveals=\[\], but no action of the log is one of these"),
        ({"wait"}, r"Got reveals=\['wait'\], but the actions are 'deny', 'grant'"),
        (None, "Got no label after the action 'deny' in row"),
        ({"deny"}, "Got .* label after the action"),
    ):
        with pytest.raises(ValueError, match=wanted):
            model.fit_logged(*log, sensitive_features=s, labels=labels, reveals=reveals)
    with pytest.raises(ValueError, match="but no labels; expected both"):
        model.fit_logged(*log, sensitive_features=s, reveals={"grant"})
    wrong = np.where(labels == "grant", "granted", labels)
    with pytest.raises(ValueError, match="Got label 'granted', but expected the action that was right"):
        model.fit_logged(*log, sensitive_features=s, labels=wrong, reveals={"grant"})
    with pytest.raises(ValueError, match="Got labels of shape"):
        model.fit_logged(*log, sensitive_features=s, labels=labels[:-1], reveals={"grant"})
