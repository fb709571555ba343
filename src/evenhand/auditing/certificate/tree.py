"""Find the worst possible person for two policies: bound, split and drop boxes of people."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, Self

import joblib
import numpy as np
import numpy.typing as npt
from scipy.special import expit

from evenhand.arrays import Codes, Flags, Floats
from evenhand.auditing.certificate.climbing import climb
from evenhand.auditing.certificate.consensus import bound_boxes, bound_boxes_of_labels
from evenhand.auditing.certificate.people import CLOSE
from evenhand.auditing.certificate.policies import Aim, TwoPolicies, gap_beyond

_AT_ONCE = 128  # the number of boxes to split together
_FIRST, _FEW, _MORE = 50, 2, 3  # rounds: for the first box; for each possible split; for the best split
_NEAR = 10  # the number of people from whom we look for worse people, now and then
_ROOM = 400e6  # bytes of prices; beyond this, the newest boxes are split first to limit their number
_OFFERED = 8  # the number of people from the boxes that we check for being possible
_FLAT = ((0.0, 0.5, 0.1, 0.3), (0.0, 1.0, 0.1, 0.3))  # the initial lines, and how far to turn them


Reach = list[tuple[Any, Any, Any]]


class Boxes(NamedTuple):
    """Parts of all possible people, one per row, and what is known about them."""

    allowed: Flags  # (boxes, values)
    ends: Floats  # (boxes, values): the numbers at the ends of ranges
    states: Flags  # (boxes, pairs, 2): whether the first unit of a pair may be inactive, and active
    prices: npt.NDArray[np.float32]  # (boxes, pairs, values)
    tree_prices: npt.NDArray[np.float32]  # (boxes, prices of all trees)
    lines: Floats  # (boxes, pairs, 2, 4): β and α in each state, and how far to turn them next
    people: Codes  # (boxes,): the set of real people whom people in the box have to be near
    cost: Floats  # (boxes, values): a value's cost of being near; nobody's costs may sum to more than 0
    tilt: Floats  # (boxes, 3): where the tangent touches, the prices of different decisions and of the cost
    excess: Floats  # (boxes,): the bound, as logits beyond the gap aimed at
    gap: Floats  # (boxes,): the bound on the difference of probabilities
    margins: Floats  # (boxes, values): each value's worth to all pairs
    agreed: Codes  # (boxes, columns): the values of the person on whom pairs agree best
    score: Floats  # (boxes, pairs + columns): how far each is from agreeing; 0 if it can't be split

    def take(self, rows: Any) -> Self:
        """Return the boxes at these positions, copied."""
        return type(self)(*(part[rows] for part in self))

    def join(self, other: Self) -> Self:
        """Return these boxes and others."""
        parts: Any = zip(self, other, strict=True)
        return type(self)(*(np.concatenate(both) for both in parts))


@dataclass
class Tree:
    """The boxes that may still contain somebody worse than the worst person found.

    Parameters
    ----------
    two : TwoPolicies
        The two policies, and the possible people.
    first : array
        The index of each column's first option, and the total number of options.
    low, high, whole : array, (options,)
        The ends of options that are ranges of numbers, and whether only whole numbers are possible.
    boundary : float, optional
        Count only people whose logit is above this for the first policy, and below for the second.
    differently : bool
        With more than two labels, offer only people with different decisions; bounds are for everybody.
    """

    two: TwoPolicies
    first: Codes
    low: Floats
    high: Floats
    whole: Flags
    boundary: float | None = None
    differently: bool = False
    groups: tuple[Any, Any] = ("", "")  # whose policies these are
    found: float = -1.0
    dropped: float = -1.0  # the largest bound of a box that was dropped
    person: tuple[Flags, Floats] | None = None
    boxes: Boxes = field(init=False)
    split: int = 0
    looked: int = 0  # the value of `split` when we last looked for worse people

    def __post_init__(self) -> None:
        two = self.two
        values, pairs, columns = len(two.option), len(two.plus), len(two.first) - 1
        upper = np.append(False, two.option[1:] == two.option[:-1])
        self.boxes = Boxes(
            allowed=np.ones((1, values), dtype=np.bool_),
            ends=np.where(upper, self.high[two.option], self.low[two.option])[None],
            states=np.ones((1, pairs, 2), dtype=np.bool_),
            prices=np.zeros((1, pairs, values), dtype=np.float32),
            tree_prices=np.zeros((1, two.forest.priced), dtype=np.float32),
            lines=np.tile(_FLAT, (1, pairs, 1, 1)),
            people=np.zeros(1, dtype=np.int64), cost=np.zeros((1, values)), tilt=np.zeros((1, 3)),
            excess=np.zeros(1), gap=np.ones(1), margins=np.zeros((1, values)),
            agreed=np.zeros((1, columns), dtype=np.int64), score=np.zeros((1, pairs + columns)),
        )  # fmt: skip
        self._bound(self.boxes, -1.0, _FIRST)

    @property
    def bound(self) -> float:
        """The bound on how far apart the policies are for people not yet ruled out; below 0 if all are."""
        return float(self.boxes.gap.max(initial=-1.0))

    def grow(self, enough: float) -> None:
        """Split the boxes with the largest bounds, and drop all with a bound of at most `enough`."""
        boxes = self.boxes
        count = min(_AT_ONCE, len(boxes.gap))
        if boxes.prices.nbytes + boxes.tree_prices.nbytes > _ROOM:
            chosen = np.arange(len(boxes.gap) - count, len(boxes.gap))
        else:
            chosen = np.argpartition(-boxes.gap, count - 1)[:count]
        rest = np.ones(len(boxes.gap), dtype=np.bool_)
        rest[chosen] = False
        parts = self._halves(boxes.take(chosen), enough)
        self.split += len(parts.gap)
        for some in (boxes.gap[rest], parts.gap):
            self.dropped = max(self.dropped, float(some[some <= enough].max(initial=-1.0)))
        rest &= boxes.gap > enough
        self.boxes = boxes.take(rest).join(parts.take(parts.gap > enough))

    def _bound(self, boxes: Boxes, enough: float, rounds: int) -> None:
        """Write each box's bound on the gap, and offer the people on whom the pairs agree best."""
        nobody_yet = self.boundary is not None and self.person is None
        wanted = Aim(
            0.0 if nobody_yet else min(max(enough, 0.0), 1 - 1e-9),
            float("nan") if self.boundary is None else float(self.boundary), 0.0, 0.0, 0.0,
        )  # fmt: skip
        threads = joblib.effective_n_jobs(-1)
        edges = np.linspace(0, len(boxes.gap), threads + 1).astype(int).tolist()
        bound = bound_boxes_of_labels if len(self.two.chosen) else bound_boxes
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda part: bound(self.two, wanted, boxes, rounds, *part), pairwise(edges)))
        boxes.gap[:] = np.minimum(boxes.gap, gap_beyond(wanted.gap, boxes.excess))
        if nobody_yet:
            boxes.gap[boxes.excess < 0] = -1.0
        gaps = self._met(boxes, boxes.agreed)
        alone = (boxes.score[:, len(self.two.plus) :] == 0).all(1)
        boxes.gap[alone] = np.minimum(boxes.gap, np.where(gaps >= 0, gaps, -1.0))[alone]
        # Also offer people at the other ends of the ranges: near a boundary, one of the two ends flips.
        option, values = self.two.option, np.arange(len(self.two.option))
        twin = np.where(np.append(option[1:] == option[:-1], False), values + 1, values)
        twin = np.where(np.append(False, option[1:] == option[:-1]), values - 1, twin)[boxes.agreed]
        self._met(boxes, np.where(np.take_along_axis(boxes.allowed, twin, 1), twin, boxes.agreed))

    def _met(self, boxes: Boxes, values: Codes) -> Floats:
        """Offer the people with these values, one in each box, and return their gaps."""
        chosen, numbers = self._people(boxes, values)
        gaps = self.score(chosen, numbers)
        gaps[np.take_along_axis(boxes.cost, values, 1).sum(1) > CLOSE] = -1.0
        for at in np.argsort(-gaps)[:_OFFERED].tolist():
            if gaps[at] > max(self.found, -CLOSE) and self._possible(boxes, at, chosen[at], numbers[at]):
                self.offer(float(gaps[at]), chosen[at], numbers[at])
        return gaps

    def _possible(self, boxes: Boxes, row: int, chosen: Flags, numbers: Floats) -> bool:
        return True

    def score(self, chosen: Flags, numbers: Floats) -> Floats:
        """Return how far apart the policies are for each person; below 0 for people who don't count."""
        u, v = self.two.logits(chosen, numbers).T
        gaps = np.asarray(expit(u) - expit(v))
        if self.differently:
            agreement = self.two.agreement(chosen, numbers)
            return np.where(agreement < 0, gaps, -1e-9 - agreement)
        if self.boundary is None:
            return gaps
        short = np.maximum(self.boundary - u, 0) + np.maximum(v - self.boundary, 0)
        return np.where((short == 0) & (v < self.boundary), gaps, -1e-9 - short)

    def reach(self, who: Any, chosen: Flags, numbers: Floats, column: int) -> Reach:
        """Return, for each of a column's options, the lowest and highest number, and who can have it."""
        options = range(self.first[column], self.first[column + 1])
        return [(self.low[option], self.high[option], True) for option in options]

    def _people(self, boxes: Boxes, values: Codes) -> tuple[Flags, Floats]:
        """Return the people with these values, one in each box, as options and numbers."""
        chosen = np.zeros((len(values), len(self.low)), dtype=np.bool_)
        numbers = np.zeros(chosen.shape)
        rows, options = np.arange(len(values))[:, None], self.two.option[values]
        chosen[rows, options], numbers[rows, options] = True, boxes.ends[rows, values]
        return chosen, numbers

    def look_again(self, until: float) -> None:
        """Now and then, look for worse people near the agreed people of the boxes with the largest bounds."""
        if self.split >= 4 * self.looked and len(self.boxes.gap):
            boxes = self.boxes.take(np.argsort(-self.boxes.gap)[:_NEAR])
            self._climb(boxes, until)
            self.looked = self.split

    def _climb(self, boxes: Boxes, until: float) -> None:
        climb(self, *self._people(boxes, boxes.agreed), until=until)

    def offer(self, gap: float, chosen: Flags, numbers: Floats) -> None:
        """Keep a person if the policies are farther apart for them than for everybody found before."""
        if gap > self.found:
            self.found, self.person = gap, (chosen.copy(), numbers.copy())

    def _halves(self, boxes: Boxes, enough: float) -> Boxes:
        """Return both halves of each box, split by a pair of units or by a column, whichever looks better."""
        count, tried, left = len(boxes.gap), self._candidates(boxes), []
        for halves, able in tried:
            self._bound(halves, enough, _FEW)
            open_still = np.maximum(halves.gap - enough, 0).reshape(2, count)
            left.append(np.where(able, open_still.sum(0) + open_still.max(0) / 2, np.inf))
        pick = np.tile(np.argmin(left, 0), 2)
        parts = tried[0][0].take(pick == 0)
        for at, (halves, _) in enumerate(tried[1:], 1):
            parts = parts.join(halves.take(pick == at))
        unsettled = parts.take(parts.gap > enough)
        if len(unsettled.gap):
            self._bound(unsettled, enough, _MORE)
        return unsettled.join(parts.take(parts.gap <= enough))

    def _candidates(self, boxes: Boxes) -> list[tuple[Boxes, Flags]]:
        """Return the halves of each box in each way to split it, and which boxes can be split that way."""
        count, pairs = len(boxes.gap), len(self.two.plus)
        both = np.tile(np.arange(count), 2)
        by_column = boxes.take(both)
        for row, column in enumerate(boxes.score[:, pairs:].argmax(1).tolist()):
            self._part(by_column, row, count + row, column)
        tried = [(by_column, boxes.score[:, pairs:].max(1) > 0)]
        if pairs:
            by_pair = boxes.take(both)
            pair = boxes.score[:, :pairs].argmax(1)
            able = boxes.score[np.arange(count), pair] > 0
            at = np.flatnonzero(able)
            by_pair.states[at, pair[at], 1] = False
            by_pair.states[count + at, pair[at], 0] = False
            tried.append((by_pair, able))
        return tried

    def _part(self, boxes: Boxes, below: int, above: int, column: int) -> None:
        """Split a column between two copies of a box: better and other options, or halves of a range."""
        values = np.arange(self.two.first[column], self.two.first[column + 1])
        values = values[boxes.allowed[below, values]]
        options = self.two.option[values]
        if len(values) < 2:
            return
        if options[0] != options[-1]:
            ranked = options[np.argsort(-boxes.margins[below, values], kind="stable")]
            different = list(dict.fromkeys(ranked.tolist()))
            better = np.isin(options, different[: (len(different) + 1) // 2])
            boxes.allowed[below, values[~better]] = False
            boxes.allowed[above, values[better]] = False
            return
        low, high = boxes.ends[below, values]
        lower = upper = (low + high) / 2
        if self.whole[options[0]]:
            lower = np.floor(lower)
            upper = lower + 1
        at_low, at_high = boxes.prices[below, :, values].copy()
        slots = [self.two.forest.prices_of(column, value - self.two.first[column]) for value in values]
        of_low, of_high = (boxes.tree_prices[below, slot].copy() for slot in slots)
        for row, which, end, whole in ((below, 1, lower, low), (above, 0, upper, high)):
            value, share = values[which], (end - low) / (high - low)
            boxes.ends[row, value] = end
            boxes.prices[row, :, value] = at_low + (at_high - at_low) * share
            boxes.tree_prices[row, slots[which]] = of_low + (of_high - of_low) * share
            boxes.allowed[row, value] = end != whole
