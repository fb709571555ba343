"""The training step in plain NumPy: slow, short, and the definition that the compiled loop must equal.

It reads and writes the same named tuples as `kernels`, so a test can run both on the same random numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.bandits.kernels.loop import next_person
from evenhand.bandits.kernels.optimisers import DECAY_1, DECAY_2, EPSILON, learning_rate
from evenhand.bandits.kernels.structs import Floats, Moments, Options, People, Rates, Rows, Terms
from evenhand.bandits.policy import along_logits, expected_logit_gradient, log_probabilities
from evenhand.bandits.randomness import uniform
from evenhand.metrics.divergence import DIVERGENCES
from evenhand.network import Network
from evenhand.rewards.terms import KL


def train(
    policies: Network, moments: Moments, rows: Rows, people: People, terms: Terms, state: Rates,
    options: Options, custom: Any, first_step: int, n_steps: int,
) -> float:  # fmt: skip
    """Take the steps one after another; return the accumulated reward."""
    return sum(
        one_step(policies, moments, rows, people, terms, state, options, custom, step)
        for step in range(first_step, first_step + n_steps)
    )


def one_step(
    policies: Network, moments: Moments, rows: Rows, people: People, terms: Terms, state: Rates,
    options: Options, custom: Any, step: int,
) -> float:  # fmt: skip
    """Meet one person, reward the action, move the policies; return the reward."""
    n_groups, n_actions = policies.b2.shape
    person = next_person(options, step, len(people.groups))
    group, label = int(people.groups[person]), int(people.labels[person])
    context = row_of(rows, person, policies.W1.shape[1])
    logs = np.stack([log_probabilities(policy_of(policies, g), context[None])[0] for g in range(n_groups)])
    said = np.exp(logs)
    others = [g for g in range(n_groups) if g != group]
    if len(state.rates):
        share = learning_rate(options, step) / options.learning_rate
        watch_rates(terms, state, group, label, said[group], share)

    draws = np.array([draw(said[g], uniform(options.seed, step, 2 + g)) for g in range(n_groups)])
    logged = len(people.actions) > 0
    action, weight, earned = draw(said[group], uniform(options.seed, step, 1)), 1.0, 0.0
    if logged:
        action, earned = int(people.actions[person]), float(people.rewards[person])
        weight = min(said[group, action] / people.propensities[person], options.importance_clip)

    rewards = reward_vector(
        label, group, said, logs, draws, options.expected, not logged, terms, state, custom
    )
    one_hot = np.eye(n_actions)
    if options.expected:
        if logged:
            rewards = rewards + one_hot[action] * earned * weight / said[group, action]
        reward = float(said[group] @ rewards)
        directions = {group: expected_logit_gradient(said[group], rewards)}
    else:
        reward = float(rewards[action] + earned)
        directions = {group: weight * reward * (one_hot[action] - said[group])}

    if options.mutual:
        for other in others:
            ratio, agree = terms.log_ratio_weight / len(others), terms.agreement_weight / len(others)
            if options.expected:
                directions[other] = ratio * (said[group] - said[other])
                directions[other] += expected_logit_gradient(said[other], agree * (said[group] - 1))
            else:
                heard = draws[other]
                directions[other] = weight * ratio * (one_hot[action] - said[other])
                directions[other] -= weight * agree * (action != heard) * (one_hot[heard] - said[other])
    if terms.log_ratio_weight + terms.agreement_weight == 0:
        directions = {group: directions[group]}

    moments.pending[0] += 1
    for g, direction in directions.items():
        moments.pending[1 + g] = 1
        for total, part in zip(
            moments.gradient, along_logits(policy_of(policies, g), context, direction), strict=True
        ):
            total[g] += part
    if moments.pending[0] >= options.batch_size or step + 1 == options.end:
        rate = learning_rate(options, step)
        close_batch(policies, moments, rate, options.adam, options.apart, options.weight_decay)
    return reward


def policy_of(policies: Network, group: int) -> Network:
    """Return one group's policy out of the stack."""
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
    """Return the action that a uniform number picks."""
    return min(int(np.searchsorted(np.cumsum(policy), u, side="right")), len(policy) - 1)


def reward_vector(
    label: int, group: int, said: Floats, logs: Floats, draws: Any, expected: bool, labelled: bool,
    terms: Terms, state: Rates, custom: Any,
) -> Floats:  # fmt: skip
    """Return r(a) for every action: the table of reward terms, read line by line."""
    n_groups, n_actions = said.shape
    others = [g for g in range(n_groups) if g != group]
    rewards = np.zeros(n_actions)
    if labelled:
        rewards += terms.gains[label]
        if terms.likelihood_clip > 0:
            rewards[label] += min(1 / said[group, label], terms.likelihood_clip)
    if others:
        apart = DIVERGENCES[KL.kinds[terms.kl_kind]]
        rewards -= terms.kl_weight * np.mean([apart(said[group], said[g]) for g in others])
        rewards -= terms.log_ratio_weight * (logs[group] - logs[others].mean(0))
        disagrees = (
            1 - said[others] if expected else (draws[others][:, None] != np.arange(n_actions)).astype(float)
        )
        rewards -= terms.agreement_weight * disagrees.mean(0)
    for t, slot, action in zip(*np.nonzero(terms.mask), strict=True):
        if slot in (label, said.shape[1]):
            price = state.dual[t, :, slot, action] - state.dual[t, :, slot, action].mean()
            price = price + terms.pull[t] * excess(terms, state, t, slot, action)
            counts = state.counts[:, slot]
            rewards[action] -= price[group] * counts.sum() / (n_groups * counts[group])
    if terms.custom:
        rewards += [custom(a, label, group, said, state.rates[0]) for a in range(n_actions)]
    return rewards


def watch_rates(terms: Terms, state: Rates, group: int, label: int, policy: Floats, share: float) -> None:
    """Move the running rates by one person, then the dual variables by the excess over the bound."""
    n_actions = len(policy)
    for slot in ([label] if label >= 0 else []) + [n_actions]:
        state.counts[group, slot] += 1
        for t in range(len(state.rates)):
            seen = np.eye(n_actions)[policy.argmax()] if terms.decisions[t] else policy
            weight = max(terms.averaging[t, group], 1 / state.counts[group, slot])
            state.rates[t, group, slot] += weight * (seen - state.rates[t, group, slot])
            for action in np.flatnonzero(terms.mask[t, slot]):
                step = share * terms.dual_step[t]
                state.dual[t, :, slot, action] += step * excess(terms, state, t, slot, action)


def excess(terms: Terms, state: Rates, t: int, slot: int, action: Any) -> Floats:
    """Return how far each group's rate lies outside the bound round the middle of the groups seen."""
    seen = state.counts[:, slot] > 0
    rates = state.rates[t, :, slot, action]
    apart: Floats = np.where(seen, rates - (rates[seen].min() + rates[seen].max()) / 2, 0)
    return apart - np.clip(apart, -terms.bound[t] / 2, terms.bound[t] / 2)


def close_batch(
    policies: Network, moments: Moments, rate: float, adam: bool, apart: float, weight_decay: float
) -> None:
    """Move the touched policies by the batch's mean gradient, and clear it; weights decay, biases do not.

    Jointly, Adam sees the mean of the policies' gradients and their differences from it, all on one scale.
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
    """Move Adam's averages by the n-th gradient and its size, and return the direction that they give."""
    first += (1 - DECAY_1) * (gradient - first)
    second += (1 - DECAY_2) * (size**2 - second)
    direction: Floats = first / (1 - DECAY_1**n) / (np.sqrt(second / (1 - DECAY_2**n)) + EPSILON)
    return direction
