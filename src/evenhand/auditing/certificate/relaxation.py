"""Upper bounds, within boxes of possible people, on how far two policies are apart.

With m the mean of the two policies' logits and D their difference, the probabilities differ by
σ(m + D/2) − σ(m − D/2), which grows with D and falls with |m|. So a box needs a range of m and the largest D.
D is a sum over pairs of hidden units, one of each policy. Each unit, and the difference of each pair, lies
below a line or two; any mix of these lines gives a function that is linear in the person, and its maximum
over a box is found column by column. Subgradient steps look for the mix with the lowest maximum.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from scipy.special import expit

from evenhand.arrays import Codes, Flags, Floats

NOBODY = -1.0  # the bound of a box that holds nobody
_DAMPED = 0.7  # share of the last step that the next one keeps


@dataclass(frozen=True)
class TwoPolicies:
    """Two policies and all possible people, as what each option of a column adds to the hidden layers.

    An option is a category, a missing number, or the numbers in a range; a person has exactly one for each
    column. `base` and `slope` are (options, 3 × hidden): for the first policy's units, the second's, and
    their differences.
    """

    first: Codes  # where each column's options begin, and where the last one's end
    base: Floats
    slope: Floats
    start: Floats  # (3 × hidden): the biases
    weights: Floats  # (2 × hidden): both policies' output weights, on the logit
    bias: Floats  # (2): their output biases

    @property
    def hidden(self) -> int:
        """How many hidden units each policy has."""
        return len(self.weights) // 2

    @cached_property
    def amounts(self) -> Codes:
        """The options that are a range of numbers."""
        return np.flatnonzero((self.slope != 0).any(axis=1))

    @cached_property
    def choices(self) -> list[tuple[int, int]]:
        """Where the options of those columns begin and end that have more than one."""
        return [(begin, end) for begin, end in pairwise(self.first.tolist()) if end - begin > 1]

    def logits(self, units: Floats) -> Floats:
        """Return both policies' logits for hidden units before the ReLU: (people, 2)."""
        active = np.maximum(units, 0) * self.weights
        return (
            np.stack([active[:, : self.hidden].sum(1), active[:, self.hidden :].sum(1)], axis=1) + self.bias
        )


@dataclass
class Boxes:
    """Parts of all possible people, one per row, and what is known of them."""

    allowed: Flags  # (boxes, options)
    low: Floats  # (boxes, options): the ends of options that are ranges of numbers
    high: Floats
    middle: Floats  # (boxes, 2): the range of the mean logit
    units: Floats  # (boxes, 2, 3 × hidden): the lowest and highest value of each unit and difference
    price: Floats  # (boxes, 1): of the mean logit's range, in the mix of lines
    under: Floats  # (boxes, 2 × hidden): the slope of the line below each unit
    pairs: Floats  # (boxes, hidden): the weight of the line on each pair's difference
    gap: Floats  # (boxes,): the bound on the difference of probabilities
    difference: Floats  # (boxes,): the bound on that of the logits

    def __len__(self) -> int:
        return len(self.gap)

    def take(self, rows: Any) -> Self:
        """Return the boxes at these positions, copied."""
        return type(self)(**{one.name: getattr(self, one.name)[rows] for one in fields(self)})

    def join(self, other: Self) -> Self:
        """Return these boxes and others."""
        pairs = ((one.name, getattr(self, one.name), getattr(other, one.name)) for one in fields(self))
        return type(self)(**{name: np.concatenate([mine, theirs]) for name, mine, theirs in pairs})


def apart(middle: Floats, difference: Floats) -> Floats:
    """Return how far apart two probabilities are, given the mean of their logits and the difference."""
    return np.asarray(expit(middle + difference / 2) - expit(middle - difference / 2))


def difference_for(middle: Floats, gap: float) -> Floats:
    """Return the difference of logits for which the probabilities are `gap` apart: `apart` inverted.

    >>> round(float(apart(np.array([1.0]), difference_for(np.array([1.0]), 0.2))[0]), 9)
    0.2
    """
    # sinh(D/2) = gap · (cosh m + cosh(D/2)), a quadratic equation in exp(D/2).
    gap = min(gap, 1 - 1e-12)
    cosh = np.cosh(np.minimum(np.abs(middle), 300))
    powers = (gap * cosh + np.sqrt((gap * cosh) ** 2 + 1 - gap**2)) / (1 - gap)
    return np.asarray(2 * np.log(powers))


def nearest(middle: Floats) -> Floats:
    """Return the mean logit in each range that is nearest to 0, where probabilities differ most."""
    return np.asarray(np.clip(0, middle[:, 0], middle[:, 1]))


