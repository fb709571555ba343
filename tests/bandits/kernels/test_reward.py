"""What the published reward does, and its cure, measured on the compiled loop with a policy held still."""

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import grad

from evenhand.bandits import kernels
from evenhand.bandits.contexts import as_rows
from evenhand.bandits.kernels.structs import Options, People
from evenhand.bandits.training import Training
from evenhand.network import Network
from evenhand.rewards import Correctness, Parity, as_reward, pack_terms
from evenhand.rewards.rate_lines import rate_excess, rate_price, watch
from evenhand.rewards.rates import Rates, watched

WEIGHT = 3.0
DRAWS = 20_000


def mean_gradient(reward, *, seed, expected=False, mutual=False, n_draws=DRAWS):
    """Average the gradient over many draws at fixed policies: one batch of that many meetings with one person."""
    x = np.array([[0.5, -1.0, 2.0]], dtype=np.float32)
    rows = as_rows(x)._replace(values=x.reshape(-1).astype(np.float64))
    people = People(
        np.zeros(1, np.int64), np.ones(1, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
    )
    terms = pack_terms(as_reward(reward), WEIGHT, 3)
    training = Training.begin(
        n_features=3, n_hidden=4, n_actions=3, n_groups=2, seed=2,
        shared_start=False, dtype=np.float64,
    )  # fmt: skip
    training.make_room(n_rate_terms=len(terms.rates.bound), buffers=True)
    training.policies.W2[...] *= 3  # policies that really differ
    before = Network(*(part.copy() for part in training.policies))
    options = Options(
        expected=expected, mutual=mutual, adam=False, apart=0.0, learning_rate=1.0, schedule=0, horizon=0, end=n_draws,
        batch_size=n_draws, weight_decay=0.0, order=1, origin=0, importance_clip=10.0, interval=n_draws, seed=np.uint64(seed),
    )  # fmt: skip
    kernels.train(
        training.policies, training.moments, rows, people, terms, training.rates, options,
        0, n_draws, np.zeros((1, 3)), None,
    )  # fmt: skip
    flat = [
        np.concatenate(
            [(now[g] - then[g]).ravel() for now, then in zip(training.policies, before, strict=True)]
        )
        for g in range(2)
    ]
    return flat, before, x[0].astype(np.float64)


def exact_gradient(objective, before, x, moving):
    """Differentiate WEIGHT · objective(both policies' probabilities) by the parameters of one of them."""

    def of(parts):
        said = []
        for g in range(2):
            W1, b1, W2, b2 = parts if g == moving else [part[g] for part in before]
            logits = anp.dot(W2, anp.maximum(anp.dot(x, W1) + b1, 0)) + b2
            said.append(anp.exp(logits) / anp.sum(anp.exp(logits)))
        return objective(said)

    slopes = grad(of)(tuple(part[moving] for part in before))
    return np.concatenate([WEIGHT * slope.ravel() for slope in slopes])


def exact_divergence_gradient(before, x, moving):
    return exact_gradient(
        lambda said: -anp.sum(said[0] * (anp.log(said[0]) - anp.log(said[1]))), before, x, moving
    )


def repeated(reward, **options):
    runs = np.array([mean_gradient(reward, seed=seed, **options)[0] for seed in range(30)])
    return runs.mean(0), runs.std(0, ddof=1) / np.sqrt(len(runs))


def test_published_term_averages_to_nothing_and_only_adds_noise():
    """Its mean over draws is zero within its standard error, though each draw moves the policy."""
    with_term = np.array([mean_gradient("kl", seed=seed)[0][0] for seed in range(30)])
    error = with_term.std(0, ddof=1) / np.sqrt(len(with_term))
    moved = error > 0
    assert moved.any()
    assert (np.abs(with_term.mean(0)) <= 4.5 * error)[moved].all()
    _exact, before, x = mean_gradient("kl", seed=0, n_draws=1)
    assert np.abs(exact_divergence_gradient(before, x, 0)).max() > 0.1  # what it should have been


def test_log_ratio_averages_to_the_gradient_of_the_divergence():
    (mean, _), (error, _) = repeated("log_ratio")
    _, before, x = mean_gradient("log_ratio", seed=0, n_draws=1)
    wanted = exact_divergence_gradient(before, x, 0)
    assert np.abs(wanted).max() > 0.1
    assert (np.abs(mean - wanted) <= 4.5 * error + 1e-9).all()


@pytest.mark.parametrize("moving", [0, 1])
def test_expected_log_ratio_is_the_gradient_of_the_divergence(moving):
    """Acting: the actor's half. Mutual: the listener's half too. No sampling, so exactly."""
    gradients, before, x = mean_gradient("log_ratio", seed=0, expected=True, mutual=True, n_draws=1)
    np.testing.assert_allclose(
        gradients[moving], exact_divergence_gradient(before, x, moving), rtol=1e-7, atol=1e-10
    )


def test_a_listener_draws_towards_the_divergence_gradient_on_average():
    (_, mean), (_, error) = repeated("log_ratio", mutual=True)
    _, before, x = mean_gradient("log_ratio", seed=0, n_draws=1)
    wanted = exact_divergence_gradient(before, x, 1)
    assert (np.abs(mean - wanted) <= 4.5 * error + 1e-9).all()


@pytest.mark.parametrize("moving", [0, 1])
def test_expected_agreement_is_the_gradient_of_the_chance_to_agree(moving):
    gradients, before, x = mean_gradient("agreement", seed=0, expected=True, mutual=True, n_draws=1)

    def agreement(said):
        return anp.sum(said[0] * said[1])

    wanted = exact_gradient(agreement, before, x, moving)
    np.testing.assert_allclose(gradients[moving], wanted, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("moving", [0, 1])
def test_expected_jensen_shannon_is_the_gradient_of_the_divergence(moving):
    gradients, before, x = mean_gradient("jensen_shannon", seed=0, expected=True, mutual=True, n_draws=1)

    def divergence(said):
        middle = (said[0] + said[1]) / 2
        return -sum(anp.sum(p * (anp.log(p) - anp.log(middle))) / 2 for p in said)

    wanted = exact_gradient(divergence, before, x, moving)
    assert np.abs(wanted).max() > 0.05
    np.testing.assert_allclose(gradients[moving], wanted, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("term", ["agreement", "jensen_shannon"])
def test_a_sampled_pull_averages_to_its_expected_gradient(term):
    exact, _, _ = mean_gradient(term, seed=0, expected=True, mutual=True, n_draws=1)
    mean, error = repeated(term, mutual=True)
    assert (np.abs(mean - np.array(exact)) <= 4.5 * error + 1e-9).all()


def test_likelihood_is_maximum_likelihood_in_expectation():
    gradients, before, x = mean_gradient("likelihood", seed=0, expected=True, n_draws=1)

    def log_likelihood(parts):
        W1, b1, W2, b2 = parts
        logits = anp.dot(W2, anp.maximum(anp.dot(x, W1) + b1, 0)) + b2
        return logits[1] - anp.log(anp.sum(anp.exp(logits)))

    slopes = grad(log_likelihood)(tuple(part[0] for part in before))
    np.testing.assert_allclose(
        gradients[0], np.concatenate([s.ravel() for s in slopes]), rtol=1e-7, atol=1e-10
    )


def test_gains_replace_correctness():
    plain, _, _ = mean_gradient(Correctness(), seed=0, expected=True, n_draws=1)
    same, _, _ = mean_gradient(Correctness(gains=np.eye(3)), seed=0, expected=True, n_draws=1)
    double, _, _ = mean_gradient(Correctness(gains=2 * np.eye(3)), seed=0, expected=True, n_draws=1)
    np.testing.assert_array_equal(plain, same)
    np.testing.assert_allclose(2 * np.array(plain), double, rtol=1e-12)


def test_rate_terms_are_named_apart():
    with pytest.raises(ValueError, match="'parity' twice"):
        Correctness() + Parity() + Parity(bound=0.1)


def test_a_bound_is_on_the_largest_difference_of_any_number_of_groups():
    terms = pack_terms(as_reward(Parity(bound=0.3)), 0.0, 2, group_sizes=[1, 1, 1]).rates
    rates = np.zeros((1, 3, 3, 2))
    rates[0, :, 2, 1] = [0.2, 0.5, 0.5]
    state = Rates(rates, np.zeros_like(rates), np.ones((3, 3)))
    np.testing.assert_allclose([rate_excess(terms, state, 0, g, 2, 1) for g in range(3)], 0, atol=1e-12)
    rates[0, 0, 2, 1] = 0.1
    np.testing.assert_allclose([rate_excess(terms, state, 0, g, 2, 1) for g in range(3)], [-0.05, 0.05, 0.05])


def test_a_price_weighs_as_much_as_a_person_moves_the_rate():
    """Ten of a hundred people: each moves that group's rate nine times as far as one of the ninety theirs."""
    terms = pack_terms(as_reward(Parity(pull=0)), 0.0, 2, group_sizes=[90, 10]).rates
    dual = np.zeros((1, 2, 3, 2))
    dual[0, :, 2, 1] = [0.1, -0.1]
    state = Rates(np.full_like(dual, 0.5), dual, np.array([[45.0, 45, 90], [5, 5, 10]]))
    prices = [rate_price(terms, state, g, 0, 1) for g in range(2)]
    np.testing.assert_allclose(prices, [0.1 * 100 / (2 * 90), -0.1 * 100 / (2 * 10)])
    assert rate_price(terms, state, 0, 0, 0) == 0  # the other action has no bound


@pytest.mark.parametrize("how", ["compiled", "plain"])
def test_a_price_that_overshot_comes_down_to_zero_where_the_bound_is_kept(how):
    """Complementary slackness; with bound 0 a price has no such end, and changes its sign."""
    ends = {}
    for bound in (0.3, 0.0):
        terms = pack_terms(
            as_reward(Parity(bound=bound, dual_step=0.01, averaging=1e-9)), 0.0, 2, group_sizes=[1, 1]
        ).rates
        rates, dual = np.full((1, 2, 3, 2), 0.5), np.zeros((1, 2, 3, 2))
        rates[0, 0, 2, 1], rates[0, 1, 2, 1] = 0.45, 0.55  # 0.1 apart: the first has the lower rate
        dual[0, :, 2, 1] = [0.02, -0.02]  # and still pays for having had the higher one
        state = Rates(rates, dual, np.full((2, 3), 1e9))
        seen = [dual[0, 0, 2, 1]]
        for _ in range(50):
            if how == "compiled":
                watch(terms, state, 0, 0, np.full((2, 2), 0.5), 1.0, 1.0, False)
            else:
                watched(terms, state, 0, 0, np.array([0.5, 0.5]), 1.0)
            seen.append(dual[0, 0, 2, 1])
        assert (np.diff(seen) <= 0).all()
        np.testing.assert_allclose(dual[0, 0, 2, 1], -dual[0, 1, 2, 1], atol=1e-12)
        ends[bound] = seen[-1]
    assert ends[0.3] == 0
    assert ends[0.0] == pytest.approx(0.02 - 50 * 0.01 * 0.05, abs=1e-6)
