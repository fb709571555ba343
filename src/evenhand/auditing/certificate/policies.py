"""Two policies as pairs of hidden units, and what a difference of probabilities means for their logits.

Let u and v be the policies' logits. Their probabilities are more than `gap` apart if u − v > h((u + v)/2),
with h(m) = log((1 + gap)/(1 − gap)) + 2 asinh(gap cosh(m)/√(1 − gap²)). This h is convex, so it lies above
its tangents: if u − v minus a tangent is nowhere positive, nobody's probabilities are farther apart. If it is
at most d > 0, probabilities are at most as far apart as with a mean logit of 0 and a difference of h(0) + d.

The tilt of a bound is the point where the tangent touches, and the prices of two conditions on people. With
different decisions, the first policy's logit is above the boundary (a price above 0) and the second's below
(a price below 0). Near a real person, the costs of the values sum to at most 0.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from evenhand.arrays import Codes, Flags, Floats
from evenhand.auditing.certificate.forest import Forest, add_trees, no_trees
from evenhand.jit import jit

_ROUNDED = 1e-9  # logits this close to a tangent count as on it; otherwise splitting might never end


class TwoPolicies(NamedTuple):
    """Two policies and all possible people, as what each option of a column adds to the hidden layers.

    An option is a category, a missing number, or a range of numbers; a person has exactly one option for each
    column. An option's values are the category, or the two ends of the range; people between are mixtures.
    """

    first: Codes  # where each column's values begin, and where the last column's end
    option: Codes  # the option of each value
    base: Floats  # (options, 2 × hidden): for the units of the first policy, then of the second
    slope: Floats
    start: Floats  # (2 × hidden): the biases, and what the first options add
    weights: Floats  # (2 × hidden): both policies' output weights, for the logit
    bias: Floats  # (2): their output biases
    plus: Codes  # the unit of each pair that drives the policies apart
    minus: Codes  # the unit of each pair that brings them together
    forest: Forest
    outputs: Floats  # (2, labels, hidden): both policies' output weights; none for two labels
    biases: Floats  # (2, labels)
    chosen: Flags  # (labels,): the labels whose probability is compared

    def units(self, chosen: Flags, numbers: Floats) -> Floats:
        """Return the hidden units, before the ReLU, of people given by their options and numbers."""
        return np.asarray(chosen @ self.base + (chosen * numbers) @ self.slope + self.start)

    def logits(self, chosen: Flags, numbers: Floats) -> Floats:
        """Return both policies' logits for people: (people, 2)."""
        units = self.units(chosen, numbers)
        if len(self.chosen):
            said = self.said(units)
            return np.asarray(
                logsumexp(said[..., self.chosen], axis=2) - logsumexp(said[..., ~self.chosen], axis=2)
            )
        active = (np.maximum(units, 0) * self.weights).reshape(len(units), 2, -1)
        logits = np.asarray(active.sum(2) + self.bias)
        if len(self.forest.adds):
            ends = np.append(self.option[self.first[:-1]], chosen.shape[1])
            options = [a + chosen[:, a:b].argmax(1) for a, b in pairwise(ends.tolist())]
            add_trees(self, np.searchsorted(self.option, np.stack(options, axis=1)), logits)
        return logits

    def said(self, units: Floats) -> Floats:
        """Return the logits of all labels for hidden units, before the ReLU: (people, 2, labels)."""
        active = np.maximum(units, 0).reshape(len(units), 2, 1, -1)
        return np.asarray((active * self.outputs).sum(3) + self.biases)

    def agreement(self, chosen: Flags, numbers: Floats) -> Floats:
        """Return how far policies with more labels are from different decisions; below 0 if they differ."""
        first, second = self.said(self.units(chosen, numbers)).transpose(1, 0, 2)
        top = first.argmax(1)[:, None]
        others = second.copy()
        np.put_along_axis(others, top, -np.inf, 1)
        return np.asarray(np.take_along_axis(second, top, 1)[:, 0] - others.max(1))

    def with_labels(self, outputs: Floats, biases: Floats, chosen: Flags) -> TwoPolicies:
        """Return the same policies with more than two labels, of which the chosen ones are compared."""
        units = np.arange(len(self.weights))
        half = len(units) // 2
        return self._replace(
            plus=units, minus=np.roll(units, half), outputs=outputs,
            biases=biases, chosen=chosen,
        )  # fmt: skip


def two_policies(
    first: Codes, ranges: Flags, base: Floats, slope: Floats, start: Floats, weights: Floats, bias: Floats
) -> TwoPolicies:
    """Return two policies, given where each column's options begin and which options are ranges."""
    options = [np.repeat(np.arange(a, b), 1 + ranges[a:b]) for a, b in pairwise(first.tolist())]
    n = len(weights) // 2
    plus, minus = [], []
    for unit, (one, other) in enumerate(weights.reshape(2, n).T):
        if one * other >= 0:
            plus.append(unit + n * (one + other < 0))
            minus.append(unit + n * (one + other >= 0))
        else:  # not a pair: each unit is by itself
            plus += [unit, unit + n]
            minus += [unit, unit + n]
    begins = np.cumsum([0, *map(len, options)])
    return TwoPolicies(
        begins, np.concatenate(options), np.ascontiguousarray(base), np.ascontiguousarray(slope), start,
        weights, bias, np.array(plus, dtype=np.int64), np.array(minus, dtype=np.int64),
        no_trees(len(begins) - 1), np.zeros((2, 0, 0)), np.zeros((2, 0)), np.zeros(0, dtype=np.bool_),
    )  # fmt: skip


