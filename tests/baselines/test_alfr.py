from __future__ import annotations

import numpy as np
import pytest
import skops.io

from evenhand.baselines import ALFR, CollapseWarning


def discrimination(decisions, s):
    return abs((decisions[s == "m"] == "yes").mean() - (decisions[s == "f"] == "yes").mean())


def test_it_removes_a_planted_group_signal_and_keeps_merit(planted):
    X, y, s = planted
    unfair = ALFR(adversary_weight=0, random_state=0).fit(X, y, sensitive_features=s)
    fair = ALFR(adversary_weight=10, adversary_steps=5, epochs=100, random_state=0)
    fair.fit(X, y, sensitive_features=s)
    assert discrimination(unfair.predict(X), s) > 0.45
    assert discrimination(fair.predict(X), s) < 0.1
    assert ((fair.predict(X) == "yes") == (X[:, 0] > 0)).mean() > 0.9


def test_more_adversary_less_discrimination(planted):
    X, y, s = planted
    found = [
        discrimination(
            ALFR(adversary_weight=weight, adversary_steps=3, epochs=40, random_state=0)
            .fit(X, y, sensitive_features=s)
            .predict(X),
            s,
        )
        for weight in (0.0, 3.0, 10.0)
    ]
    assert found[0] > 2 * found[1] > 2 * found[2]


def test_the_decoder_makes_the_representation_hold_the_features(planted):
    X, y, s = planted

    def explained(weight):
        model = ALFR(reconstruction_weight=weight, adversary_weight=0, epochs=40, random_state=0)
        representation = model.fit(X, y, sensitive_features=s).transform(X)
        known = np.column_stack([representation, np.ones(len(X))])
        noise = X[:, 2]  # of no use to the classifier
        rest = noise - known @ np.linalg.lstsq(known, noise, rcond=None)[0]
        return 1 - rest.var() / noise.var()

    assert explained(5.0) > 0.95


def test_one_group_is_an_ordinary_network(planted):
    X, y, _ = planted
    model = ALFR(random_state=0).fit(X, y)
    assert (model.predict(X) == y).mean() > 0.9


def test_the_representation(planted):
    X, y, s = planted
    model = ALFR(7, epochs=2, random_state=0).fit(X, y, sensitive_features=s)
    representation = model.transform(X)
    assert representation.shape == (2000, 7)
    assert np.abs(representation).max() <= 1
    assert model.get_feature_names_out().tolist() == [f"alfr{i}" for i in range(7)]
    again = ALFR(7, epochs=2, random_state=0).fit_transform(X, y, sensitive_features=s)
    assert np.array_equal(representation, again)


def test_a_checkpoint_does_not_move_with_the_training(planted):
    X, y, s = planted
    kept = []
    model = ALFR(epochs=2, checkpoint_every=20, random_state=0)
    model.fit(X, y, sensitive_features=s, callback=lambda step, fitted: kept.append(fitted.encoder_))
    assert len(kept) == 7
    assert not np.array_equal(kept[0].W1, kept[1].W1)


def test_a_collapse_names_the_weight():
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(500, 2)), rng.integers(0, 2, 500)
    y = (rng.random(500) < 0.1).astype(int)
    with pytest.warns(
        CollapseWarning, match=r"ALFR decides 0 for all 500 people.*Lower adversary_weight \(now 1\)"
    ):
        ALFR(random_state=0).fit(X, y, sensitive_features=s)
    with pytest.warns(CollapseWarning, match="Raise classifier_weight"):
        ALFR(adversary_weight=0, random_state=0).fit(X, y, sensitive_features=s)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_divergence_says_what_to_lower(planted):
    X, y, s = planted
    with pytest.raises(ValueError, match=r"Training diverged.*Lower learning_rate \(now 1e\+38\)"):
        ALFR(learning_rate=1e38, epochs=1, random_state=0).fit(X, y, sensitive_features=s)


def test_a_skops_file_gives_back_the_same_model(planted):
    X, y, s = planted
    model = ALFR(epochs=1, random_state=0).fit(X, y, sensitive_features=s)
    written = skops.io.dumps(model)
    untrusted = skops.io.get_untrusted_types(data=written)
    assert set(untrusted) == {"evenhand.baselines.alfr.ALFR", "evenhand.network.Network"}
    loaded = skops.io.loads(written, trusted=untrusted)
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
