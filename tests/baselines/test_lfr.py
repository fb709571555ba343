from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from evenhand.baselines import LFR, CollapseWarning
from evenhand.baselines._prototypes import Losses, People, objective


def discrimination(decisions, s):
    return abs((decisions[s == "m"] == "yes").mean() - (decisions[s == "f"] == "yes").mean())


@pytest.mark.parametrize("distance", ["weighted", "euclidean"])
def test_it_removes_a_planted_group_signal_and_keeps_merit(planted, distance):
    X, y, s = planted
    unfair = LFR(parity_weight=0, distance=distance, random_state=0).fit(X, y, sensitive_features=s)
    fair = LFR(parity_weight=10, distance=distance, random_state=0).fit(X, y, sensitive_features=s)

    def leak(model):
        representation = model.transform(X, sensitive_features=s)
        return cross_val_score(LogisticRegression(), representation, s, cv=3).mean()

    assert leak(unfair) > 0.9
    assert leak(fair) < 0.55
    assert discrimination(unfair.predict(X, sensitive_features=s), s) > 0.5
    assert discrimination(fair.predict(X, sensitive_features=s), s) < 0.05
    decided, merit = fair.predict(X, sensitive_features=s) == "yes", X[:, 0] > 0
    assert (decided == merit).mean() > 0.9


def test_rounding_the_corner_beats_stopping_on_it(planted, monkeypatch):
    X, y, s = planted
    rounded = LFR(parity_weight=10, random_state=0).fit(X, y, sensitive_features=s)
    monkeypatch.setattr("evenhand.baselines.lfr.SMOOTHINGS", (0.0, 0.0))
    stuck = LFR(parity_weight=10, random_state=0).fit(X, y, sensitive_features=s)
    assert rounded.objective_ < stuck.objective_


def test_the_objective_falls_and_is_the_exact_one(planted):
    X, y, s = planted
    people = People.gather(X, (y == "yes").astype(np.int64), (s == "m").astype(np.int64))
    values = []

    def watch(step, model):
        values.append(objective(model.prototypes_, people, Losses(0.01, 1.0, 1.0), weighted=True)[0])

    model = LFR(random_state=0, checkpoint_every=25).fit(X, y, sensitive_features=s, callback=watch)
    assert values[-1] == model.objective_
    assert values[-1] < values[0]
    assert model.objective_ == pytest.approx(
        0.01 * model.losses_.reconstruction + model.losses_.classifier + model.losses_.parity
    )


def test_bounds_hold(planted):
    X, y, s = planted
    label, place, scale = LFR(random_state=0).fit(X, y, sensitive_features=s).prototypes_
    assert (label >= 0).all()
    assert (label <= 1).all()
    assert place.shape == (10, 3)
    assert (scale >= 0).all()


def test_the_reconstruction_is_near_when_that_is_all_that_counts():
    rng = np.random.default_rng(0)
    centres = np.array([[5.0, 5.0], [-5.0, 5.0], [0.0, -5.0]])
    X = centres[np.arange(300) % 3] + 0.1 * rng.normal(size=(300, 2))
    y, s = np.arange(300) % 3 == 0, rng.integers(0, 2, 300)
    model = LFR(3, reconstruction_weight=1, classifier_weight=0.01, parity_weight=0, random_state=0)
    model.fit(X, y, sensitive_features=s)
    rebuilt = model.reconstruct(X, sensitive_features=s)
    assert np.abs(rebuilt - centres[np.arange(300) % 3]).max() < 0.5


def test_names_and_frames(planted):
    X, y, s = planted
    model = LFR(3, random_state=0).set_output(transform="pandas")
    out = model.fit(X, y, sensitive_features=s).transform(X, sensitive_features=s)
    assert isinstance(out, pd.DataFrame)
    assert out.columns.tolist() == ["lfr0", "lfr1", "lfr2"]
    assert np.allclose(out.sum(axis=1), 1)
    again = LFR(3, random_state=0).fit_transform(X, y, sensitive_features=s)
    assert np.array_equal(again, out.to_numpy())


def test_more_prototypes_than_people():
    X, y = [[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1]
    model = LFR(10, random_state=0).fit(X, y, sensitive_features=[0, 1, 0, 1])
    assert model.predict(X, sensitive_features=[0, 1, 0, 1]).tolist() == y


def test_a_collapse_names_the_weight_to_lower():
    rng = np.random.default_rng(0)
    s = (rng.random(1000) < 0.3).astype(int)
    X = (3 * s + rng.normal(size=1000))[:, None]
    fine = LFR(parity_weight=0.1, random_state=0).fit(X, s, sensitive_features=s)
    assert len(set(fine.predict(X, sensitive_features=s))) == 2
    with pytest.warns(
        CollapseWarning, match=r"LFR decides 0 for all 1000 people.*Lower parity_weight \(now 50\)"
    ):
        LFR(parity_weight=50, random_state=0).fit(X, s, sensitive_features=s)


def test_a_skops_file_gives_back_the_same_model(planted):
    X, y, s = planted
    model = LFR(random_state=0, max_iter=20).fit(X, y, sensitive_features=s)
    written = skops.io.dumps(model)
    untrusted = skops.io.get_untrusted_types(data=written)
    assert all(name.startswith("evenhand.baselines.") for name in untrusted)
    loaded = skops.io.loads(written, trusted=untrusted)
    assert np.array_equal(loaded.probabilities_by_group(X), model.probabilities_by_group(X))
