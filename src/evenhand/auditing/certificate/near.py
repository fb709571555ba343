"""The worst possible person near a real person: a box also has a set of real people to be near.

A number's cost is a straight line on each side of the real people's numbers. So a column of numbers has two
options: the numbers up to the middle of theirs, and the numbers above.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand.arrays import Codes, Flags, Floats
from evenhand.auditing.certificate.climbing import climb
from evenhand.auditing.certificate.people import CLOSE, Hulls, People
from evenhand.auditing.certificate.tree import Boxes, Reach, Tree

_ROUNDS = 3  # for halves by people
_POINTS = 18  # the number of values to try, shared by a column's options
_STARTS = 200  # the number of people to start the search from


@dataclass
class NearTree(Tree):
    """A tree of the possible people who are near a real person."""

    people: People = field(kw_only=True)

    def seek(self, until: float) -> None:
        """Look for worse people, starting from the real people on whom the policies are farthest apart."""
        real = self.people
        possible = np.flatnonzero((real.option >= 0).all(1))
        if not len(possible):
            return
        chosen = np.zeros((len(possible), len(self.low)), dtype=np.bool_)
        numbers, rows = np.zeros(chosen.shape), np.arange(len(possible))[:, None]
        chosen[rows, real.option[possible]] = True
        numbers[rows, real.option[possible]] = np.nan_to_num(real.numbers[possible])
        best = np.argsort(-self.score(chosen, numbers), kind="stable")[:_STARTS]
        climb(self, chosen[best], numbers[best], until=until, who=possible[best], points=_POINTS)

    def _climb(self, boxes: Boxes, until: float) -> None:
        """Look for worse people, starting from the boxes' agreed people, if these are near somebody."""
        chosen, numbers = self._people(boxes, boxes.agreed)
        nearest = [
            self.people.nearest(self.people.members[at], np.flatnonzero(chosen[row]), numbers[row])
            for row, at in enumerate(boxes.people.tolist())
        ]
        near = np.array([cost <= CLOSE for _, cost in nearest])
        if near.any():
            who = np.array([person for person, _ in nearest])[near]
            climb(self, chosen[near], numbers[near], until=until, who=who, points=_POINTS)

    def reach(self, who: Any, chosen: Flags, numbers: Floats, column: int) -> Reach:
        """Return, for each of a column's options, the numbers that are near enough, and who can have them."""
        left = np.zeros(len(who))
        for other, begin in enumerate(self.first[:-1].tolist()):
            for option in range(begin, self.first[other + 1]):
                has = np.flatnonzero(chosen[:, option]) if other != column else ()
                left[has,] -= self.people.costs(who[has,], other, option, numbers[has, option])
        found: Reach = []
        own = self.people.numbers[who, column]
        for option in range(self.first[column], self.first[column + 1]):
            low, high = (np.full(len(who), end[option]) for end in (self.low, self.high))
            able = self.people.costs(who, column, option, low) <= left + CLOSE
            if self.high[option] > self.low[option]:
                low, high = self._trimmed(low, high, own, own, left, column)
                able = (low <= high) & (~np.isnan(own) | (left >= -CLOSE))
                able &= option == self.first[column]  # the second option has the same numbers
            found.append((low, high, able))
        return found

    def _trimmed(
        self, low: Floats, high: Floats, least: Floats, most: Floats, left: Floats, column: int
    ) -> tuple[Floats, Floats]:
        """Return the range of a column's numbers that cost at most `left` near numbers from least to most."""
        rate = self.people.rate[column]
        far = (
            (left + 1 / len(self.people.rate) + CLOSE) / rate
            if rate > 0
            else np.where(left < -1, -np.inf, np.inf)
        )
        low, high = np.fmax(low, least - far), np.fmin(high, most + far)
        return (
            (np.ceil(low - CLOSE), np.floor(high + CLOSE)) if self.whole[self.first[column]] else (low, high)
        )

    def _possible(self, boxes: Boxes, row: int, chosen: Flags, numbers: Floats) -> bool:
        who = self.people.members[boxes.people[row]]
        return self.people.nearest(who, np.flatnonzero(chosen), numbers)[1] <= CLOSE

    def _halves(self, boxes: Boxes, enough: float) -> Boxes:
        """Return both halves of each box; boxes whose people are too far apart are split by people only."""
        wide = self.people.wide(boxes.people)
        parts = self._by_people(boxes.take(wide))
        if wide.any():
            self._bound(parts, enough, _ROUNDS)
        return parts if wide.all() else parts.join(super()._halves(boxes.take(~wide), enough))

    def _by_people(self, boxes: Boxes) -> Boxes:
        parts = boxes.take(np.tile(np.arange(len(boxes.gap)), 2))
        parts.people[:] = self.people.halves(boxes.people).T.ravel()
        self._fit(parts)
        return parts

    def _candidates(self, boxes: Boxes) -> list[tuple[Boxes, Flags]]:
        """Return the halves of each box in each of the ways to split it, also by the people to be near."""
        candidates = super()._candidates(boxes)
        for some, _ in candidates:
            self._fit(some)
        several = self.people.several(boxes.people)
        return [*candidates, (self._by_people(boxes), several)] if several.any() else candidates

    def _fit(self, boxes: Boxes) -> None:
        """Drop the real people whom nobody in a box can be near, and values that are near none of them."""
        if not len(boxes.gap):
            return
        least = self._least(boxes, boxes.people)
        boxes.gap[least.sum(1) > CLOSE] = -1.0
        rows = np.flatnonzero(boxes.gap >= 0)
        while len(rows):
            halves = self.people.halves(boxes.people[rows])
            some = boxes.take(rows)
            near = np.stack([self._least(some, half).sum(1) <= CLOSE for half in halves.T], axis=1)
            boxes.gap[rows[~near.any(1)]] = -1.0
            one = near.any(1) & ~near.all(1)
            boxes.people[rows[one]] = halves[one, near[one].argmax(1)]
            rows = rows[one]
        rows = np.flatnonzero(boxes.gap >= 0)
        if len(rows):
            some = boxes.take(rows)
            self._trim(some)
            for name, part in boxes._asdict().items():
                part[rows] = getattr(some, name)

    def _least(self, boxes: Boxes, people: Codes) -> Floats:
        """Return the lowest cost of the values in each column of a box near sets of people."""
        hulls, least = self.people.hulls(people), np.empty((len(people), len(self.people.rate)))
        for column in range(least.shape[1]):
            costs, allowed = self._value_costs(boxes, hulls, column)
            least[:, column] = np.where(allowed, costs, np.inf).min(1)
        return least

    def _value_costs(self, boxes: Boxes, hulls: Hulls, column: int) -> tuple[Floats, Flags]:
        """Return the lowest cost of each value of a column, anywhere in its range, and the allowed values."""
        begin, end = self.two.first[column : column + 2]
        allowed, option = boxes.allowed[:, begin:end], self.two.option[begin:end]
        share, real = 1 / len(self.people.rate), self.people
        if real.amounts[column]:
            low, high = self._range(boxes, column)
            far = np.maximum(0, np.maximum(low - hulls.high[:, column], hulls.low[:, column] - high))
            apart = np.where(far > 0, real.rate[column] * far if real.rate[column] > 0 else 0.0, 0.0)[:, None]
        else:
            apart = share / real.radius * ~hulls.has[:, option]
        costs = np.broadcast_to(apart - share, allowed.shape)
        costs = np.where(hulls.lacks[:, [column]], np.minimum(costs, 0), costs)
        return np.where(real.missing[option], 0.0, costs), allowed

    def _range(self, boxes: Boxes, column: int) -> tuple[Floats, Floats]:
        begin, end = self.two.first[column : column + 2]
        has = boxes.allowed[:, begin:end] & ~self.people.missing[self.two.option[begin:end]]
        ends = boxes.ends[:, begin:end]
        return np.where(has, ends, np.inf).min(1), np.where(has, ends, -np.inf).max(1)

    def _trim(self, boxes: Boxes) -> None:
        """Drop values that cost too much, and write the costs of the remaining values."""
        hulls, least = self.people.hulls(boxes.people), self._least(boxes, boxes.people)
        left = least - least.sum(1, keepdims=True)
        for column in range(least.shape[1]):
            begin, end = self.two.first[column : column + 2]
            costs, allowed = self._value_costs(boxes, hulls, column)
            boxes.cost[:, begin:end] = costs
            boxes.allowed[:, begin:end] = allowed & (costs <= left[:, [column]] + CLOSE)
            if self.two.option[begin] == self.two.option[min(begin + 1, end - 1)] and end - begin > 1:
                self._cut(boxes, hulls, column, left[:, column])

    def _cut(self, boxes: Boxes, hulls: Hulls, column: int, left: Floats) -> None:
        """Cut a column's numbers in the middle of the real people's, with linear costs on each side."""
        at, share = self.two.first[column] + np.arange(4), 1 / len(self.people.rate)
        able = boxes.allowed[:, at].any(1)
        a, b, free = hulls.low[:, column], hulls.high[:, column], hulls.lacks[:, column] & (left >= -CLOSE)
        low, high = self._range(boxes, column)
        low, high = self._trimmed(
            low, high, np.where(free, -np.inf, a), np.where(free, np.inf, b), left, column
        )
        able &= low <= high
        low, high = (np.where(able, end, self.low[self.first[column]]) for end in (low, high))
        with np.errstate(invalid="ignore"):
            middle = np.nan_to_num((a + b) / 2, nan=np.inf)
        below, above = able & (low < middle), able & ((middle < high) | (high == low))
        below, middle = below & ~(above & (high == low)), np.clip(middle, low, high)
        upper = middle
        if self.whole[self.first[column]]:
            middle = np.floor(middle)
            upper = np.where(below, np.minimum(middle + 1, high), middle)
        ends = np.stack([low, middle, upper, high], axis=1)
        boxes.prices[:, :, at] = _repriced(boxes, at, ends)
        boxes.ends[:, at] = ends
        boxes.allowed[:, at] = np.stack(
            [below, below & (low < middle), above, above & (upper < high)], axis=1
        )
        rate = self.people.rate[column]
        with np.errstate(invalid="ignore"):
            down = np.where((a - low > middle - a)[:, None], rate * (a[:, None] - ends[:, :2]), 0.0)
            up = np.where((high - b > b - middle)[:, None], rate * (ends[:, 2:] - b[:, None]), 0.0)
        costs = np.concatenate([down, up], axis=1) - share
        costs = np.where(hulls.lacks[:, [column]], np.minimum(costs, 0.0), costs)
        boxes.cost[:, at] = np.nan_to_num(costs)


def _repriced(boxes: Boxes, at: Codes, ends: Floats) -> Any:
    """Return the prices at new ends of the two options of a column of numbers."""
    had, prices, has = boxes.ends[:, at], boxes.prices[:, :, at], boxes.allowed[:, at]
    lines = []
    for one in (0, 2):
        width = np.where(has[:, one : one + 2].all(1), had[:, one + 1] - had[:, one], 0.0)
        rise = (prices[:, :, one + 1] - prices[:, :, one]) / np.where(width > 0, width, np.inf)[:, None]
        base = np.where(has[:, one, None], prices[:, :, one], prices[:, :, one + 1])
        start = np.where(has[:, one], had[:, one], had[:, one + 1])
        lines.append(base[:, :, None] + rise[:, :, None] * (ends - start[:, None])[:, None])
    upper = np.where(has[:, 1], had[:, 1], had[:, 0])
    below, above = has[:, 0] | has[:, 1], has[:, 2] | has[:, 3]
    first = below[:, None] & ((ends <= upper[:, None]) | ~above[:, None])
    return np.where(first[:, None], lines[0], lines[1])
