"""LFR's objective beside AIF360's two, at the same parameters; their definitions differ in known ways.

Both of AIF360's take the plain Euclidean distance without α, and take means over features (in L_x) and over
prototypes (in L_z). The older one adds the two groups' mean errors where the newer takes the mean over people.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from evenhand.baselines import LFR
from evenhand.baselines._prototypes import Losses, People, Prototypes, objective
from factories import make_arrays

A_X, A_Y, A_Z = 0.3, 1.1, 2.0
K, FEATURES = 4, 6


@pytest.fixture
def people():
    return make_arrays(200, FEATURES, groups=(0, 1), labels=(0, 1))


def ours(X, y, s, label, place):
    weights = Losses(A_X / FEATURES, A_Y, A_Z / K)
    parameters = Prototypes(label, place, np.ones((2, FEATURES)))
    return objective(parameters, People.gather(X, y, s), weights, weighted=False)


def test_the_older_class_up_to_its_two_means(people):
    helpers = pytest.importorskip("aif360.algorithms.preprocessing.lfr_helpers.helpers")
    X, y, s = people
    rng = np.random.default_rng(1)
    label, place = rng.random(K), rng.normal(size=(K, FEATURES))
    helpers.LFR_optim_objective.steps = 0
    theirs = helpers.LFR_optim_objective(
        np.concatenate([label, place.ravel()]), X[s == 0], X[s == 1], y[s == 0], y[s == 1],
        K, A_X, A_Y, A_Z, verbose=0,
    )  # fmt: skip
    _, _, losses = ours(X, y, s, label, place)
    group_means = sum(
        objective(
            Prototypes(label, place, np.ones((1, FEATURES))),
            People.gather(X[s == code], y[s == code], np.zeros((s == code).sum(), dtype=np.int64)),
            Losses(1.0, 0.0, 0.0),
            weighted=False,
        )[0]
        for code in (0, 1)
    )
    normalised = A_X * group_means / FEATURES + A_Y * losses.classifier + A_Z * losses.parity / K
    assert normalised == pytest.approx(theirs)


@pytest.mark.filterwarnings("ignore")  # AIF360's imports
def test_the_scikit_learn_style_class(people, monkeypatch):
    pytest.importorskip("torch")
    module = pytest.importorskip("aif360.sklearn.preprocessing.learning_fair_representations")
    X, y, s = people
    evaluated = []

    def watch(fun, x0, args, **others):
        value, gradient = fun(x0, *args)
        evaluated.append((x0.copy(), value, np.array(gradient)))
        return minimize(fun, x0, args=args, **others)

    minimize = module.optim.minimize
    monkeypatch.setattr(module.optim, "minimize", watch)
    frame = pd.DataFrame(X, index=pd.MultiIndex.from_arrays([s], names=["s"]))
    theirs = module.LearnedFairRepresentations(
        "s", n_prototypes=K, reconstruct_weight=A_X, target_weight=A_Y, fairness_weight=A_Z, random_state=0
    ).fit(frame, pd.Series(y, index=frame.index))
    start, value, gradient = evaluated[0]
    our_value, our_gradient, _ = ours(X, y, s, start[:K], start[K:].reshape(K, FEATURES))
    assert our_value == pytest.approx(value)
    assert np.allclose(np.concatenate([our_gradient.label, our_gradient.place.ravel()]), gradient)

    model = LFR(
        K, reconstruction_weight=A_X / FEATURES, classifier_weight=A_Y, parity_weight=A_Z / K,
        distance="euclidean", random_state=0,
    ).fit(X, y, sensitive_features=s)  # fmt: skip
    reached, _, _ = ours(X, y, s, theirs.coef_.ravel(), theirs.prototypes_)
    assert model.objective_ <= reached + 1e-3
    model.prototypes_ = Prototypes(theirs.coef_.ravel(), theirs.prototypes_, np.ones((2, FEATURES)))
    assert np.allclose(model.predict_proba(X), theirs.predict_proba(frame))
    assert np.allclose(model.reconstruct(X), theirs.transform(frame))
