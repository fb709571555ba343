import autograd.numpy as anp
import numpy as np
import pytest
from autograd import grad
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.bandits.policy import (
    along_logits,
    expected_logit_gradient,
    log_probabilities,
    probabilities,
    score_gradient,
)
from evenhand.network import Network, input_gradient, start
from evenhand.network import forward as network_forward


def make(seed: int, d: int = 4, h: int = 6, k: int = 3) -> tuple[Network, np.ndarray]:
    rng = np.random.default_rng(seed)
    return start(d, h, k, rng), rng.normal(size=d)


def autograd_log_policy(network, x, action):
    W1, b1, W2, b2 = network
    hidden = anp.maximum(anp.dot(x, W1) + b1, 0)
    logits = anp.dot(W2, hidden) + b2
    return logits[action] - anp.log(anp.sum(anp.exp(logits - anp.max(logits)))) - anp.max(logits)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("action", [0, 2])
def test_score_gradient_equals_automatic_differentiation(seed, action):
    network, x = make(seed)
    wanted = grad(lambda parts: autograd_log_policy(parts, x, action))(tuple(network))
    for got, want in zip(score_gradient(network, x, action), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


def test_score_gradient_equals_finite_differences():
    network, x = make(7)
    gradient = score_gradient(network, x, 1)
    for part, (values, slopes) in enumerate(zip(network, gradient, strict=True)):
        for at in np.ndindex(values.shape):
            nudged = [value.copy() for value in network]
            ends = []
            for sign in (1, -1):
                nudged[part][at] = values[at] + sign * 1e-6
                ends.append(log_probabilities(Network(*nudged), x[None])[0, 1])
            assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(slopes[at], abs=1e-6)


def test_input_gradient_equals_automatic_differentiation():
    network, x = make(3)
    hidden, _ = network_forward(network, x[None])
    weights = np.array([1.0, -2.0, 0.5])

    def output(row):
        return anp.dot(weights, anp.dot(network.W2, anp.maximum(anp.dot(row, network.W1) + network.b1, 0)))

    np.testing.assert_allclose(input_gradient(network, hidden, weights[None])[0], grad(output)(x), rtol=1e-10)


def test_expected_score_is_zero():
    network, x = make(11)
    policy = probabilities(network, x[None])[0]
    total = [
        sum(p * part for p, part in zip(policy, parts, strict=True))
        for parts in zip(*(score_gradient(network, x, a) for a in range(3)), strict=True)
    ]
    for part in total:
        np.testing.assert_allclose(part, 0, atol=1e-14)


@settings(max_examples=50)
@given(st.lists(st.floats(-5, 5), min_size=3, max_size=3), st.floats(-1e3, 1e3))
def test_a_reward_blind_to_the_action_adds_no_expected_gradient(rewards, constant):
    network, x = make(13)
    policy = probabilities(network, x[None])[0]
    plain = expected_logit_gradient(policy, np.array(rewards))
    shifted = expected_logit_gradient(policy, np.array(rewards) + constant)
    np.testing.assert_allclose(plain, shifted, atol=1e-12 * (1 + abs(constant)))


def test_log_probabilities_survive_underflow():
    network = Network(np.eye(1), np.zeros(1), np.array([[0.0], [1.0]]), np.zeros(2))
    assert probabilities(network, np.array([[2000.0]]))[0, 0] == 0
    assert log_probabilities(network, np.array([[2000.0]]))[0, 0] == -2000


def test_along_logits_is_linear():
    network, x = make(17)
    one, two = np.array([1.0, 0.0, -1.0]), np.array([0.0, 2.0, 1.0])
    both = along_logits(network, x, one + two)
    for got, a, b in zip(both, along_logits(network, x, one), along_logits(network, x, two), strict=True):
        np.testing.assert_allclose(got, a + b, atol=1e-12)
