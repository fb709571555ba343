"""The compiled lines of bounded rates, for one person or for all; `rates` defines what they do."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.jit import jit
from evenhand.rewards.term import TINY


@jit(inline="always")
def watch(
    own: Any, state: Any, group: int, label: int, policies: Any, share: float, stands_for: float, logged: bool
) -> None:
    """Move the running rates by one person, who `stands_for` so many, and the dual variables as `ascended`.

    A log's labels may be known for some people only: there a person stands for others with the same label,
    and for one where labels don't count.
    `share` is what the schedule has left of the learning rate: the prices settle as the policies do.
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
            # A true mean at first, a moving one once enough people were seen.
            weight = min(people * max(own.averaging[t, group], 1.0 / state.counts[group, slot]), 1.0)
            top = decided(own.cut[t], policies[group, 1], likeliest)
            for k in range(n_actions):
                seen = (1.0 if k == top else 0.0) if own.cut[t] >= 0.0 else policies[group, k]
                state.rates[t, group, slot, k] += weight * (seen - state.rates[t, group, slot, k])
                if own.mask[t, slot, k]:
                    move_prices(own, state, t, slot, k, people * share)


@jit(inline="always")
def decided(cut: float, second: float, likeliest: int) -> Any:
    """Return the action that counts as decided: the most probable, or of two by the cut."""
    return likeliest if cut == 0.0 else int(second >= cut)


@jit(inline="always")
def move_prices(own: Any, state: Any, t: int, slot: int, k: int, share: float) -> None:
    """Move the dual variables of one rate as `ascended` does."""
    step = share * own.dual_step[t]
    for g in range(state.counts.shape[0]):
        if state.counts[g, slot] > 0 and own.held[t, g]:
            moved = state.dual[t, g, slot, k] + step * rate_apart(own, state, t, g, slot, k)
            state.dual[t, g, slot, k] = outside(moved, step * 0.5 * own.bound[t])


@jit()
def watch_all(
    own: Any, state: Any, groups: Any, labels: Any, said: Any, share: float, shares: Any, logged: bool
) -> None:
    """Set the rates to those of all these people at once, and move the dual variables once.

    `said[person, group, action]` are every policy's probabilities, and `shares` how many each person stands
    for, empty where everybody stands for one; for the rest see `watch`.
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
    """Return how far a number lies outside ± half."""
    return value - min(max(value, -half), half)


@jit(inline="always")
def rate_apart(own: Any, state: Any, t: int, group: int, slot: int, k: int) -> Any:
    """Return how far a group's rate lies from the middle of the groups seen so far; the group is one.

    Groups that are too small to be held to the bound don't count.
    """
    low, high = np.inf, -np.inf
    for g in range(state.counts.shape[0]):
        if state.counts[g, slot] > 0 and own.held[t, g]:
            low = min(low, state.rates[t, g, slot, k])
            high = max(high, state.rates[t, g, slot, k])
    return state.rates[t, group, slot, k] - 0.5 * (low + high)


@jit(inline="always")
def rate_excess(own: Any, state: Any, t: int, group: int, slot: int, k: int) -> Any:
    """Return how far a group's rate lies outside the bound around the middle of the groups seen so far."""
    if state.counts[group, slot] == 0 or not own.held[t, group]:
        return 0.0
    return outside(rate_apart(own, state, t, group, slot, k), 0.5 * own.bound[t])


@jit(inline="always")
def rate_price(own: Any, state: Any, group: int, label: int, k: int) -> Any:
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
    """Return the reward less the price of action k."""
    return reward - rate_price(own, state, group, label, k)
