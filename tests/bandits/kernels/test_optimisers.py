import numpy as np
import pytest

from evenhand.bandits.kernels.optimisers import DECAY_1, DECAY_2, EPSILON, close_batch
from evenhand.bandits.kernels.padding import padded
from evenhand.bandits.training import Training
from evenhand.network import Network


def waiting(n_groups, gradient):
    """A training run with one batch of one person open, and that gradient in its last biases."""
    training = Training.begin(
        n_features=2, n_hidden=3, n_actions=2, n_groups=n_groups, seed=0, shared_start=True, dtype=np.float64
    )
    training.make_room(n_rate_terms=0, buffers=True)
    training.moments.pending[:] = 1
    training.moments.gradient.b2[:] = gradient
    return training


def closed(training, *how):
    with padded(training.policies, training.moments) as (policies, moments):
        close_batch(policies, moments, *how)


def test_differences_leave_the_mean_of_the_policies_alone():
    gradient = np.array([[3.0, 1.0], [-1.0, 2.0], [-2.0, -3.0]])  # sums to nothing
    training = waiting(3, gradient)
    before = training.policies.b2.copy()
    closed(training, 0.01, True, 0.25, 0.0)
    moved = training.policies.b2 - before
    assert np.abs(moved).max() > 1e-4
    np.testing.assert_allclose(moved.mean(0), 0, atol=1e-12)


@pytest.mark.parametrize("apart", [0.01, 0.5])
def test_policies_with_equal_gradients_move_as_one_under_adam(apart):
    gradient = np.tile([0.7, -0.2], (4, 1))
    training = waiting(4, gradient)
    before = training.policies.b2.copy()
    closed(training, 0.01, True, apart, 0.0)
    first, second = (1 - DECAY_1) * gradient, (1 - DECAY_2) * gradient**2
    step = first / (1 - DECAY_1) / (np.sqrt(second / (1 - DECAY_2)) + EPSILON)
    np.testing.assert_allclose(training.policies.b2 - before, 0.01 * step, rtol=1e-9)


def test_a_batch_closes_and_clears_what_it_held():
    for apart in (0.0, 0.5):
        training = waiting(2, 1.0)
        closed(training, 0.01, True, apart, 0.0)
        assert training.moments.pending.tolist() == [0, 0, 0]
        assert training.moments.updates.tolist() == [1, 1]
        assert isinstance(training.moments.gradient, Network)
        assert not any(part.any() for part in training.moments.gradient)
