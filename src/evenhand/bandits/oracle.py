"""The training step in plain NumPy. It is slow and short, and defines what the compiled loop must compute.

It reads and writes the same named tuples as `kernels`, so tests can run both on the same random numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.arrays import Floats
from evenhand.bandits.kernels.loop import person_at
from evenhand.bandits.kernels.optimisers import DECAY_1, DECAY_2, EPSILON, learning_rate
from evenhand.bandits.kernels.structs import Moments, Options, People, Rows
from evenhand.bandits.policy import along_logits, expected_logit_gradient, log_probabilities
from evenhand.bandits.randomness import uniform
from evenhand.network import Network
from evenhand.rewards.rates import Rates, watched
from evenhand.rewards.registry import listening, rewards
from evenhand.rewards.term import Seen


def train(
    policies: Network, moments: Moments, rows: Rows, people: People, terms: Any, state: Rates,
    options: Options, first_step: int, n_steps: int,
) -> float:  # fmt: skip
    """Take the steps one after another; return the accumulated reward."""
    return sum(
        one_step(policies, moments, rows, people, terms, state, options, step)
        for step in range(first_step, first_step + n_steps)
    )


def one_step(
    policies: Network, moments: Moments, rows: Rows, people: People, terms: Any, state: Rates,
    options: Options, step: int,
) -> float:  # fmt: skip
    """Train on one person: reward the action, and update the policies. Return the reward."""
    person = person_at(options, step, len(people.groups))
    group, rate = int(people.groups[person]), learning_rate(options, step)
    context = row_of(rows, person, policies.W1.shape[1])
    seen = look(policies, context, people, person, state, options, step)
    if len(state.rates):
        label, share = int(seen.labels[0]), rate / options.learning_rate
        stands_for = people.shares[person] if len(people.shares) else 1.0
        watched(terms.rates, state, group, label, seen.own[0], share, stands_for, len(people.actions) > 0)
    reward, directions = logit_gradients(terms, seen, people, person, options)
    weight = people.weights[person] if len(people.weights) else 1.0

    moments.pending[0] += 1
    for g in range(len(directions)):
        if g == group or (options.mutual and terms.listens):
            moments.pending[1 + g] = 1
            gradient = along_logits(policy_of(policies, g), context, weight * directions[g])
            for total, part in zip(moments.gradient, gradient, strict=True):
                total[g] += part
    if moments.pending[0] >= options.batch_size or step + 1 == options.end:
        close_batch(policies, moments, rate, options.adam, options.apart, options.weight_decay)
    return reward


def look(
    policies: Network, context: Floats, people: People, person: int, state: Rates, options: Options, step: int
) -> Seen:
    """Return every policy's output for a person, and the logged action; without a log, draw one."""
    at = slice(person, person + 1)
    n_groups = len(policies.b2)
    logs = np.stack([log_probabilities(policy_of(policies, g), context[None])[0] for g in range(n_groups)])
    said, group = np.exp(logs), people.groups[person]
    action = draw(said[group], uniform(options.seed, step, 1))
    draws = [draw(said[g], uniform(options.seed, step, 2 + g)) for g in range(n_groups)]
    taken = people.actions[at] if len(people.actions) else np.array([action])
    return Seen(
        people.labels[at], people.groups[at], said[None], logs[None], taken, np.array([draws]),
        options.expected, state,
    )  # fmt: skip


def logit_gradients(
    terms: Any, seen: Seen, people: People, person: int, options: Options
) -> tuple[float, Floats]:
    """Return the reward, and the gradient with respect to the logits of every policy."""
    policy, group, action = seen.own[0], seen.groups[0], seen.actions[0]
    earned, weight = 0.0, 1.0
    if len(people.actions):
        earned = float(people.rewards[person])
        weight = min(policy[action] / people.propensities[person], options.importance_clip)
    each = rewards(terms, seen)[0]
    if len(people.actions) and seen.labels[0] >= 0:
        untold = rewards(terms, seen._replace(labels=np.array([-1])))[0]
        each = untold + (people.shares[person] if len(people.shares) else 1.0) * (each - untold)
    gradients = listening(terms, seen)[0]
    taken = np.eye(len(policy))[action]
    if options.expected:
        each = each + taken * earned * weight / policy[action]
        gradients[group] = expected_logit_gradient(policy, each)
        return float(policy @ each), gradients
    reward = float(each[action] + earned)
    gradients[group] = reward * (taken - policy)
    return reward, weight * gradients


def policy_of(policies: Network, group: int) -> Network:
    """Return the policy of one group."""
    return Network(*(part[group] for part in policies))


def row_of(rows: Rows, person: int, n_features: int) -> Floats:
    """Return a person's context as a plain vector."""
    values = rows.values[rows.starts[person] : rows.starts[person + 1]]
    if not rows.sparse:
        return values.astype(np.float64)
    context = np.zeros(n_features)
    context[rows.indices[rows.starts[person] : rows.starts[person + 1]]] = values
    return context


def draw(policy: Floats, u: float) -> int:
    """Return the action that the uniform number u selects."""
    return min(int(np.searchsorted(np.cumsum(policy), u, side="right")), len(policy) - 1)


def close_batch(
    policies: Network, moments: Moments, rate: float, adam: bool, apart: float, weight_decay: float
) -> None:
    """Update the policies of a batch by its mean gradient, then clear it. Weights decay, biases do not.

    If policies move jointly, Adam gets the mean of their gradients, and their differences from it, which
    share one scale.
    """
    people, touched = moments.pending[0], np.flatnonzero(moments.pending[1:])
    if apart > 0:
        touched = np.arange(len(moments.updates))
    moments.updates[touched] += 1
    for weights, gradient, first, second, decays in zip(
        policies, moments.gradient, moments.first, moments.second, (True, False, True, False), strict=True
    ):
        if decays:
            weights[touched] *= 1 - rate * weight_decay
        mean, n = gradient / people, moments.updates
        if apart > 0:
            common = mean.mean(0)
            differences = mean - common
            size = np.sqrt((differences**2).mean(0))
            weights += apart * rate * adam_step(first[:-1], second[0], differences, n[0], size)
            weights += rate * adam_step(first[-1], second[-1], common, n[0], common)
        else:
            for g in touched:
                step = adam_step(first[g], second[g], mean[g], n[g], mean[g]) if adam else mean[g]
                weights[g] += rate * step
        gradient[:] = 0
    moments.pending[:] = 0


def adam_step(first: Floats, second: Floats, gradient: Floats, n: int, size: Floats) -> Floats:
    """Update Adam's averages with the n-th gradient and its size, and return the resulting direction."""
    first += (1 - DECAY_1) * (gradient - first)
    second += (1 - DECAY_2) * (size**2 - second)
    direction: Floats = first / (1 - DECAY_1**n) / (np.sqrt(second / (1 - DECAY_2**n)) + EPSILON)
    return direction
