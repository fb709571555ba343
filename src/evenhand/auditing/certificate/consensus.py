"""Upper bounds, within boxes of possible people, on how far apart two policies are.

We bound a difference of logits minus a tangent (see `policies`). It is a sum over pairs of units of
up · relu(z⁺) − down · relu(z⁻). If z⁺ ≥ 0, a pair is at most (up + β) z⁺ − α down z⁻ for any β ≥ 0 and α in
[0, 1]; if z⁺ ≤ 0, it is at most −β z⁺ − α down z⁻. Both are linear in the person, so the largest value in a
box is found column by column, and each pair has its own worst person. Prices on the columns' values, which
sum to 0 over the pairs, make the pairs agree on one person. Column by column, prices are set so that each
value is worth the same to all pairs. This never raises the sum; it is the message passing of dual
decomposition. Trees are treated like pairs, for the columns that they split.

If people must be near a real person, each value has a cost, and nobody's costs sum to more than 0. So this
sum, times any price of at least 0, can be subtracted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.auditing.certificate import forest
from evenhand.auditing.certificate.labels import as_two
from evenhand.auditing.certificate.policies import Aim, TwoPolicies, mend, weigh
from evenhand.jit import jit

_BELOW = 0.1  # the margin below 0 that we aim at to rule people out
_SWEEPS = 3  # the number of sweeps over all columns per round


@jit()
def bound_boxes(two: TwoPolicies, aim: Aim, boxes: Any, rounds: int, begin: int, end: int) -> None:
    """Bound some of the boxes: improve their prices and lines, and write what we learn about them."""
    for at in range(begin, end):
        if boxes.gap[at] >= 0:
            boxes.excess[at] = _bound(two, aim, boxes, at, rounds)


@jit()
def bound_boxes_of_labels(two: TwoPolicies, aim: Aim, boxes: Any, rounds: int, begin: int, end: int) -> None:
    """Bound some of the boxes for more than two labels; separate, because it takes longer to compile."""
    for at in range(begin, end):
        if boxes.gap[at] >= 0:
            mine, mixed = as_two(two, aim, boxes.allowed[at], boxes.ends[at], boxes.states[at])
            boxes.excess[at] = _bound(mine, mixed, boxes, at, rounds)


@jit()
def _bound(two: TwoPolicies, aim: Aim, boxes: Any, at: int, rounds: int) -> float:
    """Return the lowest excess over some rounds; keep its prices, lines and tilt, and what we learn."""
    allowed, ends, states, cost = boxes.allowed[at], boxes.ends[at], boxes.states[at], boxes.cost[at]
    prices, tree_prices = boxes.prices[at], boxes.tree_prices[at]
    lines, tilt, margins = boxes.lines[at], boxes.tilt[at], boxes.margins[at]
    agreed, score = boxes.agreed[at], boxes.score[at]
    pairs, values = prices.shape
    plus, minus, owed = np.empty((pairs, values)), np.empty((pairs, values)), np.empty((pairs, values))
    grown = forest.enter(two, allowed, tree_prices)
    for column in range(len(two.first) - 1):
        for value in range(two.first[column], two.first[column + 1]):
            option = two.option[value]
            mean = forest.sum_of(two, column, value, grown.owed)
            for pair in range(pairs):
                mean += prices[pair, value]
            # Stored prices are rounded, so the sum is not exactly 0. All share the price of the distance.
            mean = (mean + tilt[2] * cost[value]) / _voices(two, column)
            for pair in range(pairs):
                one, other = two.plus[pair], two.minus[pair]
                plus[pair, value] = two.base[option, one] + two.slope[option, one] * ends[value]
                minus[pair, value] = two.base[option, other] + two.slope[option, other] * ends[value]
                owed[pair, value] = prices[pair, value] - mean
            forest.lower(two, column, value, grown, mean)
    up, down, state = np.empty(pairs), np.empty(pairs), np.zeros(pairs, np.int64)
    worth, best = np.empty((pairs, 2, values)), np.empty((pairs, 2, len(two.first) - 1))
    total, worths, units = np.empty((pairs, 2)), np.empty(values), np.empty(len(two.start))
    turned, kept, touch = lines.copy(), owed.copy(), tilt.copy()
    kept_by_trees = grown.owed[: len(tree_prices)].copy()
    lowest, bold, due = np.inf, 1.0, 0.0
    for _ in range(rounds):
        excess, one, other = weigh(two, aim, touch, up, down)
        forest.rate(two, allowed, grown, one, other)
        for _ in range(_SWEEPS):
            _sweep(
                two, allowed, states, plus, minus, owed, up, down, turned, worth, best, total, worths, grown
            )
        excess += forest.most(two, grown)
        for pair in range(pairs):
            excess += max(total[pair, 0], total[pair, 1])
        bold *= 0.5
        if excess < lowest:
            lowest, bold = excess, min(1.0, 4 * bold)
            kept[:], lines[:], tilt[:], margins[:] = owed, turned, touch, worths
            kept_by_trees[:] = grown.owed[: len(tree_prices)]
            for pair in range(pairs):
                state[pair] = 1 if total[pair, 1] > total[pair, 0] else 0
            due = excess + (_BELOW if aim.gap == 0 else 0.0) - _learn(
                two, allowed, ends, states, plus, up, down, worth, best, state, lines, margins, agreed, score,
                units,
            ) - forest.learn(two, agreed, grown, one, other, score[pairs:])  # fmt: skip
        if lowest < 0 or due <= 0:
            break
        owed[:], turned[:], touch[:] = kept, lines, tilt
        grown.owed[: len(tree_prices)] = kept_by_trees
        far = 0.0
        for value in agreed:
            far += cost[value]
        mend(two, aim, units, grown.said, far, state, up, down, turned, touch, bold * due)
        if pairs:  # with costs, there are no trees
            owed -= (touch[2] - tilt[2]) * cost / pairs
    prices[:], tree_prices[:] = kept, kept_by_trees
    return lowest


@jit()
def _voices(two: TwoPolicies, column: int) -> int:
    """Return how many must agree on a column: the number of pairs, and of trees that split it."""
    trees = two.forest.within[column + 1] - two.forest.within[column]
    return max(1, len(two.plus) + int(trees))


@jit()
def _sweep(
    two: TwoPolicies, allowed: Any, states: Any, plus: Any, minus: Any, owed: Any, up: Any, down: Any,
    lines: Any, worth: Any, best: Any, total: Any, margins: Any, grown: forest.Growing,
) -> None:  # fmt: skip
    """Turn each pair's lines separately, then make the pairs agree on each column."""
    for pair in range(len(owed)):
        for state in range(2):
            total[pair, state] = -np.inf
            if states[pair, state]:
                _turn(two, allowed, plus, minus, owed, pair, state, up[pair], down[pair], lines)
                total[pair, state] = _fill(
                    two, allowed, plus, minus, owed, pair, state, up[pair], down[pair], lines, worth, best
                )
    for column in range(len(two.first) - 1):
        _agree(two, column, allowed, states, worth, best, total, owed, margins, grown)


