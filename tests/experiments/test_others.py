"""What stands beside ours in the comparison does what its name says."""

from __future__ import annotations

import importlib

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from evenhand.datasets import Dataset
from evenhand.metrics.selection import CRITERIA
from evenhand.protocol.grids import Method
from evenhand.protocol.trial import make_ready, train_and_select

others = importlib.import_module("others")


@pytest.fixture(scope="module")
def people():
    """Labels lean on the group through a proxy."""
    rng = np.random.default_rng(0)
    s = rng.choice(["f", "m"], 3000)
    X = rng.normal(size=(3000, 3))
    X[:, 1] += 1.5 * (s == "m")
    y = np.where(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=3000) > 0.7, "yes", "no")
    return X, y, s


def gap(decided, s):
    return abs((decided[s == "f"] == "yes").mean() - (decided[s == "m"] == "yes").mean())


def test_a_blind_network_learns_as_logistic_regression_does_without_a_bound(people):
    X, y, s = people
    model = others.BlindNetwork(bound=1.0).fit(X, y, sensitive_features=s)
    wanted = LogisticRegression().fit(X, y).predict(X)
    assert (model.predict(X) == wanted).mean() > 0.97
    assert gap(wanted, s) > 0.3


@pytest.mark.parametrize(("bound", "near"), [(0.0, 0.0), (0.2, 0.2)])
def test_a_blind_networks_rates_end_at_the_bound_and_nobody_flips(people, bound, near):
    X, y, s = people
    model = others.BlindNetwork(bound=bound).fit(X, y, sensitive_features=s)
    assert gap(model.predict(X), s) == pytest.approx(near, abs=0.04)
    by_group = model.probabilities_by_group(X).argmax(2)
    np.testing.assert_array_equal(by_group[:, 0], by_group[:, 1])
    assert (model.predict(X) == y).mean() > 0.6


@pytest.mark.parametrize("kind", ["DrawnGradient", "DrawnThresholds"])
def test_drawn_decisions_are_yes_or_no_and_what_differs_is_kept(people, kind):
    X, y, s = people
    seen = []
    model = getattr(others, kind)().fit(
        X, y, sensitive_features=s, callback=lambda step, model: seen.append(step)
    )
    said = model.predict_proba(X, sensitive_features=s)
    assert set(np.unique(said)) == {0.0, 1.0}
    assert seen == [model.n_steps_]
    plain = type(model).__mro__[2](**model.get_params()).fit(X, y, sensitive_features=s)
    assert model.history_["draws_differ"] == [pytest.approx(plain.draws_differ(X, sensitive_features=s))]
    assert gap(model.predict(X, sensitive_features=s), s) < 0.1


def test_trees_take_sparse_rows(people):
    X, y, _ = people
    plain = HistGradientBoostingClassifier(random_state=0).fit(X, y).predict_proba(X)
    ours = others.Trees(random_state=0).fit(sparse.csr_array(X), y)
    np.testing.assert_array_equal(ours.predict_proba(sparse.csr_array(X)), plain)


def test_what_differs_between_draws_reaches_a_sweeps_results(people):
    X, y, s = people
    label, sensitive = pd.Series(y, name="hired"), pd.DataFrame({"sex": s})
    dataset = Dataset("made-up", pd.DataFrame(X, columns=list("abc")), label, sensitive, pos_label="yes")
    method = Method("drawn", lambda seed, **point: others.DrawnThresholds(**point))
    found = train_and_select(make_ready(dataset, 0, "random"), method, {}, 0, CRITERIA)
    (share,) = found["curve"]["draws_differ"]
    assert 0 <= share < 0.5
    assert found["checkpoints"] == 1
