"""The boosted trees of two policies, and how they agree on the worst person of a box.

A tree's worth is that of its best leaf: what the leaf adds, plus the best prices of values that lead to it.
Like the pairs of units, each tree has its own worst person, and prices make them agree.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenhand.arrays import Codes, Flags, Floats
from evenhand.jit import jit


class Forest(NamedTuple):
    """Trees given by their leaves. A part is a tree together with one of the columns that it splits.

    Values of the column that the tree does not distinguish are of one kind. A part has a price for each
    value, and a flag for each leaf and kind: whether people with such a value can reach the leaf.

    The trees of the policies' mean come last. They have no prices (these stay at 0), because they hardly
    matter in a difference of policies, and there are many of them.
    """

    leaf: Codes  # where each tree's leaves begin, and where the last tree's end; the next arrays are alike
    part: Codes  # where each tree's parts begin
    price: Codes  # where each part's prices begin
    kinds: Codes  # where each part's kinds begin
    best: Codes  # where each part's best prices per leaf begin
    flag: Codes  # where each part's flags begin
    tree: Codes  # the tree of each part
    column: Codes  # the column of each part
    within: Codes  # where each column's parts begin in `order`
    order: Codes  # parts with prices, column by column
    priced: int  # the number of prices that are not always 0
    kind: Codes  # the kind of each value, by part
    inside: Flags
    adds: Floats  # (leaves, 2): what leaves add to both policies' logits

    def prices_of(self, column: int, value: int) -> Codes:
        """Return the positions of the prices of a column's value, for all trees that split the column."""
        parts = self.order[self.within[column] : self.within[column + 1]]
        return np.asarray(self.price[parts] + value)


def no_trees(columns: int) -> Forest:
    """Return a forest without trees."""
    none, begin = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return Forest(
        begin, begin, begin, begin, begin, begin, none, none, np.zeros(columns + 1, dtype=np.int64), none,
        0, none, np.zeros(0, dtype=np.bool_), np.zeros((0, 2)),
    )  # fmt: skip


class Growing(NamedTuple):
    """What trees know about a box."""

    reached: Any  # (leaves): whether anybody in the box can reach the leaf
    owed: Any  # prices
    top: Any  # the best price of each kind; minus infinity if nobody in the box has the kind
    gain: Any  # the worth of each kind to a tree, without its price
    worth: Any  # (leaves)
    best: Any  # the best price that leads to a leaf, by part
    wanted: Any  # the worth of a value to a tree
    said: Any  # (2): what trees add to both policies' logits for the agreed person


@jit()
def enter(two: Any, allowed: Any, prices: Any) -> Growing:
    """Return what trees initially know about a box: which leaves can be reached."""
    forest = two.forest
    leaves, kinds, owed = len(forest.adds), forest.kinds[-1], np.zeros(forest.price[-1])
    grown = Growing(
        np.ones(leaves, np.bool_), owed, np.empty(kinds), np.empty(kinds), np.empty(leaves),
        np.empty(forest.best[-1]), np.empty(forest.priced), np.zeros(2),
    )  # fmt: skip
    owed[: forest.priced] = prices
    for part in range(len(forest.tree)):
        _find_top(two, part, allowed, grown)
        begin, kinds = forest.kinds[part], forest.kinds[part + 1] - forest.kinds[part]
        first = forest.leaf[forest.tree[part]]
        for leaf in range(first, forest.leaf[forest.tree[part] + 1]):
            met, flags = False, forest.flag[part] + (leaf - first) * kinds
            for kind in range(kinds):
                met = met or (forest.inside[flags + kind] and grown.top[begin + kind] > -np.inf)
            grown.reached[leaf] = grown.reached[leaf] and met
    return grown


@jit()
def _find_top(two: Any, part: int, allowed: Any, grown: Growing) -> None:
    """Write the best price of each kind, over the part's values in the box."""
    forest, begin = two.forest, two.forest.kinds[part]
    grown.top[begin : forest.kinds[part + 1]] = -np.inf
    first = two.first[forest.column[part]]
    for price in range(forest.price[part], forest.price[part + 1]):
        if allowed[first + price - forest.price[part]]:
            kind = begin + forest.kind[price]
            grown.top[kind] = max(grown.top[kind], grown.owed[price])


@jit()
def sum_of(two: Any, column: int, value: int, amounts: Any) -> float:
    """Return the sum of a value's amounts over all trees that split its column."""
    forest, total = two.forest, 0.0
    for at in range(forest.within[column], forest.within[column + 1]):
        total += amounts[forest.price[forest.order[at]] + value - two.first[column]]
    return total


@jit()
def lower(two: Any, column: int, value: int, grown: Growing, by: float) -> None:
    """Lower the prices of a column's value in all trees."""
    forest = two.forest
    for at in range(forest.within[column], forest.within[column + 1]):
        grown.owed[forest.price[forest.order[at]] + value - two.first[column]] -= by


@jit()
def rate(two: Any, allowed: Any, grown: Growing, one: float, other: float) -> None:
    """Write the worth of leaves if the policies' logits have the weights `one` and minus `other`."""
    grown.worth[:] = one * two.forest.adds[:, 0] - other * two.forest.adds[:, 1]
    grown.best[:] = 0
    for part in two.forest.order:
        _rate_part(two, part, allowed, grown)


