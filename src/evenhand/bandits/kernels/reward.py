"""What an action earns: the reward terms of `rewards`, compiled into the training loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.jit import jit

TINY = 1e-300  # keeps a logarithm or a quotient of an underflown probability finite


@jit(inline="always")
def mean_divergence(kind: int, group: int, policies: Any, logs: Any) -> Any:
    """Return D(π_group ‖ π_other), mean over the others: KL, Jensen–Shannon, total variation or Hellinger."""
    n_groups, n_actions = policies.shape
    mean = 0.0
    for other in range(n_groups):
        if other == group:
            continue
        total = 0.0
        for k in range(n_actions):
            p, q, log_p, log_q = policies[group, k], policies[other, k], logs[group, k], logs[other, k]
            if kind == 0:
                total += p * (log_p - log_q)
            elif kind == 1:
                middle = np.log(0.5 * (p + q) + TINY)
                total += 0.5 * p * (log_p - middle) + 0.5 * q * (log_q - middle)
            elif kind == 2:
                total += 0.5 * abs(p - q)
            else:
                total += 0.5 * (np.sqrt(p) - np.sqrt(q)) ** 2
        mean += np.sqrt(total) if kind == 3 else total
    return mean / max(n_groups - 1, 1)


@jit()
def watch_rates(terms: Any, state: Any, group: int, label: int, policies: Any, share: float) -> None:
    """Move the running rates by one person, and the dual variables by the rates' excess over their bound.

    `share` is what the schedule has left of the learning rate: the prices settle as the policies do.
    """
    n_terms, n_groups, n_slots, n_actions = state.rates.shape
    top = 0
    for k in range(1, n_actions):
        if policies[group, k] > policies[group, top]:
            top = k
    for slot in range(n_slots):
        if slot != label and slot != n_slots - 1:
            continue
        state.counts[group, slot] += 1
        for t in range(n_terms):
            # A true mean at first, a moving one once enough people were seen.
            weight = max(terms.averaging[t, group], 1.0 / state.counts[group, slot])
            for k in range(n_actions):
                seen = (1.0 if k == top else 0.0) if terms.decisions[t] else policies[group, k]
                state.rates[t, group, slot, k] += weight * (seen - state.rates[t, group, slot, k])
                if terms.mask[t, slot, k]:
                    for g in range(n_groups):
                        excess = rate_excess(terms, state, t, g, slot, k)
                        state.dual[t, g, slot, k] += share * terms.dual_step[t] * excess


@jit()
def rate_excess(terms: Any, state: Any, t: int, group: int, slot: int, k: int) -> Any:
    """Return how far a group's rate lies outside its bound round the middle of the groups seen so far."""
    if state.counts[group, slot] == 0:
        return 0.0
    low, high = np.inf, -np.inf
    for g in range(state.counts.shape[0]):
        if state.counts[g, slot] > 0:
            low = min(low, state.rates[t, g, slot, k])
            high = max(high, state.rates[t, g, slot, k])
    apart = state.rates[t, group, slot, k] - 0.5 * (low + high)
    half = 0.5 * terms.bound[t]
    return apart - min(max(apart, -half), half)


@jit()
def rate_price(terms: Any, state: Any, group: int, label: int, k: int) -> Any:
    """Return what action k costs this group now, for all bounded rates that count this person.

    A person of a small group moves its rate more: the price is divided by the group's share, so that it is
    the derivative of the dual's Lagrangian. Groups of equal size all have factor 1.
    """
    n_terms, n_groups, n_slots, _ = state.rates.shape
    price = 0.0
    for slot in range(n_slots):
        if (slot != label and slot != n_slots - 1) or state.counts[group, slot] == 0:
            continue
        people = 0.0
        for g in range(n_groups):
            people += state.counts[g, slot]
        factor = people / (n_groups * state.counts[group, slot])
        for t in range(n_terms):
            if terms.mask[t, slot, k]:
                mean = 0.0
                for g in range(n_groups):
                    mean += state.dual[t, g, slot, k] / n_groups
                excess = rate_excess(terms, state, t, group, slot, k)
                price += factor * (state.dual[t, group, slot, k] - mean + terms.pull[t] * excess)
    return price


@jit(inline="always")
def reward_of(
    k: int, label: int, group: int, policies: Any, logs: Any, draws: Any, kl: float,
    expected: bool, labelled: bool, terms: Any, state: Any, custom: Any,
) -> Any:  # fmt: skip
    """Return r(k): what action k earns. Without a label, only the terms that need none."""
    n_groups = policies.shape[0]
    reward = 0.0
    if labelled:
        reward += terms.gains[label, k]
        if terms.likelihood_clip > 0.0 and k == label:
            reward += min(1.0 / max(policies[group, k], TINY), terms.likelihood_clip)
    reward -= terms.kl_weight * kl
    if n_groups > 1:
        for other in range(n_groups):
            if other == group:
                continue
            if terms.log_ratio_weight > 0.0:
                reward -= terms.log_ratio_weight * (logs[group, k] - logs[other, k]) / (n_groups - 1)
            if terms.agreement_weight > 0.0:
                apart = 1.0 - policies[other, k] if expected else (0.0 if draws[other] == k else 1.0)
                reward -= terms.agreement_weight * apart / (n_groups - 1)
    if terms.mask.shape[0] > 0:
        reward -= rate_price(terms, state, group, label, k)
    if terms.custom:
        reward += custom(k, label, group, policies, state.rates[0])
    return reward