@jit()
def _slopes(state: int, up: float, down: float, line: Any) -> tuple[float, float]:
    return (up + line[0] if state else -line[0]), -down * line[1]


@jit()
def _largest(
    two: TwoPolicies, allowed: Any, plus: Any, minus: Any, owed: Any, pair: int, slopes: tuple[float, float]
) -> tuple[float, float, float]:
    """Return the largest value of a pair's line in a box, and both units of the person with this value."""
    first, second = slopes
    one, other = two.start[two.plus[pair]], two.start[two.minus[pair]]
    total = first * one + second * other
    for column in range(len(two.first) - 1):
        top, at = -np.inf, 0
        for value in range(two.first[column], two.first[column + 1]):
            worth = first * plus[pair, value] + second * minus[pair, value] + owed[pair, value]
            if allowed[value] and worth > top:
                top, at = worth, value
        total += top
        one += plus[pair, at]
        other += minus[pair, at]
    return total, one, other


@jit()
def _turn(
    two: TwoPolicies, allowed: Any, plus: Any, minus: Any, owed: Any, pair: int, state: int, up: float,
    down: float, lines: Any,
) -> None:  # fmt: skip
    """Turn a pair's line one step to lower its largest value, and adapt the length of the next step."""
    line = lines[pair, state]
    now, one, other = _largest(two, allowed, plus, minus, owed, pair, _slopes(state, up, down, line))
    for which in range(2):
        if which == 0:
            wanted = max(0.0, line[0] + (-line[2] if (one > 0) == (state == 1) else line[2]))
        else:
            wanted = min(1.0, max(0.0, line[1] + (line[3] if other > 0 else -line[3])))
        kept = line[which]
        if wanted == kept or (which == 1 and down == 0):
            continue
        line[which] = wanted
        then, first, second = _largest(two, allowed, plus, minus, owed, pair, _slopes(state, up, down, line))
        if then < now:
            beyond = (second * other if which else first * one) <= 0
            line[2 + which] *= 0.7 if beyond else 2.0
            now, one, other = then, first, second
        else:
            line[which] = kept
            line[2 + which] *= 0.4


