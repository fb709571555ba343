"""The worst possible person for two policies: boxes of people are bounded, split and dropped."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from evenhand.arrays import Codes, Flags, Floats
from evenhand.auditing.certificate.relaxation import (
    Boxes,
    TwoPolicies,
    apart,
    bound,
    column_range,
    nearest,
    units_of,
)

_AT_ONCE = 512  # boxes that are split together
_STEPS, _FIRST_STEPS = 10, 200
_MOST_OPEN = 400_000  # boxes that are kept; beyond, the newest are split first, which keeps their number
_ALIKE = 0.5  # a range of the mean logit over which probabilities differ by less than so much is not split


@dataclass
class Tree:
    """The boxes that may still hold somebody worse than the worst person found.

    Parameters
    ----------
    two : TwoPolicies
        The two policies, and the possible people.
    low, high, whole : array, (options,)
        The ends of options that are ranges of numbers, and whether only whole numbers are possible.
    boundary : float, optional
        Count only those whom the first policy decides above this logit, and the second below.
    """

    two: TwoPolicies
    low: Floats
    high: Floats
    whole: Flags
    boundary: float | None = None
    groups: tuple[Any, Any] = ("", "")  # whose policies these are
    found: float = -1.0
    dropped: float = -1.0  # the largest bound of a box that was dropped
    person: tuple[Flags, Floats] | None = None
    boxes: Boxes = field(init=False)
    split: int = 0

    def __post_init__(self) -> None:
        two, n = self.two, self.two.hidden
        self.boxes = Boxes(
            allowed=np.ones((1, len(self.low)), dtype=np.bool_), low=self.low[None].copy(),
            high=self.high[None].copy(), middle=np.array([[-np.inf, np.inf]]),
            units=np.repeat(two.start[None, None], 2, axis=1), price=np.zeros((1, 1)),
            under=np.full((1, 2 * n), 0.5), pairs=two.weights.reshape(2, n).mean(0)[None],
            gap=np.ones(1), difference=np.full(1, np.inf),
        )  # fmt: skip
        for column in range(len(two.first) - 1):
            self.boxes.units += np.stack(column_range(two, column, self.boxes), axis=1)
        self._bound(self.boxes, -1.0, _FIRST_STEPS)

    @property
    def bound(self) -> float:
        """How far apart the two policies are at most for anybody not yet ruled out; below 0 if nobody is."""
        return float(self.boxes.gap.max(initial=-1.0))

    def grow(self, enough: float) -> None:
        """Split the boxes with the largest bounds, and drop all with a bound of at most `enough`."""
        boxes = self.boxes
        count = min(_AT_ONCE, len(boxes))
        if len(boxes) > _MOST_OPEN:
            chosen = np.arange(len(boxes) - count, len(boxes))
        else:
            chosen = np.argpartition(-boxes.gap, count - 1)[:count]
        rest = np.ones(len(boxes), dtype=np.bool_)
        rest[chosen] = False
        self.dropped = max(self.dropped, float(boxes.gap[rest & (boxes.gap <= enough)].max(initial=-1.0)))
        parents = boxes.take(chosen)
        parts = self._halves(parents)
        self._bound(parts, enough, _STEPS)
        self.split += len(parts)
        rest &= boxes.gap > enough
        kept = parts.gap > enough
        self.dropped = max(self.dropped, float(parts.gap[~kept].max(initial=-1.0)))
        self.boxes = boxes.take(rest).join(parts.take(kept))

    def _bound(self, boxes: Boxes, enough: float, steps: int) -> None:
        gaps, who, numbers = bound(
            self.two, boxes, target=max(enough, 0), boundary=self.boundary, steps=steps
        )
        best = int(gaps.argmax())
        self.offer(float(gaps[best]), who[best], numbers[best])

    def offer(self, gap: float, chosen: Flags, numbers: Floats) -> None:
        """Keep a person if the policies are farther apart for them than for anybody found before."""
        if gap > self.found:
            self.found, self.person = gap, (chosen.copy(), numbers.copy())

    # Splitting -----------------------------------------------------------------------------------------

    def _halves(self, boxes: Boxes) -> Boxes:
        """Return both halves of every box: of the mean logit's range, or of one column's options or range."""
        near = nearest(boxes.middle)
        low, high = boxes.middle.T
        far = np.where(near - low > high - near, low, high)
        wide = apart(far, boxes.difference) < _ALIKE * apart(near, boxes.difference)
        column, unit = self._most_telling(boxes)
        wide |= column < 0
        everyone = np.arange(len(boxes))
        below, above = boxes.take(everyone), boxes.take(everyone)
        cut = _cut(boxes.middle)
        below.middle[wide, 1], above.middle[wide, 0] = cut[wide], cut[wide]
        for one in np.unique(column[~wide]):
            rows = np.flatnonzero(~wide & (column == one))
            self._part(int(one), rows, unit[rows], boxes, below, above)
        return below.join(above)

    def _most_telling(self, boxes: Boxes) -> tuple[Codes, Codes]:
        """Return the column whose split promises most, -1 if all are settled, and the unit it moves most.

        A pair of units leaves as much open as its lines may be off; a column is credited with its share in
        the units' ranges.
        """
        two, n = self.two, self.two.hidden
        least, most = boxes.units[:, 0, : 2 * n], boxes.units[:, 1, : 2 * n]
        width = np.maximum(most - least, 1e-12)
        off = np.where((least < 0) & (most > 0), -least * most / width, 0)
        one, other = np.abs(two.weights[:n]), np.abs(two.weights[n:])
        alone = off[:, :n] * one + off[:, n:] * other
        shift = np.abs(boxes.units[:, :, 2 * n :]).max(1)
        parted = np.abs(two.weights[:n] - two.weights[n:])
        together = np.maximum(one, other) * shift + parted * np.minimum(off[:, :n], off[:, n:])
        left = np.where(alone > 0, np.minimum(alone, together), 0)
        left = np.where(left.sum(1, keepdims=True) > 0, left, one) / width[:, :n]
        best, column, unit = np.zeros(len(boxes)), np.full(len(boxes), -1), np.zeros(len(boxes), np.int64)
        for at in range(len(two.first) - 1):
            low, high = column_range(two, at, boxes)
            shares = (high - low)[:, :n] * left
            total = shares.sum(1)
            better = total > best
            best[better], column[better], unit[better] = total[better], at, shares[better].argmax(1)
        return column, unit

    def _part(self, column: int, rows: Codes, unit: Codes, boxes: Boxes, below: Boxes, above: Boxes) -> None:
        """Split a column of some boxes: its options by what they add to a unit, or a range in the middle."""
        two = self.two
        first, end = two.first[column], two.first[column + 1]
        at = slice(first, end)
        allowed = boxes.allowed[rows, at]
        single = allowed.sum(1) == 1
        if single.any():
            who, option = rows[single], first + allowed[single].argmax(1)
            cut = (boxes.low[who, option] + boxes.high[who, option]) / 2
            whole = self.whole[option]
            below.high[who, option] = np.where(whole, np.floor(cut), cut)
            above.low[who, option] = np.where(whole, np.floor(cut) + 1, cut)
        if not single.all():
            who, inside = rows[~single], allowed[~single]
            centre = (boxes.low[who, at] + boxes.high[who, at]) / 2
            adds = two.base[at][:, unit[~single]].T + two.slope[at][:, unit[~single]].T * centre
            low = np.where(inside, adds, np.inf).min(1, keepdims=True)
            high = np.where(inside, adds, -np.inf).max(1, keepdims=True)
            # Where all options add the same, the first stands against the others.
            first_one = np.arange(end - first) == inside.argmax(1)[:, None]
            left = np.where(high > low, adds < (low + high) / 2, first_one)
            below.allowed[who, at], above.allowed[who, at] = inside & left, inside & ~left
        before = column_range(two, column, boxes.take(rows))
        for part in (below, above):
            after = column_range(two, column, part.take(rows))
            part.units[rows] += np.stack([new - old for new, old in zip(after, before, strict=True)], axis=1)


def _cut(middle: Floats) -> Floats:
    """Return where a range of the mean logit is split: at 0, else near the end that is nearer to it."""
    low, high = np.maximum(middle[:, 0], -40), np.minimum(middle[:, 1], 40)
    half = (low + high) / 2
    half = np.where(low >= 0, np.minimum(half, low + 2), half)
    half = np.where(high <= 0, np.maximum(half, high - 2), half)
    return np.where((low < -1) & (high > 1), 0, half)


def climb(
    tree: Tree, chosen: Flags, numbers: Floats, *, until: float, sweeps: int = 5, points: int = 9
) -> None:
    """Improve people one column at a time, until then at most, and offer the best to the tree."""
    two, rows = tree.two, np.arange(len(chosen))
    columns = list(pairwise(two.first.tolist()))
    best = _score(tree, units_of(two, chosen, numbers))
    for _ in range(sweeps):
        before = best.copy()
        for begin, end in columns:
            if time.monotonic() > until:
                break
            for option in range(begin, end):
                low, high = tree.low[option], tree.high[option]
                tried = np.linspace(low, high, points if high > low else 1)
                for value in np.unique(np.round(tried) if tree.whole[option] else tried):
                    other, amounts = chosen.copy(), numbers.copy()
                    other[:, begin:end] = False
                    other[:, option], amounts[:, option] = True, value
                    score = _score(tree, units_of(two, other, amounts))
                    better = rows[score > best]
                    chosen[better], numbers[better], best[better] = (
                        other[better],
                        amounts[better],
                        score[better],
                    )
        if (best <= before + 1e-9).all():
            break
    at = int(best.argmax())
    if best[at] > 0:
        tree.offer(float(best[at]), chosen[at], numbers[at])


def _score(tree: Tree, units: Floats) -> Floats:
    logits = tree.two.logits(units)
    gaps = apart(logits.mean(1), logits[:, 0] - logits[:, 1])
    if tree.boundary is None:
        return gaps
    short = np.maximum(tree.boundary - logits[:, 0], 0) + np.maximum(logits[:, 1] - tree.boundary, 0)
    return np.where((short == 0) & (logits[:, 1] < tree.boundary), gaps, -1e-9 - short)


def any_people(
    first: Codes, low: Floats, high: Floats, whole: Flags, count: int, rng: np.random.Generator
) -> tuple[Flags, Floats]:
    """Draw possible people: an option of each column, a number of each range."""
    chosen = np.zeros((count, len(low)), dtype=np.bool_)
    for begin, end in pairwise(first):
        chosen[np.arange(count), rng.integers(begin, end, count)] = True
    numbers = rng.uniform(low, high, chosen.shape)
    return chosen, np.where(whole, np.round(numbers), numbers)
