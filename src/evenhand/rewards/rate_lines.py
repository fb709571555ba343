"""The compiled code of bounded rates, for one person or for everybody; `rates` has the definitions."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.jit import jit
from evenhand.rewards.term import TINY


@jit(inline="always")
def watch(
    own: Any, state: Any, group: int, label: int, policies: Any, share: float, stands_for: float, logged: bool
) -> None:
    """Update the running rates with one person, who `stands_for` several, and then the dual variables.

    In a log, only some people may have labels. Someone with a label represents others with the same label in
    rates given the label, but only one person in overall rates. `share` is the current learning rate relative
    to its start, so that prices settle as the policies do.
    """
    n_terms, _, n_slots, n_actions = state.rates.shape
    likeliest = 0
    for k in range(1, n_actions):
        if policies[group, k] > policies[group, likeliest]:
            likeliest = k
    for slot in range(n_slots):
        if slot != label and slot != n_slots - 1:
            continue
        people = 1.0 if logged and slot == n_slots - 1 else stands_for
        state.counts[group, slot] += people
        for t in range(n_terms):
            # An exact mean at first; a moving average after enough people.
            weight = min(people * max(own.averaging[t, group], 1.0 / state.counts[group, slot]), 1.0)
            top = decided(own.cut[t], policies[group, 1], likeliest)
            for k in range(n_actions):
                seen = (1.0 if k == top else 0.0) if own.cut[t] >= 0.0 else policies[group, k]
                state.rates[t, group, slot, k] += weight * (seen - state.rates[t, group, slot, k])
                if own.mask[t, slot, k]:
                    move_prices(own, state, t, slot, k, people * share)


@jit(inline="always")
def decided(cut: float, second: float, likeliest: int) -> Any:
    """Return the decision: the most probable action, or, with two actions, that at the threshold `cut`."""
    return likeliest if cut == 0.0 else int(second >= cut)


@jit(inline="always")
def move_prices(own: Any, state: Any, t: int, slot: int, k: int, share: float) -> None:
    """Update the dual variables of one rate, like `ascended`."""
    step = share * own.dual_step[t]
    for g in range(state.counts.shape[0]):
        if state.counts[g, slot] > 0 and own.held[t, g]:
            moved = state.dual[t, g, slot, k] + step * rate_apart(own, state, t, g, slot, k)
            state.dual[t, g, slot, k] = outside(moved, step * 0.5 * own.bound[t])


@jit()
def watch_all(
    own: Any, state: Any, groups: Any, labels: Any, said: Any, share: float, shares: Any, logged: bool
) -> None:
    """Compute the rates of all these people, and update the dual variables once.

    `said[person, group, action]` are every policy's probabilities. `shares` has the number of people each
    person represents; it is empty if that is one for everybody. For the other arguments, see `watch`.
    """
    n_terms, n_groups, n_slots, n_actions = state.rates.shape
    state.counts[:] = 0.0
    state.rates[:] = 0.0
    for i in range(groups.shape[0]):
        group, likeliest = groups[i], 0
        stands_for = shares[i] if shares.shape[0] > 0 else 1.0
        for k in range(1, n_actions):
            if said[i, group, k] > said[i, group, likeliest]:
                likeliest = k
        for slot in range(n_slots):
            if slot != labels[i] and slot != n_slots - 1:
                continue
            people = 1.0 if logged and slot == n_slots - 1 else stands_for
            state.counts[group, slot] += people
            for t in range(n_terms):
                top = decided(own.cut[t], said[i, group, 1], likeliest)
                for k in range(n_actions):
                    counted = (1.0 if k == top else 0.0) if own.cut[t] >= 0.0 else said[i, group, k]
                    state.rates[t, group, slot, k] += people * counted
    for t in range(n_terms):
        for slot in range(n_slots):
            for k in range(n_actions):
                for group in range(n_groups):
                    state.rates[t, group, slot, k] /= max(state.counts[group, slot], TINY)
                if own.mask[t, slot, k]:
                    move_prices(own, state, t, slot, k, share)


@jit(inline="always")
def outside(value: float, half: float) -> Any:
    """Return how far a number is outside ± half; 0 inside."""
    return value - min(max(value, -half), half)


@jit(inline="always")
def rate_apart(own: Any, state: Any, t: int, group: int, slot: int, k: int) -> Any:
    """Return a group's rate minus the middle of the highest and lowest rate of all groups seen so far.

    Groups that are too small to be held to the bound don't count. The group itself must count.
    """
    low, high = np.inf, -np.inf
    for g in range(state.counts.shape[0]):
        if state.counts[g, slot] > 0 and own.held[t, g]:
            low = min(low, state.rates[t, g, slot, k])
            high = max(high, state.rates[t, g, slot, k])
    return state.rates[t, group, slot, k] - 0.5 * (low + high)


@jit(inline="always")
def rate_excess(own: Any, state: Any, t: int, group: int, slot: int, k: int) -> Any:
    """Return how far a group's rate is outside ± bound/2 around the middle of the groups; else 0."""
    if state.counts[group, slot] == 0 or not own.held[t, group]:
        return 0.0
    return outside(rate_apart(own, state, t, group, slot, k), 0.5 * own.bound[t])


@jit(inline="always")
def rate_price(own: Any, state: Any, group: int, label: int, k: int) -> Any:
    """Return the current price of action k for this group, over all bounded rates that include the person.

    A person in a small group changes its rate more. The price is therefore divided by the group's share of
    people, which makes it the derivative of the Lagrangian. For groups of equal size, the factor is 1.
    """
    n_terms, n_groups, n_slots, _ = state.rates.shape
    price = 0.0
    for slot in range(n_slots):
        if (slot != label and slot != n_slots - 1) or state.counts[group, slot] == 0:
            continue
        people = 0.0
        for g in range(n_groups):
            people += state.counts[g, slot]
        for t in range(n_terms):
            if own.mask[t, slot, k] and own.held[t, group]:
                factor = people / (n_groups * state.counts[group, slot])
                mean = 0.0
                for g in range(n_groups):
                    mean += state.dual[t, g, slot, k] / n_groups
                over = rate_excess(own, state, t, group, slot, k)
                price += factor * (state.dual[t, group, slot, k] - mean + own.pull[t] * over)
    return price


@jit(inline="always")
def earn(
    own: Any, reward: float, note: float, k: int, label: int, group: int, policies: Any, state: Any
) -> Any:
    """Return the reward minus the price of action k."""
    return reward - rate_price(own, state, group, label, k)