def column_range(two: TwoPolicies, column: int, boxes: Boxes) -> tuple[Floats, Floats]:
    """Return what a column adds at least and at most to every unit and difference: (boxes, 3 × hidden)."""
    at = slice(two.first[column], two.first[column + 1])
    base, slope = two.base[at][None], two.slope[at][None]
    one, other = base + slope * boxes.low[:, at, None], base + slope * boxes.high[:, at, None]
    out = ~boxes.allowed[:, at, None]
    least = np.where(out, np.inf, np.minimum(one, other)).min(1)
    return least, np.where(out, -np.inf, np.maximum(one, other)).max(1)


def best_people(two: TwoPolicies, weights: Floats, boxes: Boxes) -> tuple[Floats, Flags, Floats, Floats]:
    """Return the largest weights · units in each box; who has it (options and numbers), and their units."""
    n, at = weights.shape[1], two.amounts
    values = weights @ two.base[:, :n].T
    slopes = weights @ two.slope[at, :n].T
    numbers = np.zeros_like(values)
    numbers[:, at] = np.where(slopes > 0, boxes.high[:, at], boxes.low[:, at])
    values[:, at] += slopes * numbers[:, at]
    chosen = np.ones(values.shape, dtype=np.bool_)
    values[~boxes.allowed] = -np.inf
    for begin, end in two.choices:
        best = values[:, begin:end].argmax(1)
        chosen[:, begin:end] = np.arange(end - begin) == best[:, None]
    units = units_of(two, chosen, numbers)
    total = np.where(chosen, values, 0).sum(1) + weights @ two.start[:n]
    return total, chosen, numbers, units


def units_of(two: TwoPolicies, chosen: Flags, numbers: Floats) -> Floats:
    """Return the hidden units, before the ReLU, of people given by their options and numbers."""
    n, at = len(two.weights), two.amounts
    amounts = (chosen[:, at] * numbers[:, at]) @ two.slope[at, :n]
    return np.asarray(chosen @ two.base[:, :n] + amounts + two.start[:n])


def narrow_middle(two: TwoPolicies, boxes: Boxes) -> None:
    """Narrow each box's range of the mean logit to what lines above and below the units allow."""
    least, most = _settled(two, boxes)
    chord = most / (most - least)
    for end in (1, 0):
        weights = np.broadcast_to((1 if end else -1) * two.weights / 2, least.shape)
        below = np.where(most > -least, weights, 0)
        mixed = np.where(least >= 0, weights, np.where(weights >= 0, weights * chord, below))
        constant = -np.where((least < 0) & (weights > 0), mixed * least, 0).sum(1)
        reached = constant + best_people(two, mixed, boxes)[0]
        if end:
            boxes.middle[:, 1] = np.minimum(boxes.middle[:, 1], reached + two.bias.mean())
        else:
            boxes.middle[:, 0] = np.maximum(boxes.middle[:, 0], two.bias.mean() - reached)


def _settled(two: TwoPolicies, boxes: Boxes) -> tuple[Floats, Floats]:
    """Return the units' ranges; where a unit is never active, one for which its chord is 0."""
    least, most = boxes.units[:, 0, : len(two.weights)], boxes.units[:, 1, : len(two.weights)]
    return np.where(most <= 0, -1.0, least), np.where(most <= 0, 0.0, np.maximum(most, least + 1e-12))


def bound(
    two: TwoPolicies, boxes: Boxes, *, target: float, boundary: float | None, steps: int
) -> tuple[Floats, Flags, Floats]:
    """Write each box's bound on the gap; return the largest gap of anybody met on the way, and who has it.

    With a `boundary` (a logit), only people count whom the first policy decides above it and the second
    below. A bound of at most `target` is enough.
    """
    narrow_middle(two, boxes)
    enough = difference_for(nearest(boxes.middle), target)
    best, largest = np.full(len(boxes), np.inf), np.full(len(boxes), -1.0)
    who, what = np.zeros_like(boxes.allowed), np.zeros_like(boxes.low)
    mix = Mix(two, boxes)
    for _ in range(steps):
        constant, weights = mix.weights()
        value, chosen, numbers, units = best_people(two, weights, boxes)
        value += constant
        logits = two.logits(units)
        gaps = apart(logits.mean(1), logits[:, 0] - logits[:, 1])
        if boundary is not None:
            gaps[(logits[:, 0] < boundary) | (logits[:, 1] >= boundary)] = -1
        better = gaps > largest
        largest[better], who[better], what[better] = gaps[better], chosen[better], numbers[better]
        better = value < best
        best[better] = value[better]
        mix.keep(boxes, better)
        if (best <= enough).all():
            break
        mix.step(units, value - enough)
    boxes.difference = np.minimum(boxes.difference, np.maximum(best, 0))
    if boundary is not None:  # a mean logit that is farther from the boundary decides both alike
        half = boxes.difference / 2
        boxes.middle[:, 0] = np.maximum(boxes.middle[:, 0], boundary - half)
        boxes.middle[:, 1] = np.minimum(boxes.middle[:, 1], boundary + half)
    gap = np.minimum(boxes.gap, apart(nearest(boxes.middle), boxes.difference))
    boxes.gap = np.where(boxes.middle[:, 0] > boxes.middle[:, 1], NOBODY, gap)
    return largest, who, what


