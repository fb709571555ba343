"""The gradient that trees follow: that of each person's expected reward with respect to the output scores.

Output 0 is the mean of the policies; the other outputs are their differences from it. A pull between policies
cancels out in the mean, so the mean learns as fast as a single policy would, whatever the pull's weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.arrays import Floats
from evenhand.bandits.kernels.layers import FAST, softmax
from evenhand.bandits.kernels.loop import acting_gradient, stand_for
from evenhand.jit import jit
from evenhand.rewards.compiled import fill_rewards, listen
from evenhand.rewards.kl import mean_divergence
from evenhand.rewards.rate_lines import rate_price

FLATTEST = 1e-4  # the smallest curvature of a policy, so that even a sure policy can change


def spread_of(n_groups: int) -> Floats:
    """Return the matrix that turns outputs into the groups' policies, (groups, outputs).

    The first column is the mean. Two groups have opposite differences from it, so they share one output; with
    more groups, each has its own.

    >>> spread_of(2)
    array([[ 1.,  1.],
           [ 1., -1.]])
    >>> spread_of(3).round(2)
    array([[ 1.  ,  0.67, -0.33, -0.33],
           [ 1.  , -0.33,  0.67, -0.33],
           [ 1.  , -0.33, -0.33,  0.67]])
    """
    mean = np.ones((n_groups, 1))
    if n_groups == 1:
        return mean
    apart = np.array([[1.0], [-1.0]]) if n_groups == 2 else np.eye(n_groups) - 1 / n_groups
    return np.hstack([mean, apart])


@jit(inline="always")
def policies_of(scores: Any, i: int, base: Any, spread: Any, logits: Any, logs: Any, said: Any) -> None:
    """Fill every group's log-probabilities and probabilities for person i.

    `scores` are (outputs · levels, people). With two actions, only the second has a level; the first has 0.
    """
    n_groups, n_outputs = spread.shape
    n_levels = base.shape[0]
    first = logits.shape[1] - n_levels
    for g in range(n_groups):
        for level in range(n_levels):
            total = base[level]
            for d in range(n_outputs):
                total += spread[g, d] * scores[d * n_levels + level, i]
            logits[g, first + level] = total
        softmax(logits, g, logs, said)


@jit(fastmath=FAST)
def say(scores: Any, base: Any, spread: Any, out: Any) -> None:
    """Fill out[person, group, action] with every policy's probabilities."""
    _, n_groups, n_actions = out.shape
    shape = n_groups, n_actions
    logits, logs, said = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for i in range(out.shape[0]):
        policies_of(scores, i, base, spread, logits, logs, said)
        for g in range(n_groups):
            for k in range(n_actions):
                out[i, g, k] = said[g, k]


@jit()
def prices_of(own: Any, state: Any) -> Any:
    """Return the price of each action: (groups, labels, actions); the last label means 'no label'."""
    n_groups, n_slots = state.counts.shape
    prices = np.zeros((n_groups, n_slots, n_slots - 1))
    for group in range(n_groups):
        for slot in range(n_slots):
            for k in range(n_slots - 1):
                prices[group, slot, k] = rate_price(own, state, group, slot if slot < n_slots - 1 else -1, k)
    return prices


@jit(fastmath=FAST)
def ascend(
    scores: Any, base: Any, spread: Any, people: Any, terms: Any, state: Any, prices: Any, mutual: bool,
    clip: float, stiffness: float, slopes: Any, curves: Any,
) -> Any:  # fmt: skip
    """Fill minus the gradient and a positive curvature, shaped like `scores`.

    Return the mean reward and the mean divergence. `terms` have no active rate term: prices depend only on
    the group and the label, and are passed separately. The curvature is that of the likelihood, plus, for
    differences between policies, that of `stiffness` times their KL divergence.
    """
    n_groups, n_outputs = spread.shape
    n_people, n_levels = people.groups.shape[0], base.shape[0]
    first = 1 if n_levels == 1 else 0
    n_actions = first + n_levels
    weighted, shared = people.weights.shape[0] > 0, people.shares.shape[0] > 0
    logged, listens = people.actions.shape[0] > 0, mutual and n_groups > 1 and terms.listens
    shape = n_groups, n_actions
    logits, logs, said, slope = np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape)
    rewards, untold, gradient, heard = (
        np.zeros(n_actions), np.zeros(n_actions), np.zeros(n_actions), np.zeros(n_actions)
    )  # fmt: skip
    draws = np.zeros(n_groups, np.int64)
    stiff = np.zeros((n_groups, n_outputs))
    for g in range(n_groups):
        for d in range(n_outputs):
            stiff[g, d] = spread[g, d] ** 2
            for other in range(n_groups):
                if other != g:
                    stiff[g, d] += stiffness / (n_groups - 1) * (spread[g, d] - spread[other, d]) ** 2
    sharper = 1.0 if n_actions == 2 else n_actions / (n_actions - 1)

    earned_by_all, apart_of_all = 0.0, 0.0
    for i in range(n_people):
        group, label = people.groups[i], people.labels[i]
        policies_of(scores, i, base, spread, logits, logs, said)
        action, weight, earned = -1, 1.0, 0.0
        if logged:
            action, earned = people.actions[i], people.rewards[i]
            weight = min(said[group, action] / people.propensities[i], clip)
        apart = mean_divergence(0, group, said, logs)
        fill_rewards(terms, apart, 0, n_actions, label, group, said, logs, draws, True, state, rewards)
        told = logged and label >= 0
        stands_for = people.shares[i] if told and shared else 1.0
        if told:
            stand_for(
                stands_for, terms, apart, 0, n_actions, group, said, logs, draws, True, state, rewards, untold
            )
        for k in range(n_actions):
            price = prices[group, -1, k]  # without a label
            rewards[k] -= price + stands_for * (prices[group, label, k] - price)
        earned_by_all += acting_gradient(True, logged, action, weight, earned, group, said, rewards, gradient)
        apart_of_all += apart
        counts = people.weights[i] if weighted else 1.0
        for g in range(n_groups):
            if g != group and listens:
                listen(terms.weights, True, action, 0, weight, group, g, said, logs, heard)
            for k in range(n_actions):
                slope[g, k] = gradient[k] if g == group else heard[k]
        for level in range(n_levels):
            k = first + level
            curve = counts * max(said[group, k] * (1.0 - said[group, k]) * sharper, FLATTEST)
            for d in range(n_outputs):
                up = 0.0
                for g in range(n_groups):
                    up += spread[g, d] * slope[g, k]
                slopes[d * n_levels + level, i] = -counts * up
                curves[d * n_levels + level, i] = curve * stiff[group, d]
    return earned_by_all / n_people, apart_of_all / n_people
