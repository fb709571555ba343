"""Sample weights and class weights: what a person counts in training and in the groups' rates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from evenhand import (
    CooperativeBandits,
    CooperativeBoosting,
    CooperativeEnsemble,
    GradientBandit,
    Likelihood,
    LogRatio,
    Parity,
)
from evenhand.metrics import calibration_error, discrimination
from factories import make_arrays

X, Y, S = make_arrays(600)
WEIGHTS = np.random.default_rng(0).integers(0, 4, len(Y))
QUICK = {"random_state": 0}
LEARNERS = {
    "bandits": (CooperativeBandits(epochs=5, **QUICK), {"sensitive_features": S}),
    "parity": (CooperativeBandits(3, reward="likelihood + log_ratio + parity", epochs=5, **QUICK),
               {"sensitive_features": S}),
    "gradient": (GradientBandit(epochs=5, **QUICK), {}),
    "boosting": (CooperativeBoosting(reward="likelihood + log_ratio + parity", rounds=10, **QUICK),
                 {"sensitive_features": S}),
    "ensemble": (CooperativeEnsemble(bandits=CooperativeBandits(epochs=5), boosting=CooperativeBoosting(rounds=10),
                                     **QUICK), {"sensitive_features": S}),
}  # fmt: skip


def said(model):
    return model.probabilities_by_group(X) if hasattr(model, "groups_") else model.predict_proba(X)


def fitted(name, *, sample_weight=None, rows=slice(None), **options):
    model, given = LEARNERS[name]
    given = {key: value[rows] for key, value in given.items()}
    return clone(model).set_params(**options).fit(X[rows], Y[rows], sample_weight, **given)


@pytest.mark.parametrize("name", LEARNERS)
def test_what_weights_mean(name):
    plain, ones = said(fitted(name)), said(fitted(name, sample_weight=np.ones(len(Y))))
    np.testing.assert_array_equal(ones, plain)
    weighted = said(fitted(name, sample_weight=WEIGHTS))
    assert np.abs(weighted - plain).max() > 0.001
    # In any unit; and a person of weight 0 might as well not be there.
    np.testing.assert_allclose(said(fitted(name, sample_weight=1000.0 * WEIGHTS)), weighted, atol=1e-6)
    there = WEIGHTS > 0
    np.testing.assert_array_equal(
        said(fitted(name, sample_weight=WEIGHTS[there], rows=there)),
        said(fitted(name, sample_weight=WEIGHTS)),
    )


@pytest.mark.parametrize("name", LEARNERS)
def test_class_weights_are_weights_by_label(name):
    cost = np.where(Y == "yes", 5.0, 1.0)
    by_label = fitted(name, class_weight={"yes": 5})
    if name not in ("parity", "boosting"):  # in rates, only whom a person stands for counts
        np.testing.assert_allclose(said(by_label), said(fitted(name, sample_weight=cost)), atol=1e-6)
    plain = fitted(name)
    given = LEARNERS[name][1]
    shares = [np.mean(model.predict(X, **given) == "yes") for model in (plain, by_label)]
    assert shares[1] > shares[0] + 0.05
    counts = WEIGHTS @ (Y == "yes"), WEIGHTS @ (Y == "no")
    balanced = fitted(name, class_weight="balanced", sample_weight=WEIGHTS)
    by_hand = fitted(name, class_weight={"yes": 1 / counts[0], "no": 1 / counts[1]}, sample_weight=WEIGHTS)
    np.testing.assert_allclose(said(balanced), said(by_hand), atol=1e-6)


@pytest.mark.parametrize("reward", ["likelihood + log_ratio", "correctness + jensen_shannon"])
def test_whole_batches_learn_from_a_weight_as_from_so_many_people(reward):
    few = slice(60)
    weights, times = WEIGHTS[few] + 1, np.repeat(np.arange(60), WEIGHTS[few] + 1)
    models = []
    for rows, weight in ((np.arange(60), weights), (times, None)):
        model = CooperativeBandits(2, reward=reward, optimizer="adam", schedule="constant", order="file", standardize=False,
                                   batch_size=len(rows), epochs=30, **QUICK)  # fmt: skip
        models.append(model.fit(X[rows], Y[rows], weight, sensitive_features=S[rows]))
    np.testing.assert_allclose(*(said(model) for model in models), atol=1e-4)
    assert np.abs(said(models[0]) - 0.5).max() > 0.01


def test_small_batches_do_on_average():
    X, y, s = make_arrays(3000, seed=1)
    weights = np.where(y == "yes", 3, 1)
    times = np.repeat(np.arange(3000), weights)
    model = CooperativeBandits(random_state=0)
    weighted, repeated, plain = (
        model.fit(X[rows], y[rows], weight, sensitive_features=s[rows]).predict_proba(X, sensitive_features=s)
        for rows, weight in ((slice(None), weights), (times, None), (slice(None), None))
    )
    assert np.abs(weighted - repeated).mean() < 0.02
    assert np.abs(weighted - plain).mean() > 0.05


@pytest.mark.parametrize("learner", [CooperativeBandits, CooperativeBoosting])
def test_parity_holds_among_the_people_that_the_sample_stands_for(learner):
    """Men who score high stand for many: the rate of the men in the sample is not that of all men."""
    X, y, s = make_arrays(4000, seed=2)
    weights = np.where((s == "m") & (X[:, 0] > 0.3), 6.0, 1.0)
    reward = Likelihood() + LogRatio() + Parity()
    model = learner(1.0, reward=reward, random_state=0)
    apart = []
    for weight in (weights, None):
        decided = model.fit(X, y, weight, sensitive_features=s).predict(X, sensitive_features=s) == "yes"
        rates = [np.average(decided[s == g], weights=weights[s == g]) for g in ("f", "m")]
        apart.append(abs(rates[0] - rates[1]))
    assert apart[0] < 0.05 < apart[1]


def test_class_weight_finds_a_rare_label_where_calibrated_probabilities_decide_for_nobody():
    X, y, s = make_arrays(4000, bar=3.4)
    assert 0.02 < np.mean(y == "yes") < 0.08
    plain = CooperativeBandits(random_state=0).fit(X, y, sensitive_features=s)
    model = CooperativeBandits(class_weight="balanced", random_state=0).fit(X, y, sensitive_features=s)
    found = [np.mean(one.predict(X, sensitive_features=s)[y == "yes"] == "yes") for one in (plain, model)]
    assert found[0] < 0.7 < 0.85 < found[1]
    off = [calibration_error(y, one.predict_proba(X, sensitive_features=s)) for one in (plain, model)]
    assert off[0] < 0.03 < off[1]
    assert discrimination(y, model.predict(X, sensitive_features=s), sensitive_features=s) < 0.5


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sample_weight": WEIGHTS[1:]}, r"Got sample_weight of shape \(599,\), but expected one weight for each of 600"),
        ({"sample_weight": -WEIGHTS}, r"Got a sample_weight of -\d in row \d+, but expected finite numbers"),
        ({"sample_weight": np.full(600, np.nan)}, "Got a sample_weight of nan in row 0"),
        ({"sample_weight": np.zeros(600)}, "Got a sample_weight of zero for everybody, but expected some above 0"),
        ({"class_weight": "even"}, "Got class_weight='even', but expected None, 'balanced' or a dict"),
        ({"class_weight": {"yess": 2}}, r"Got 'yess' in class_weight, but fit saw only .* Did you mean 'yes'"),
        ({"class_weight": {"yes": -2}}, r"Got class_weight\['yes'\]=-2, but expected a finite number of at least 0"),
        ({"class_weight": {"yes": 0, "no": 0}}, "so nobody counts"),
    ],
)  # fmt: skip
def test_wrong_weights_are_an_error(name, given, message):
    with pytest.raises(ValueError, match=message):
        fitted(name, **given)


def test_sparse_rows_of_weight_zero_are_left_out():
    model = CooperativeBandits(epochs=5, standardize=False, **QUICK)
    dense = said(model.fit(X, Y, WEIGHTS, sensitive_features=S))
    np.testing.assert_allclose(
        said(model.fit(sparse.csr_array(X), Y, WEIGHTS, sensitive_features=S)), dense, atol=1e-4
    )


def test_weights_are_routed():
    with config_context(enable_metadata_routing=True):
        model = CooperativeBandits(epochs=2, **QUICK)
        model.set_fit_request(sample_weight=True, sensitive_features=True)
        model.set_score_request(sample_weight=True, sensitive_features=True)
        params = {"sample_weight": pd.Series(WEIGHTS), "sensitive_features": S}
        weighted = cross_val_score(model, X, Y, cv=3, params=params)
        model.set_fit_request(sample_weight=False).set_score_request(sample_weight=False)
        plain = cross_val_score(model, X, Y, cv=3, params={"sensitive_features": S})
    assert not np.allclose(weighted, plain)
