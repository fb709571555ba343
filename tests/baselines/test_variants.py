"""What sets the authors' variant of each baseline apart, against a direct computation."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from evenhand.baselines import ALFR, LFR, Rawlsian
from evenhand.baselines._adversarial import (
    Adam,
    Batch,
    Game,
    Weights,
    adversary_gradient,
    encoder_gradient,
    one_hot,
    represent,
    start_players,
)
from evenhand.baselines._prototypes import Losses, People, objective


@pytest.mark.parametrize("made", [Rawlsian, LFR, ALFR])
def test_an_unknown_variant_is_refused(planted, made):
    X, y, s = planted
    with pytest.raises(ValueError, match="Got variant='author'.*Did you mean 'authors'"):
        made(variant="author").fit(X, y, sensitive_features=s)


def test_rawlsian_learns_from_every_candidate_in_the_rows_order(planted):
    X, y, s = planted
    asked = {}
    model = Rawlsian(3.0, variant="authors", fit_intercept=False, checkpoint_every=700)
    model.fit(X, y, sensitive_features=s, callback=lambda step, m: asked.update({step: m.coef_.copy()}))
    assert max(asked) == model.n_steps_ == 2 * len(X)
    assert len(model.selected_) == 0
    for rounds, coef in asked.items():
        for code, name in enumerate(model.groups_):
            people = np.resize(np.flatnonzero(s == name), rounds)
            V = 3.0 * np.eye(X.shape[1]) + X[people].T @ X[people]
            np.testing.assert_allclose(coef[code], np.linalg.solve(V, X[people].T @ (y[people] == "yes")))


def test_rawlsians_chance_and_delta_play_no_part(planted):
    X, y, s = planted
    one, other = (
        Rawlsian(variant="authors", delta=delta, random_state=seed).fit(X, y, sensitive_features=s)
        for seed, delta in ((0, 0.3), (1, 0.9))
    )
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_lfr_adds_up_what_the_literature_averages(planted):
    X, y, s = planted
    weights = {"reconstruction_weight": 0.01, "classifier_weight": 0.5, "parity_weight": 5.0}
    model = LFR(4, variant="authors", random_state=0, max_iter=20, **weights).fit(X, y, sensitive_features=s)
    label, place, scale = model.prototypes_
    x_error = y_error = 0.0
    means = []
    for code, name in enumerate(model.groups_):
        rows, labels = X[s == name], y[s == name] == "yes"
        far = ((rows[:, None] - place[None]) ** 2 * scale[code]).sum(2)
        M = np.exp(-far + far.min(1, keepdims=True))
        M /= M.sum(1, keepdims=True)
        guess = np.clip(M @ label, 1e-15, 1 - 1e-15)
        x_error += ((rows - M @ place) ** 2).sum()
        y_error -= np.log(np.where(labels, guess, 1 - guess)).sum()
        means.append(M.mean(0))
    parity = np.abs(means[0] - means[1]).sum()
    np.testing.assert_allclose(model.losses_, [x_error, y_error, parity], rtol=1e-6)
    assert model.objective_ == pytest.approx(0.01 * x_error + 0.5 * y_error + 5 * parity)
    # The same as the literature's objective, times the people, with A_z divided by them.
    people = People.gather(X, (y == "yes").astype(np.int64), np.searchsorted(model.groups_, s))
    value, _, _ = objective(model.prototypes_, people, Losses(0.01, 0.5, 5 / len(X)), weighted=True)
    assert model.objective_ == pytest.approx(len(X) * value)


def test_lfr_starts_anywhere_in_the_unit_cube(planted):
    X, y, s = planted
    model = LFR(5, variant="authors", random_state=0)
    model._admit(X, y, s)
    for part in model._start(X, np.random.default_rng(0)):
        assert 0 <= part.min() < 0.3
        assert 0.6 < part.max() <= 1


def test_alfrs_adversary_moves_last_and_sees_what_the_others_made():
    rng = np.random.default_rng(0)
    players, weights = start_players(5, 3, 4, 2, 2, rng), Weights(1.0, 0.0, 0.7)
    rows = rng.normal(size=(8, 5)).astype(np.float32)
    batch = Batch(rows, one_hot(rng.integers(0, 2, 8), 2), one_hot(rng.integers(0, 2, 8), 2))
    game = Game(copy.deepcopy(players), weights, 0.05, 1, bounded=False, adversary_last=True)
    game.play(batch)

    makers = Adam((players.encoder, players.classifier), 0.05)
    hidden, representation = represent(players.encoder, rows, bounded=False)
    np.testing.assert_allclose(
        representation, np.maximum(rows @ players.encoder.W1 + players.encoder.b1, 0) @ players.encoder.W2.T
        + players.encoder.b2, rtol=1e-5,
    )  # fmt: skip
    _, gradient = encoder_gradient(players, batch, weights, hidden, representation, bounded=False)
    makers.step(gradient.encoder, gradient.classifier)
    breaker = Adam((players.adversary,), 0.05)
    moved = represent(makers.networks[0], rows, bounded=False)[1]
    breaker.step(adversary_gradient(players.adversary, moved, batch.groups)[1])
    for got, wanted in (
        (game.players.encoder, makers.networks[0]),
        (game.players.classifier, makers.networks[1]),
        (game.players.adversary, breaker.networks[0]),
    ):
        for mine, theirs in zip(got, wanted, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_alfrs_representation_is_the_encoders_output(planted):
    X, y, s = planted
    model = ALFR(variant="authors", random_state=0, epochs=3).fit(X, y, sensitive_features=s)
    encoder = model.encoder_
    output = np.maximum(X @ encoder.W1 + encoder.b1, 0) @ encoder.W2.T + encoder.b2
    np.testing.assert_allclose(model.transform(X), output)
    assert np.abs(output).max() > 1  # where a tanh could not reach
