"""The compiled gradient equals the terms' own NumPy definitions, put together by hand."""

import numpy as np
import pytest

from evenhand import (
    KL,
    Agreement,
    Correctness,
    Custom,
    EqualizedOdds,
    EqualOpportunity,
    JensenShannon,
    Likelihood,
    LogRatio,
    Parity,
)
from evenhand.bandits.kernels.structs import People
from evenhand.bandits.policy import expected_logit_gradient
from evenhand.bandits.training import no_rates
from evenhand.boosting.ascent import ascend, prices_of, say, spread_of
from evenhand.boosting.training import without_prices
from evenhand.network import softmax
from evenhand.rewards import as_reward
from evenhand.rewards.rate_lines import watch_all
from evenhand.rewards.rates import ascended
from evenhand.rewards.registry import listening, pack_terms, rewards, stiffness
from evenhand.rewards.term import Seen


def cautious(action, label, group, policies, rates):
    return -0.5 * policies[group, action] * (action != label) + 0.1 * rates[group, 0, action]


REWARDS = {
    "likelihood": Likelihood(),
    "correctness": Correctness(),
    "kl": Correctness() + KL(),
    "log_ratio": Likelihood() + LogRatio(),
    "jensen_shannon": Likelihood() + JensenShannon(),
    "agreement": Correctness() + Agreement(),
    "parity": Likelihood() + LogRatio() + Parity(bound=0.02),
    "opportunity": Likelihood() + LogRatio() + EqualOpportunity(measure="probabilities"),
    "odds": Likelihood() + EqualizedOdds() + Parity(),
    "custom": Likelihood() + LogRatio() + Custom(cautious),
}


def world(n_groups, n_actions, n=40, logged=False):
    rng = np.random.default_rng(n_groups * 10 + n_actions)
    spread, n_levels = spread_of(n_groups), 1 if n_actions == 2 else n_actions
    scores = rng.normal(size=(spread.shape[1] * n_levels, n))
    base = rng.normal(size=n_levels)
    people = People(np.arange(n) % n_groups, rng.integers(0, n_actions, n))
    if logged:
        people = People(
            people.groups, np.full(n, -1), rng.integers(0, n_actions, n), rng.normal(size=n), rng.uniform(0.2, 1, n)
        )  # fmt: skip
    return scores, base, spread, people


def policies(scores, base, spread, n_actions):
    """Every group's logits, by the definition: a base, a mean and how the group parts from it."""
    n_levels = len(base)
    outputs = scores.reshape(spread.shape[1], n_levels, -1)
    logits = base[None, None] + np.einsum("gd,dlp->pgl", spread, outputs)
    return np.concatenate([np.zeros((*logits.shape[:2], 1)), logits], axis=2) if n_levels == 1 else logits


@pytest.mark.parametrize("mutual", [True, False])
@pytest.mark.parametrize("n_groups", [1, 2, 3])
@pytest.mark.parametrize("n_actions", [2, 3])
@pytest.mark.parametrize("name", REWARDS)
def test_every_term_s_gradient(name, n_actions, n_groups, mutual):
    scores, base, spread, people = world(n_groups, n_actions)
    terms = pack_terms(as_reward(REWARDS[name]), 3.0, n_actions, 100, np.bincount(people.groups))
    state = no_rates(len(terms.rates.bound), n_groups, n_actions)
    logits = policies(scores, base, spread, n_actions)
    said = softmax(logits)
    for share in (1.0, 0.5):
        watch_all(terms.rates, state, people.groups, people.labels, said, share, people.shares, False)

    slopes, curves = np.empty(scores.shape, np.float32), np.empty(scores.shape, np.float32)
    prices = prices_of(terms.rates, state)
    earned, _ = ascend(
        scores, base, spread, people, without_prices(terms), state, prices, mutual, 10.0, stiffness(terms),
        slopes, curves,
    )  # fmt: skip

    nobody = np.zeros((len(said), n_groups), np.int64)
    seen = Seen(people.labels, people.groups, said, np.log(said), nobody[:, 0], nobody, True, state)
    each = rewards(terms, seen)
    gradient = listening(terms, seen) if mutual else np.zeros_like(said)
    for i, group in enumerate(people.groups):
        gradient[i, group] = expected_logit_gradient(said[i, group], each[i])
    levels = gradient[:, :, 1:] if n_actions == 2 else gradient
    expected = -np.einsum("gd,pgl->dlp", spread, levels).reshape(scores.shape)
    np.testing.assert_allclose(slopes, expected, atol=1e-5)
    np.testing.assert_allclose(earned, np.mean((seen.own * each).sum(1)), atol=1e-9)
    assert (curves > 0).all()


def test_a_label_in_a_log_counts_for_those_it_stands_for():
    """The gradient of a person who stands for w is w times what the label changes about it."""
    scores, base, spread, people = world(2, 2, logged=True)
    people = people._replace(rewards=np.zeros(len(people.groups)))
    terms = pack_terms(as_reward(REWARDS["odds"].terms[1] + Custom(cautious)), 0.0, 2, 100, [20, 20])
    labels, state = np.arange(40) % 2, no_rates(len(terms.rates.bound), 2, 2)
    said = softmax(policies(scores, base, spread, 2))
    watch_all(terms.rates, state, people.groups, labels, said, 1.0, people.shares, False)
    prices = prices_of(terms.rates, state)

    def slopes_of(labels, shares):
        slopes, curves = np.empty(scores.shape, np.float32), np.empty(scores.shape, np.float32)
        who = people._replace(labels=labels, shares=shares)
        ascend(
            scores, base, spread, who, without_prices(terms), state, prices, True, 1.5, 0.0, slopes, curves
        )  # fmt: skip
        return slopes

    none, once = slopes_of(np.full(40, -1), np.zeros(0)), slopes_of(labels, np.zeros(0))
    weights = np.linspace(0.5, 5, 40)
    assert np.abs(once - none).max() > 0.01
    np.testing.assert_allclose(slopes_of(labels, weights), none + weights * (once - none), atol=1e-6)