class Mix:
    """A mix of lines above D for every box, and how it moves."""

    def __init__(self, two: TwoPolicies, boxes: Boxes) -> None:
        hidden = self.hidden = two.hidden
        self.two, self.middle = two, boxes.middle
        self.least, self.most = _settled(two, boxes)
        self.chord = self.most / (self.most - self.least)
        fall, rise = (boxes.units[:, end, 2 * hidden :] for end in (0, 1))
        self.rise, self.fall = np.maximum(rise, 0), np.maximum(-fall, 0)
        self.width = np.maximum(self.rise + self.fall, 1e-12)
        open_units = (self.least < 0) & (self.most > 0)
        self.open = open_units[:, :hidden] | open_units[:, hidden:]
        self.price, self.under = boxes.price.copy(), boxes.under.copy()
        self.pairs = boxes.pairs * self.open  # elsewhere the pair is linear, and needs no line
        self.scale = np.abs(two.weights).mean()
        self.pace = np.zeros((len(boxes), 1 + 3 * hidden))

    def keep(self, boxes: Boxes, better: Flags) -> None:
        """Write the mix to the boxes in which it is the best so far."""
        boxes.price[better], boxes.under[better] = self.price[better], self.under[better]
        boxes.pairs[better] = self.pairs[better]

    def weights(self) -> tuple[Floats, Floats]:
        """Return the constant of each box's mix, and its weights of the units.

        relu(a) − relu(b) is at most the chord of max(a − b, 0), and at least that of min(a − b, 0).
        """
        one, other = np.split(self.two.weights, 2)
        up = self.pairs >= 0
        self.slope = np.where(up, self.rise, self.fall) / self.width
        self.height = np.where(up, self.fall, -self.rise) * self.slope
        self.own = np.concatenate(
            [(1 + self.price / 2) * one - self.pairs, (self.price / 2 - 1) * other + self.pairs], axis=1
        )
        self.above = self.own >= 0
        line = np.where(self.least >= 0, 1, np.where(self.above, self.chord, self.under))
        line = np.where(self.most <= 0, 0, line)
        weights = self.own * line
        raised = self.above & (self.least < 0)
        self.line, self.lift = line, np.where(raised, -line * self.least, 0)
        shift = self.pairs * self.slope
        weights[:, : self.hidden] += shift
        weights[:, self.hidden :] -= shift
        self.edge = np.where(self.price >= 0, self.middle[:, :1], self.middle[:, 1:])
        first, second = self.two.bias
        constant = (1 + self.price / 2) * first - (1 - self.price / 2) * second - self.price * self.edge
        return constant[:, 0] + (self.own * self.lift).sum(1) + (self.pairs * self.height).sum(1), weights

    def step(self, units: Floats, above: Floats) -> None:
        """Move each mix down: by as much as would remove what is `above` the target, were it linear."""
        hidden = self.hidden
        relaxed = self.line * units + self.lift
        mean = relaxed @ self.two.weights / 2 + self.two.bias.mean()
        under = np.where(~self.above & (self.least < 0) & (self.most > 0), self.own * units, 0)
        under[(self.under <= 0) & (under > 0) | (self.under >= 1) & (under < 0)] = 0
        line = self.slope * (units[:, :hidden] - units[:, hidden:]) + self.height
        pairs = np.where(self.open, line - relaxed[:, :hidden] + relaxed[:, hidden:], 0) * self.scale
        self.pace *= _DAMPED
        self.pace += np.concatenate([mean[:, None] - self.edge, under, pairs], axis=1)
        step = (np.maximum(above, 0) / ((self.pace**2).sum(1) + 1e-30))[:, None] * self.pace
        self.price -= step[:, :1]
        self.under = np.clip(self.under - step[:, 1 : 1 + 2 * hidden], 0, 1)
        self.pairs -= step[:, 1 + 2 * hidden :] * self.scale
