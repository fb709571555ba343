"""The training loop, one person per step: Algorithm 1 of the paper, and all variants of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenhand.bandits.kernels.layers import FAST, add_gradient, forward, softmax
from evenhand.bandits.kernels.optimisers import close_batch, learning_rate
from evenhand.bandits.kernels.simd import prefetch
from evenhand.bandits.randomness import scramble, shuffle_of, uniform, walk
from evenhand.jit import jit
from evenhand.rewards import rate_lines
from evenhand.rewards.compiled import fill_rewards, listen
from evenhand.rewards.kl import mean_divergence
from evenhand.rewards.term import TINY, other_at

ORDERS = ("shuffled", "file", "drawn")
_PERSON, _ACTION = 0, 1  # streams of random numbers; the groups' own draws use the next ones


@jit(inline="always")
def shuffle_at(options: Any, step: int, n_people: int) -> Any:
    """Return the shuffle of the epoch that a step belongs to."""
    return shuffle_of(n_people, scramble(options.seed, options.origin + (step - options.origin) // n_people))


@jit(inline="always")
def next_person(options: Any, step: int, position: int, n_people: int, shuffle: Any) -> Any:
    """Return the next person: from a new shuffle in each epoch, in the file's order, or drawn at random.

    `position` is the position of the step in its epoch.
    """
    if options.order == 0:
        return walk(position, shuffle)
    if options.order == 1:
        return position
    return int(uniform(options.seed, step, _PERSON) * n_people)


@jit()
def person_at(options: Any, step: int, n_people: int) -> Any:
    """Return the person of any step; the loop itself goes from one step to the next."""
    position = (step - options.origin) % n_people
    return next_person(options, step, position, n_people, shuffle_at(options, step, n_people))


@jit(inline="always")
def draw(policies: Any, g: int, u: float) -> Any:
    """Return the action that the uniform number u selects from group g's policy."""
    n_actions = policies.shape[1]
    below = 0.0
    for k in range(n_actions - 1):
        below += policies[g, k]
        if u < below:
            return k
    return n_actions - 1


@jit()
def stand_for(
    people: float, terms: Any, apart: float, first: int, last: int, group: int, said: Any, logs: Any,
    draws: Any, expected: bool, state: Any, rewards: Any, untold: Any,
) -> None:  # fmt: skip
    """Multiply the label's effect on the rewards of a log by `people`; `untold` is scratch space."""
    fill_rewards(terms, apart, first, last, -1, group, said, logs, draws, expected, state, untold)
    for k in range(first, last):
        rewards[k] = untold[k] + people * (rewards[k] - untold[k])


@jit(inline="always")
def acting_gradient(
    expected: bool, logged: bool, action: int, weight: float, earned: float, g: int,
    policies: Any, rewards: Any, out: Any,
) -> Any:  # fmt: skip
    """Fill the acting policy's logit gradient; return the reward for the history.

    Expected: Σ_a π(a)·r(a)·∇log π(a). Sampled: r(a)·∇log π(a) for the action taken. A logged action has the
    importance `weight` π(a)/propensity; what was `earned` is known only for that action.
    """
    n_actions = policies.shape[1]
    if not expected:
        reward = rewards[action] + earned
        for k in range(n_actions):
            out[k] = weight * reward * ((1.0 if k == action else 0.0) - policies[g, k])
        return reward
    if logged:
        rewards[action] += earned * weight / max(policies[g, action], TINY)
    mean = 0.0
    for k in range(n_actions):
        mean += policies[g, k] * rewards[k]
    for k in range(n_actions):
        out[k] = policies[g, k] * (rewards[k] - mean)
    return mean


class Scratch(NamedTuple):
    """Scratch arrays for one step."""

    hidden: Any
    logits: Any
    back: Any
    said: Any
    logs: Any
    rewards: Any
    untold: Any
    gradient: Any
    draws: Any


