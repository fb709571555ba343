from __future__ import annotations

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import value_and_grad

from evenhand.baselines._adversarial import (
    Adam,
    Batch,
    Game,
    Players,
    Weights,
    adversary_gradient,
    encoder_gradient,
    one_hot,
    represent,
    start_players,
)
from evenhand.network import Network


@pytest.fixture
def game():
    rng = np.random.default_rng(0)
    players = start_players(5, 3, 4, 2, 3, rng)
    rows = rng.normal(size=(7, 5))
    return players, Batch(rows, np.eye(2)[rng.integers(0, 2, 7)], np.eye(3)[rng.integers(0, 3, 7)])


def forward(network, x):
    W1, b1, W2, b2 = network
    return anp.dot(anp.maximum(anp.dot(x, W1) + b1, 0), W2.T) + b2


def cross_entropy(logits, wanted):
    return -anp.mean(anp.sum(wanted * (logits - anp.log(anp.sum(anp.exp(logits), 1, keepdims=True))), 1))


def what_the_encoder_minimises(players, batch, weights, bounded=True):
    encoder, classifier, decoder, adversary = players
    representation = forward(encoder, batch.rows)
    representation = anp.tanh(representation) if bounded else representation
    rebuilt = forward(decoder, anp.concatenate([representation, batch.groups], 1))
    return (
        weights.classifier * cross_entropy(forward(classifier, representation), batch.labels)
        + weights.reconstruction * anp.mean((rebuilt - batch.rows) ** 2)
        - weights.adversary * cross_entropy(forward(adversary, representation), batch.groups)
    )


@pytest.mark.parametrize(
    "weights", [Weights(1.3, 0.4, 0.8), Weights(1, 0, 1), Weights(1, 2, 0), Weights(0, 1, 1)]
)
@pytest.mark.parametrize("bounded", [True, False])
def test_the_encoders_gradient_equals_automatic_differentiation(game, weights, bounded):
    players, batch = game
    made = represent(players.encoder, batch.rows, bounded=bounded)
    loss, gradient = encoder_gradient(players, batch, weights, *made, bounded=bounded)
    wanted, wanted_gradient = value_and_grad(what_the_encoder_minimises)(
        tuple(map(tuple, players)), batch, weights, bounded
    )
    assert loss == pytest.approx(wanted)
    for name in ("encoder", "classifier", "decoder") if weights.reconstruction else ("encoder", "classifier"):
        for part, wanted_part in zip(
            getattr(gradient, name), wanted_gradient[Players._fields.index(name)], strict=True
        ):
            assert np.allclose(part, wanted_part, atol=1e-14)


def test_the_adversarys_gradient_equals_automatic_differentiation(game):
    players, batch = game
    _, representation = represent(players.encoder, batch.rows)
    loss, gradient = adversary_gradient(players.adversary, representation, batch.groups)
    wanted, wanted_gradient = value_and_grad(
        lambda adversary: cross_entropy(forward(adversary, representation), batch.groups)
    )(tuple(players.adversary))
    assert loss == pytest.approx(wanted)
    for part, wanted_part in zip(gradient, wanted_gradient, strict=True):
        assert np.allclose(part, wanted_part, atol=1e-14)


def test_adam_moves_as_it_is_written_down():
    rng = np.random.default_rng(0)
    net = Network(rng.normal(size=(2, 3)), rng.normal(size=3), rng.normal(size=(1, 3)), rng.normal(size=1))
    adam = Adam((net,), 0.01)
    flat = np.concatenate([part.ravel() for part in net])
    first, second = np.zeros_like(flat), np.zeros_like(flat)
    for step in range(1, 30):
        gradient = Network(*(rng.normal(size=part.shape).astype(np.float32) for part in net))
        adam.step(gradient)
        g = np.concatenate([part.ravel() for part in gradient])
        first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g**2
        flat -= 0.01 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    assert np.allclose(adam.flat, flat, atol=1e-5)
    assert np.shares_memory(adam.networks[0].W1, adam.flat)


def test_the_others_wait_while_the_adversary_learns(game):
    players, batch = game
    batch = Batch(*(part.astype(np.float32) for part in batch))
    play = Game(players, Weights(1.0, 0.0, 1.0), 0.01, adversary_steps=3)
    moved = []
    for _ in range(6):
        before = play.makers.flat.copy(), play.breaker.flat.copy()
        play.play(batch)
        moved.append([(play.makers.flat != before[0]).any(), (play.breaker.flat != before[1]).any()])
    assert np.array(moved)[:, 0].tolist() == [False, False, True, False, False, True]
    assert np.array(moved)[:, 1].all()


def test_one_hot():
    assert one_hot(np.array([1, 0]), 3).tolist() == [[0, 1, 0], [1, 0, 0]]
