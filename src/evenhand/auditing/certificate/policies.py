"""Two policies as pairs of hidden units, and what their probabilities' difference means for their logits.

With u and v the policies' logits, probabilities are more than `gap` apart where u − v > h((u + v)/2), with
h(m) = log((1 + gap)/(1 − gap)) + 2 asinh(gap cosh(m)/√(1 − gap²)). This h is convex, so it lies above its
tangents: if u − v minus a tangent is nowhere positive, nobody's probabilities are farther apart. If it is
positive by d, they are apart at most as with a mean logit of 0 and a difference of h(0) + d.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from evenhand.arrays import Codes, Flags, Floats
from evenhand.auditing.certificate.forest import Forest, add_trees, no_trees

_ROUNDED = 1e-9  # logits that are this close to a tangent are on it, or splitting might never end


class TwoPolicies(NamedTuple):
    """Two policies and all possible people, as what each option of a column adds to the hidden layers.

    An option is a category, a missing number, or the numbers in a range; a person has exactly one for each
    column. Its values are the category, or the two ends of the range: people between are mixtures.
    """

    first: Codes  # where each column's values begin, and where the last one's end
    option: Codes  # of each value
    base: Floats  # (options, 2 × hidden): for the first policy's units and the second's
    slope: Floats
    start: Floats  # (2 × hidden): the biases
    weights: Floats  # (2 × hidden): both policies' output weights, on the logit
    bias: Floats  # (2): their output biases
    plus: Codes  # the unit of each pair that drives the policies apart, and the one that brings them together
    minus: Codes
    forest: Forest
    outputs: Floats  # (2, labels, hidden): both policies' output weights; none for two labels
    biases: Floats  # (2, labels)
    chosen: Flags  # (labels,): those whose probability is compared

    def units(self, chosen: Flags, numbers: Floats) -> Floats:
        """Return the hidden units, before the ReLU, of people given by their options and numbers."""
        return np.asarray(chosen @ self.base + (chosen * numbers) @ self.slope + self.start)

    def logits(self, chosen: Flags, numbers: Floats) -> Floats:
        """Return both policies' logits of people: (people, 2)."""
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
        """Return how far policies of more labels are from deciding differently; below 0 if they do."""
        first, second = self.said(self.units(chosen, numbers)).transpose(1, 0, 2)
        top = first.argmax(1)[:, None]
        others = second.copy()
        np.put_along_axis(others, top, -np.inf, 1)
        return np.asarray(np.take_along_axis(second, top, 1)[:, 0] - others.max(1))

    def with_labels(self, outputs: Floats, biases: Floats, chosen: Flags) -> TwoPolicies:
        """Return the same policies of more than two labels, some of which are compared with the others."""
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
        else:  # not a pair: each is by itself
            plus += [unit, unit + n]
            minus += [unit, unit + n]
    begins = np.cumsum([0, *map(len, options)])
    return TwoPolicies(
        begins, np.concatenate(options), np.ascontiguousarray(base), np.ascontiguousarray(slope), start,
        weights, bias, np.array(plus, dtype=np.int64), np.array(minus, dtype=np.int64),
        no_trees(len(begins) - 1), np.zeros((2, 0, 0)), np.zeros((2, 0)), np.zeros(0, dtype=np.bool_),
    )  # fmt: skip


class Aim(NamedTuple):
    """The gap that a bound should not exceed; 0 to rule out that there is anybody."""

    gap: float
    boundary: float  # count only those whom the policies decide differently at this logit; NaN for everybody
    slip: float = 0.0  # with more labels: what a difference of logits may be wrong by
    first: float = 0.0  # and what the set's logit may be wrong by, and the others'
    second: float = 0.0


def gap_beyond(gap: float, excess: Floats) -> Floats:
    """Return how far apart probabilities can be where the logits' difference is beyond a tangent of h.

    >>> gap_beyond(0.2, np.array([0.0, 0.1])).round(4)
    array([0.2   , 0.2239])
    """
    beyond = np.where(excess <= _ROUNDED, 0, excess)
    return np.where(beyond > 0, np.tanh(np.arctanh(gap) + beyond / 4), gap)