def test_a_log_teaches_by_what_was_earned():
    scores, base, spread, people = world(2, 2, logged=True)
    terms = pack_terms(as_reward(LogRatio()), 0.0, 2)
    slopes, curves = np.empty(scores.shape, np.float32), np.empty(scores.shape, np.float32)
    state = no_rates(0, 2, 2)
    ascend(
        scores, base, spread, people, terms, state, prices_of(terms.rates, state), True, 1.5, 0.0, slopes, curves
    )  # fmt: skip
    said = softmax(policies(scores, base, spread, 2))
    own = said[np.arange(40), people.groups]
    taken = own[np.arange(40), people.actions]
    weight = np.minimum(taken / people.propensities, 1.5) * people.rewards
    # The score gradient ∇log π(a) of the second action's logit.
    up = weight * ((people.actions == 1) - own[:, 1])
    np.testing.assert_allclose(slopes[0], -up, atol=1e-5)


def test_say_gives_every_policy_s_probabilities():
    for n_groups, n_actions in ((1, 2), (2, 2), (4, 3)):
        scores, base, spread, _ = world(n_groups, n_actions)
        out = np.empty((40, n_groups, n_actions))
        say(scores, base, spread, out)
        np.testing.assert_allclose(out, softmax(policies(scores, base, spread, n_actions)), atol=1e-12)


def test_a_pull_cancels_in_the_mean_and_stiffens_the_difference():
    scores, base, spread, people = world(2, 2)
    scores[1] = 0  # equal policies
    found = {}
    for weight in (0.0, 50.0):
        terms, state = pack_terms(as_reward(Likelihood() + LogRatio()), weight, 2), no_rates(0, 2, 2)
        slopes, curves = np.empty(scores.shape, np.float32), np.empty(scores.shape, np.float32)
        prices = prices_of(terms.rates, state)
        ascend(
            scores, base, spread, people, terms, state, prices, True, 10.0, stiffness(terms), slopes, curves
        )  # fmt: skip
        found[weight] = slopes[0].copy(), curves.copy()
    np.testing.assert_array_equal(found[0.0][0], found[50.0][0])
    np.testing.assert_allclose(found[50.0][1][1] / found[0.0][1][1], 201, rtol=1e-5)
    np.testing.assert_array_equal(found[50.0][1][0], found[0.0][1][0])


def test_weights_scale_slopes_and_curves_and_count_in_rates():
    scores, base, spread, people = world(2, 2)
    terms = pack_terms(
        as_reward(Likelihood() + LogRatio() + Parity()), 3.0, 2, 100, np.bincount(people.groups)
    )
    weights, shares = np.random.default_rng(0).uniform(0.1, 3, (2, 40))
    said, found = softmax(policies(scores, base, spread, 2)), []
    for one in (people, people._replace(weights=weights, shares=shares)):
        state = no_rates(1, 2, 2)
        slopes, curves = np.empty(scores.shape, np.float32), np.empty(scores.shape, np.float32)
        prices = prices_of(terms.rates, state)
        ascend(
            scores, base, spread, one, without_prices(terms), state, prices, True, 10.0, 3.0, slopes, curves
        )  # fmt: skip
        found.append((slopes, curves))
    for mine, plain in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(mine, plain * weights, rtol=1e-5)
    watch_all(terms.rates, state, people.groups, people.labels, said, 1.0, shares, False)
    for g in range(2):
        here = people.groups == g
        rate = np.average(said[here, g].argmax(1), weights=shares[here])
        np.testing.assert_allclose(state.rates[0, g, 2, 1], rate)


def test_rates_of_all_are_counts():
    rng = np.random.default_rng(0)
    groups, labels = rng.integers(0, 3, 500), rng.integers(0, 2, 500)
    said = rng.dirichlet([1, 1], size=(500, 3))
    reward = as_reward(Parity(bound=0.1) + EqualOpportunity(measure="probabilities"))
    terms = pack_terms(reward, 0.0, 2, 100, np.bincount(groups))
    state = no_rates(2, 3, 2)
    watch_all(terms.rates, state, groups, labels, said, 1.0, np.zeros(0), False)
    own = said[np.arange(500), groups]
    for g in range(3):
        here = groups == g
        assert state.rates[0, g, 2, 1] == np.mean(own[here].argmax(1) == 1)
        np.testing.assert_allclose(state.rates[1, g, 1, 1], own[here & (labels == 1), 1].mean())
    rates = state.rates[0, :, 2, 1]
    apart = rates - (rates.max() + rates.min()) / 2
    step = terms.rates.dual_step[0]
    np.testing.assert_allclose(state.dual[0, :, 2, 1], ascended(np.zeros(3), apart, step, bound=0.1))
