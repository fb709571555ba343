"""More than two labels: a set of labels is compared with the others, as if these were two labels.

The total variation between two policies' probabilities is the largest difference in the probability of a set
of labels. With logits x, the set's logit is L(x in the set) − L(x of the others), where L(x) = log Σ exp(x).
Within a box, L is close to a mean of the logits: L(x) = q·x + H(q) + KL(q ‖ softmax(x)) for any weights q,
with their entropy H. If differences of logits are at most ρ from where softmax(x) is q, KL is at most ρ²/8
(Hoeffding) and at most ρ; and L(u) − L(v) is at most q·(u − v) + tanh(ρ/4) R, where R is how much u − v
differs between labels. With the same q for both policies, the second error is small if the policies are
alike. With a q for each policy, the first error vanishes as boxes get smaller. We take the smaller error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.auditing.certificate.policies import Aim, TwoPolicies
from evenhand.jit import jit


@jit()
def as_two(two: TwoPolicies, aim: Aim, allowed: Any, ends: Any, states: Any) -> tuple[TwoPolicies, Aim]:
    """Return the policies within a box as if they had two labels, and the aim with the possible error."""
    low, high, apart = _units(two, allowed, ends, states)
    hidden, count = len(two.weights) // 2, len(two.chosen)
    mixes, own = np.zeros((2, count)), np.zeros((2, count))  # the weights of labels, for each policy
    slip, alike, alone = 0.0, np.zeros(2), np.zeros(2)
    for which in range(2):  # the set, and the others
        labels, sign = np.flatnonzero(two.chosen == (which == 0)), 1.0 if which == 0 else -1.0
        mix, far, differ = _mixed(two, labels, low, high, apart, 0, 2)
        slip += np.tanh(far / 4) * differ
        alike[which] = min(far, far * far / 8)
        for policy in range(2):
            mixes[policy, labels] = sign * mix
            mix_alone, far, _ = _mixed(two, labels, low, high, apart, policy, policy + 1)
            own[policy, labels] = sign * mix_alone
            if policy == which:  # for the other policy, the error of the mean has the right sign
                alone[which] = min(far, far * far / 8)
    if alone.sum() < slip:
        mixes, slip, alike = own, np.inf, alone
    weights, bias = np.zeros(2 * hidden), np.zeros(2)
    for policy in range(2):
        for label in range(count):
            mix = mixes[policy, label]
            bias[policy] += mix * (two.biases[policy, label] - np.log(max(abs(mix), 1e-300)))
            weights[policy * hidden : (policy + 1) * hidden] += mix * two.outputs[policy, label]
    mine = TwoPolicies(
        two.first, two.option, two.base, two.slope, two.start, weights, bias, two.plus, two.minus, two.forest,
        two.outputs, two.biases, two.chosen,
    )  # fmt: skip
    return mine, Aim(aim.gap, aim.boundary, slip, alike[0], alike[1])


@jit()
def _units(two: TwoPolicies, allowed: Any, ends: Any, states: Any) -> tuple[Any, Any, Any]:
    """Return each unit's lowest and highest value in a box, after the ReLU, and the differences of pairs."""
    units = len(two.start)
    hidden = units // 2
    low, high = two.start.copy(), two.start.copy()
    apart = np.empty((2, hidden))
    apart[:] = two.start[:hidden] - two.start[hidden:]
    least, most, short, far = np.empty(units), np.empty(units), np.empty(hidden), np.empty(hidden)
    for column in range(len(two.first) - 1):
        least[:], most[:], short[:], far[:] = np.inf, -np.inf, np.inf, -np.inf
        for value in range(two.first[column], two.first[column + 1]):
            if allowed[value]:
                adds = two.base[two.option[value]] + two.slope[two.option[value]] * ends[value]
                least, most = np.minimum(least, adds), np.maximum(most, adds)
                short = np.minimum(short, adds[:hidden] - adds[hidden:])
                far = np.maximum(far, adds[:hidden] - adds[hidden:])
        low += least
        high += most
        apart[0] += short
        apart[1] += far
    for pair in range(len(two.plus)):
        unit = two.plus[pair]
        high[unit] = high[unit] if states[pair, 1] else min(0.0, high[unit])
        low[unit] = low[unit] if states[pair, 0] else max(0.0, low[unit])
    low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
    high = np.maximum(low, high)  # in case nobody is in the box
    apart[0] = np.maximum(np.minimum(apart[0], 0.0), low[:hidden] - high[hidden:])
    apart[1] = np.minimum(np.maximum(apart[1], 0.0), high[:hidden] - low[hidden:])
    return low, high, apart


@jit()
def _mixed(
    two: TwoPolicies, labels: Any, low: Any, high: Any, apart: Any, first: int, last: int
) -> tuple[Any, float, float]:
    """Return weights q of labels' logits in a box, the policies' distance ρ from q, and how u − v differs."""
    hidden, count = len(low) // 2, len(labels)
    middle, far, differ = np.zeros(count), 0.0, 0.0
    widths = np.zeros((count, count, 2))
    for one in range(count):
        for other in range(count):
            if one == other:
                continue
            least, most = np.inf, -np.inf
            for policy in range(first, last):
                begin, end = policy * hidden, (policy + 1) * hidden
                rises = two.outputs[policy, labels[one]] - two.outputs[policy, labels[other]]
                base = two.biases[policy, labels[one]] - two.biases[policy, labels[other]]
                up, down = np.maximum(rises, 0.0), np.minimum(rises, 0.0)
                least = min(least, base + (up * low[begin:end] + down * high[begin:end]).sum())
                most = max(most, base + (up * high[begin:end] + down * low[begin:end]).sum())
            widths[one, other, 0], widths[one, other, 1] = least, most
            differ = max(differ, _differ(two, labels[one], labels[other], low, high, apart))
        middle[one] = (widths[one, 0, 0] + widths[one, 0, 1]) / 2
    mix = np.exp(middle - middle.max())
    mix /= mix.sum()
    for one in range(count):
        for other in range(count):
            center = middle[one] - middle[other]
            far = max(far, widths[one, other, 1] - center) if one != other else far
    return mix, far, differ


@jit()
def _differ(two: TwoPolicies, one: int, other: int, low: Any, high: Any, apart: Any) -> float:
    """Return how much farther apart two labels' logits can be for the first policy than for the second."""
    hidden = len(low) // 2
    first, second = two.outputs[0, one] - two.outputs[0, other], two.outputs[1, one] - two.outputs[1, other]
    most = two.biases[0, one] - two.biases[0, other] - two.biases[1, one] + two.biases[1, other]
    for unit in range(hidden):
        by_apart = max(first[unit] * apart[0, unit], first[unit] * apart[1, unit])
        rest = first[unit] - second[unit]
        by_rest = max(rest * low[hidden + unit], rest * high[hidden + unit])
        direct = max(first[unit] * low[unit], first[unit] * high[unit]) - min(
            second[unit] * low[hidden + unit], second[unit] * high[hidden + unit]
        )
        most += min(by_apart + by_rest, direct)
    return float(most)