# Without NRT: arrays are arguments, and counting references to them would take a seventh of each step.
@jit(fastmath=FAST, _nrt=False)
def train(
    policies: Any, moments: Any, scratch: Any, rows: Any, people: Any, terms: Any, state: Any, options: Any,
    first_step: int, n_steps: int, history: Any, told: Any, pair: Any,
) -> int:  # fmt: skip
    """Take `n_steps` steps, starting at `first_step`; stop before a reward that is not finite.

    Return the number of steps taken.

    history[row] holds the sums of reward and divergence, and the number of steps, of one interval. `told` are
    the shares of people in a log with some labels; with None, the loop is compiled without that code. Unless
    `pair` is None, the loop is compiled for two groups and two actions.
    """
    W1, b1, W2, b2 = policies
    values, indices, starts = rows.values, rows.indices, rows.starts
    groups, labels, pending = people.groups, people.labels, moments.pending
    n_people = groups.shape[0]
    n_groups, n_actions = W2.shape[0], W2.shape[1]
    direct = options.batch_size == 1 and not options.adam and options.weight_decay == 0.0
    expected, logged = options.expected, people.actions.shape[0] > 0
    weighted, shared = people.weights.shape[0] > 0, people.shares.shape[0] > 0
    listens, weights = options.mutual and n_groups > 1 and terms.listens, terms.weights
    watches = state.rates.shape[0] > 0
    target_W1, target_b1, target_W2, target_b2 = policies if direct else moments.gradient
    hidden, logits, back, said, logs, rewards, untold, gradient, draws = scratch
    # After this check, the compiler knows these sizes, and unrolls the loops over them.
    if pair is not None and not (
        n_groups == 2 and n_actions == 2 and target_W2.shape[1] == 2 and logits.shape[1] == 2
        and said.shape[0] == 2 and said.shape[1] == 2 and state.counts.shape[0] == 2
        and state.rates.shape[1] == 2 and state.rates.shape[2] == 3 and state.rates.shape[3] == 2
    ):  # fmt: skip
        return -1

    position = (first_step - options.origin) % n_people
    shuffle = shuffle_at(options, first_step, n_people)
    person, upcoming, after = 0, 0, 0
    row, left = -1, 0
    for ahead in range(first_step, first_step + n_steps + 2):
        # People are scattered in memory, so they are prefetched two steps ahead.
        person, upcoming, after = upcoming, after, next_person(options, ahead, position, n_people, shuffle)
        position += 1
        if position == n_people:
            position, shuffle = 0, shuffle_at(options, ahead + 1, n_people)
        prefetch(starts, after)
        prefetch(groups, after)
        prefetch(labels, after)
        at = starts[upcoming]
        prefetch(values, at)
        prefetch(values, at + 15)
        if rows.sparse:
            prefetch(indices, at)
            prefetch(indices, at + 15)
        step = ahead - 2
        if step < first_step:
            continue
        group, label = groups[person], labels[person]
        at, count = starts[person], starts[person + 1] - starts[person]
        index_at = at if rows.sparse else 0
        for g in range(n_groups):
            forward(W1, b1, W2, b2, g, values, indices, at, index_at, count, hidden, logits)
            softmax(logits, g, logs, said)
        closes = pending[0] + 1 >= options.batch_size or step + 1 == options.end
        rate = learning_rate(options, step) if closes or direct or watches else 0.0
        if watches:
            stands_for = people.shares[person] if shared else 1.0
            rate_lines.watch(
                terms.rates, state, group, label, said, rate / options.learning_rate, stands_for, logged
            )

        action, weight, earned = -1, 1.0, 0.0
        if logged:
            action, earned = people.actions[person], people.rewards[person]
            weight = min(said[group, action] / people.propensities[person], options.importance_clip)
        elif not expected:
            action = draw(said, group, uniform(options.seed, step, _ACTION))
        if terms.draws and not expected:
            for g in range(n_groups):
                draws[g] = draw(said, g, uniform(options.seed, step, _ACTION + 1 + g))

        apart = mean_divergence(0, group, said, logs)
        first, last = (0, n_actions) if expected else (action, action + 1)
        fill_rewards(terms, apart, first, last, label, group, said, logs, draws, expected, state, rewards)
        if told is not None and label >= 0:
            stand_for(
                told[person], terms, apart, first, last, group, said, logs, draws, expected, state, rewards,
                untold,
            )  # fmt: skip
        reward = acting_gradient(expected, logged, action, weight, earned, group, said, rewards, gradient)
        if not np.isfinite(reward):
            return step - first_step
        if left == 0:
            row, left = row + 1, options.interval
        left -= 1
        history[row, 0] += reward
        history[row, 1] += apart
        history[row, 2] += 1.0

        counts = people.weights[person] if weighted else 1.0
        scale = counts * rate if direct else counts
        pending[0] += 1
        # `said` holds the probabilities before any update, so the order of the groups does not matter.
        for turn in range(n_groups if listens else 1):
            g = other_at(group, turn, n_groups)
            if turn > 0:
                listen(weights, expected, action, draws[g], weight, group, g, said, logs, gradient)
            pending[1 + g] = 1
            add_gradient(
                target_W1, target_b1, target_W2, target_b2, W2, g, values, indices, at, index_at, count,
                hidden, gradient, scale, back,
            )  # fmt: skip
        if direct:
            pending[0] = 0
        elif closes:
            close_batch(policies, moments, rate, options.adam, options.apart, options.weight_decay)
    return n_steps