class Aim(NamedTuple):
    """The gap that a bound should not exceed; 0 to prove that there is nobody."""

    gap: float
    boundary: float  # count only people with different decisions at this logit; NaN for everybody
    slip: float = 0.0  # with more labels: the possible error of a difference of logits
    first: float = 0.0  # the possible error of the set's logit
    second: float = 0.0  # the possible error of the other labels' logit


def gap_beyond(gap: float, excess: Floats) -> Floats:
    """Return how far apart probabilities can be if the logits' difference exceeds a tangent of h.

    >>> gap_beyond(0.2, np.array([0.0, 0.1])).round(4)
    array([0.2   , 0.2239])
    """
    beyond = np.where(excess <= _ROUNDED, 0, excess)
    return np.where(beyond > 0, np.tanh(np.arctanh(gap) + beyond / 4), gap)


@jit()
def weigh(two: TwoPolicies, aim: Aim, tilt: Any, up: Any, down: Any) -> tuple[float, float, float]:
    """Write the weights of each pair's units; return the constant part, and the weights of both logits."""
    odds = aim.gap / np.sqrt(1 - aim.gap**2)
    height = odds * np.cosh(tilt[0])
    steep = 2 * odds * np.sinh(tilt[0]) / np.sqrt(1 + height**2)
    one, other = 1 - steep / 2 + max(tilt[1], 0.0), 1 + steep / 2 + max(-tilt[1], 0.0)
    constant = steep * tilt[0] - 2 * np.arcsinh(height) - np.log((1 + aim.gap) / (1 - aim.gap))
    if not np.isnan(aim.boundary):
        constant -= aim.boundary * tilt[1]
    less, more = min(one, other), abs(one - other)
    apart = less * aim.slip + (more * aim.first if one > other else more * aim.second)
    constant += min(apart, one * aim.first + other * aim.second)
    hidden = len(two.weights) // 2
    for pair in range(len(two.plus)):
        unit = two.plus[pair]
        up[pair] = max(0.0, (one if unit < hidden else -other) * two.weights[unit])
        unit = two.minus[pair]
        down[pair] = max(0.0, (-one if unit < hidden else other) * two.weights[unit])
    return constant + one * two.bias[0] - other * two.bias[1], one, other


@jit()
def mend(
    two: TwoPolicies, aim: Aim, units: Any, said: Any, far: float, state: Any, up: Any, down: Any,
    lines: Any, tilt: Any, by: float,
) -> None:  # fmt: skip
    """Turn all lines, the tangent and the prices so that the bound falls by `by` for one person.

    `said` is what trees add for the person, and `far` is the cost of the person's values.
    """
    hidden = len(units) // 2
    active = np.maximum(units, 0) * two.weights
    u, v = active[:hidden].sum() + two.bias[0] + said[0], active[hidden:].sum() + two.bias[1] + said[1]
    way, short = (u + v) / 2 - tilt[0], 0.0
    if not np.isnan(aim.boundary):
        short = aim.boundary - (u if tilt[1] > 0 or u < aim.boundary else v)
    far = far if far > 0 or tilt[2] > 0 else 0.0
    size, step = max(way**2 + short**2 + far**2, 1e-12), 0.0
    for turn in range(2):  # first the size of everything that can turn, then the turns
        for pair in range(len(up)):
            line, one, other = lines[pair, state[pair]], units[two.plus[pair]], units[two.minus[pair]]
            rise = -one if state[pair] else one
            extra = line[0] > 0 or rise > 0
            share = down[pair] > 0 and (line[1] < 1 if other > 0 else line[1] > 0)
            if turn:
                line[0] = max(0.0, line[0] + step * rise) if extra else line[0]
                line[1] = min(1.0, max(0.0, line[1] + step * other / down[pair])) if share else line[1]
            else:
                size += (one**2 if extra else 0.0) + (other**2 if share else 0.0)
        step = by / size
    tilt[1] += step * short
    tilt[2] = max(0.0, tilt[2] + step * far)
    odds = aim.gap / np.sqrt(1 - aim.gap**2)
    if odds > 0:
        bend = 2 * odds * np.cosh(tilt[0]) * (1 + odds**2) / (1 + (odds * np.cosh(tilt[0])) ** 2) ** 1.5
        move = min(1.0, max(-1.0, min(1.0, step / bend) * way))
        tilt[0] = min(20.0, max(-20.0, tilt[0] + move))