@jit()
def _rate_part(two: Any, part: int, allowed: Any, grown: Growing) -> None:
    forest = two.forest
    _find_top(two, part, allowed, grown)
    begin, kinds = forest.kinds[part], forest.kinds[part + 1] - forest.kinds[part]
    first = forest.leaf[forest.tree[part]]
    for leaf in range(first, forest.leaf[forest.tree[part] + 1]):
        if grown.reached[leaf]:
            top, flags = -np.inf, forest.flag[part] + (leaf - first) * kinds
            for kind in range(kinds):
                if forest.inside[flags + kind]:
                    top = max(top, grown.top[begin + kind])
            at = forest.best[part] + leaf - first
            grown.worth[leaf] += top - grown.best[at]
            grown.best[at] = top


@jit()
def most(two: Any, grown: Growing) -> float:
    """Return the sum of the worth of the trees' best leaves."""
    total = 0.0
    for tree in range(len(two.forest.leaf) - 1):
        total += grown.worth[_best_leaf(two.forest, tree, grown)]
    return total


@jit()
def _best_leaf(forest: Any, tree: int, grown: Growing) -> int:
    best, top = -1, -np.inf
    for leaf in range(forest.leaf[tree], forest.leaf[tree + 1]):
        if grown.reached[leaf] and grown.worth[leaf] > top:
            best, top = leaf, grown.worth[leaf]
    return best


@jit()
def ask(two: Any, column: int, grown: Growing) -> None:
    """Write the worth of each value of a column to the trees that split the column."""
    forest = two.forest
    for at in range(forest.within[column], forest.within[column + 1]):
        part = forest.order[at]
        begin, kinds = forest.kinds[part], forest.kinds[part + 1] - forest.kinds[part]
        first = forest.leaf[forest.tree[part]]
        grown.gain[begin : begin + kinds] = -np.inf
        for leaf in range(first, forest.leaf[forest.tree[part] + 1]):
            if grown.reached[leaf]:
                rest = grown.worth[leaf] - grown.best[forest.best[part] + leaf - first]
                flags = forest.flag[part] + (leaf - first) * kinds
                for kind in range(kinds):
                    if forest.inside[flags + kind]:
                        grown.gain[begin + kind] = max(grown.gain[begin + kind], rest)
        for price in range(forest.price[part], forest.price[part + 1]):
            grown.wanted[price] = grown.owed[price] + grown.gain[begin + forest.kind[price]]


@jit()
def make_worth(two: Any, column: int, value: int, grown: Growing, mean: float) -> None:
    """Set the prices of a column's value so that it is worth `mean` to each tree."""
    forest = two.forest
    for at in range(forest.within[column], forest.within[column + 1]):
        price = forest.price[forest.order[at]] + value - two.first[column]
        grown.owed[price] += mean - grown.wanted[price]


@jit()
def settle(two: Any, column: int, allowed: Any, grown: Growing) -> None:
    """Update the worth of leaves after a column's prices have changed."""
    for at in range(two.forest.within[column], two.forest.within[column + 1]):
        _rate_part(two, two.forest.order[at], allowed, grown)


@jit()
def learn(two: Any, agreed: Any, grown: Growing, one: float, other: float, score: Any) -> float:
    """Write what trees add for the agreed person, and score the columns that keep trees from agreeing.

    Return the part of the bound that is due to disagreement.
    """
    forest, all_missed = two.forest, 0.0
    grown.said[:] = 0
    for tree in range(len(forest.leaf) - 1):
        begin = forest.leaf[tree]
        best, leaf = _best_leaf(forest, tree, grown), _leaf_of(two, tree, agreed)
        missed = grown.worth[best] - one * forest.adds[leaf, 0] + other * forest.adds[leaf, 1]
        grown.said[:] = grown.said + forest.adds[leaf]
        outside = 0
        for part in range(forest.part[tree], forest.part[tree + 1]):
            value = agreed[forest.column[part]] - two.first[forest.column[part]]
            missed -= grown.owed[forest.price[part] + value]
            outside += not _is_inside(two, part, best - begin, value)
        all_missed += missed
        for part in range(forest.part[tree], forest.part[tree + 1]):
            column = forest.column[part]
            value = agreed[column] - two.first[column]
            share = missed / max(outside, 1)
            if outside == 0:
                share = grown.best[forest.best[part] + best - begin] - grown.owed[forest.price[part] + value]
            elif _is_inside(two, part, best - begin, value):
                share = 0.0
            if score[column] > 0:
                score[column] += share
    return all_missed


@jit()
def _is_inside(two: Any, part: int, leaf: int, value: int) -> bool:
    forest = two.forest
    kinds, kind = forest.kinds[part + 1] - forest.kinds[part], forest.kind[forest.price[part] + value]
    return bool(forest.inside[forest.flag[part] + leaf * kinds + kind])


@jit()
def _leaf_of(two: Any, tree: int, values: Any) -> int:
    """Return the leaf of a person with these values, one for each column."""
    forest = two.forest
    begin = forest.leaf[tree]
    for leaf in range(begin, forest.leaf[tree + 1]):
        inside = True
        for part in range(forest.part[tree], forest.part[tree + 1]):
            column = forest.column[part]
            if not _is_inside(two, part, leaf - begin, values[column] - two.first[column]):
                inside = False
                break
        if inside:
            return leaf
    return -1


@jit()
def add_trees(two: Any, values: Any, logits: Any) -> None:
    """Add the trees' part to both policies' logits for people, given by one value for each column."""
    for person in range(len(values)):
        for tree in range(len(two.forest.leaf) - 1):
            logits[person] += two.forest.adds[_leaf_of(two, tree, values[person])]