@jit()
def _fill(
    two: TwoPolicies, allowed: Any, plus: Any, minus: Any, owed: Any, pair: int, state: int, up: float,
    down: float, lines: Any, worth: Any, best: Any,
) -> float:  # fmt: skip
    """Write each value's worth to a pair in a state, and the best of each column; return the best total."""
    first, second = _slopes(state, up, down, lines[pair, state])
    total = first * two.start[two.plus[pair]] + second * two.start[two.minus[pair]]
    for column in range(len(two.first) - 1):
        top = -np.inf
        for value in range(two.first[column], two.first[column + 1]):
            gain = first * plus[pair, value] + second * minus[pair, value] + owed[pair, value]
            worth[pair, state, value] = gain
            if allowed[value] and gain > top:
                top = gain
        best[pair, state, column] = top
        total += top
    return float(total)


@jit()
def _agree(
    two: TwoPolicies, column: int, allowed: Any, states: Any, worth: Any, best: Any, total: Any, owed: Any,
    margins: Any, grown: forest.Growing,
) -> None:  # fmt: skip
    """Set a column's prices so that each value is worth the same to all pairs and trees."""
    first, pairs = two.first, len(owed)
    wanted = np.empty(pairs)
    forest.ask(two, column, grown)
    for value in range(first[column], first[column + 1]):
        mean = forest.sum_of(two, column, value, grown.wanted) / _voices(two, column)
        for pair in range(pairs):
            wanted[pair] = -np.inf
            for state in range(2):
                if states[pair, state]:
                    rest = total[pair, state] - best[pair, state, column]
                    wanted[pair] = max(wanted[pair], rest + worth[pair, state, value])
            mean += wanted[pair] / _voices(two, column)
        margins[value] = mean if allowed[value] else -np.inf
        if allowed[value]:
            for pair in range(pairs):
                change = mean - wanted[pair]
                owed[pair, value] += change
                worth[pair, 0, value] += change
                worth[pair, 1, value] += change
            forest.make_worth(two, column, value, grown, mean)
    forest.settle(two, column, allowed, grown)
    for pair in range(pairs):
        for state in range(2):
            if states[pair, state]:
                top = -np.inf
                for value in range(first[column], first[column + 1]):
                    if allowed[value] and worth[pair, state, value] > top:
                        top = worth[pair, state, value]
                total[pair, state] += top - best[pair, state, column]
                best[pair, state, column] = top


@jit()
def _learn(
    two: TwoPolicies, allowed: Any, ends: Any, states: Any, plus: Any, up: Any, down: Any, worth: Any,
    best: Any, state: Any, lines: Any, margins: Any, agreed: Any, score: Any, units: Any,
) -> float:  # fmt: skip
    """Write the person with the most agreement, and how far each pair and column is from agreeing.

    Return the part of the bound that is due to disagreement.
    """
    pairs, columns = len(up), len(two.first) - 1
    units[:] = two.start
    score[:] = 0
    for column in range(columns):
        begin, end = two.first[column], two.first[column + 1]
        value = agreed[column] = begin + np.argmax(margins[begin:end])
        units += two.base[two.option[value]] + two.slope[two.option[value]] * ends[value]
        score[pairs + column] = 1e-12 if allowed[begin:end].sum() > 1 else 0.0
    spread, all_missed = np.empty(columns), 0.0
    for pair in range(pairs):
        one, other = units[two.plus[pair]], units[two.minus[pair]]
        first, second = _slopes(state[pair], up[pair], down[pair], lines[pair, state[pair]])
        off = first * one + second * other - up[pair] * max(0.0, one) + down[pair] * max(0.0, other)
        for column in range(columns):
            low, high = np.inf, -np.inf
            for value in range(two.first[column], two.first[column + 1]):
                if allowed[value]:
                    low, high = min(low, plus[pair, value]), max(high, plus[pair, value])
            spread[column] = high - low
            missed = best[pair, state[pair], column] - worth[pair, state[pair], agreed[column]]
            all_missed += missed
            if states[pair, 0] and states[pair, 1]:
                score[pair] += missed + abs(off) / columns
            if score[pairs + column] > 0:
                score[pairs + column] += missed
        if spread.sum() > 0:  # the error of a line counts for the columns that move the unit
            score[pairs:] += (abs(off) + 1e-9) * spread / spread.sum()
    return float(all_missed)
