"""The boosted trees of two policies, and their part in agreeing on the worst person of a box.

A tree is worth what its best leaf is: what that leaf adds, and the best prices of values that lead to it. As
the pairs of units do, every tree names its own worst person, and prices make them agree.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenhand.arrays import Codes, Flags, Floats
from evenhand.jit import jit


class Forest(NamedTuple):
    """Trees as their leaves. A part is a tree with one of the columns that it splits.

    A part has a price for each value of its column, and a flag for each leaf and value: whether people with
    the value may come to the leaf.
    """

    leaf: Codes  # where each tree's leaves begin, and where the last one's end; so are the next
    part: Codes  # where each tree's parts begin
    price: Codes  # where each part's prices begin
    best: Codes  # where what is best for each leaf begins, by part
    flag: Codes  # where each part's flags begin
    tree: Codes  # of each part
    column: Codes  # of each part
    within: Codes  # where each column's parts begin in `order`
    order: Codes  # parts, column by column
    inside: Flags
    adds: Floats  # (leaves, 2): to both policies' logits

    def prices_of(self, column: int, value: int) -> Codes:
        """Return where the prices of a column's value are, for all trees that split it."""
        parts = self.order[self.within[column] : self.within[column + 1]]
        return np.asarray(self.price[parts] + value)


def no_trees(columns: int) -> Forest:
    """Return a forest of no trees."""
    none, begin = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return Forest(
        begin, begin, begin, begin, begin, none, none, np.zeros(columns + 1, dtype=np.int64), none,
        np.zeros(0, dtype=np.bool_), np.zeros((0, 2)),
    )  # fmt: skip


class Growing(NamedTuple):
    """What trees know of a box."""

    reached: Any  # (leaves): whether anybody in the box comes to the leaf
    owed: Any  # prices
    worth: Any  # (leaves)
    best: Any  # the best price that leads to a leaf, by part
    wanted: Any  # what a value is worth to a tree
    said: Any  # (2): what trees add to both policies' logits of the person agreed upon


@jit()
def enter(two: Any, allowed: Any, prices: Any) -> Growing:
    """Return what trees know of a box at first: which leaves are in it."""
    forest = two.forest
    reached = np.ones(len(forest.adds), np.bool_)
    for part in range(len(forest.tree)):
        tree, column = forest.tree[part], forest.column[part]
        first, values = two.first[column], two.first[column + 1] - two.first[column]
        for leaf in range(forest.leaf[tree], forest.leaf[tree + 1]):
            at = forest.flag[part] + (leaf - forest.leaf[tree]) * values
            met = False
            for value in range(values):
                met = met or (allowed[first + value] and forest.inside[at + value])
            reached[leaf] = reached[leaf] and met
    return Growing(
        reached, prices.astype(np.float64), np.empty(len(reached)), np.empty(forest.best[-1]),
        np.empty(len(prices)), np.zeros(2),
    )  # fmt: skip


@jit()
def sum_of(two: Any, column: int, value: int, amounts: Any) -> float:
    """Return the sum, over all trees that split a column, of one of its values' amounts."""
    forest, total = two.forest, 0.0
    for at in range(forest.within[column], forest.within[column + 1]):
        total += amounts[forest.price[forest.order[at]] + value - two.first[column]]
    return total


@jit()
def lower(two: Any, column: int, value: int, grown: Growing, by: float) -> None:
    """Lower all trees' prices of a column's value."""
    forest = two.forest
    for at in range(forest.within[column], forest.within[column + 1]):
        grown.owed[forest.price[forest.order[at]] + value - two.first[column]] -= by


@jit()
def rate(two: Any, allowed: Any, grown: Growing, one: float, other: float) -> None:
    """Write what leaves are worth where the policies' logits count `one` and minus `other`."""
    grown.worth[:] = one * two.forest.adds[:, 0] - other * two.forest.adds[:, 1]
    grown.best[:] = 0
    for part in range(len(two.forest.tree)):
        _rate_part(two, part, allowed, grown)


@jit()
def _rate_part(two: Any, part: int, allowed: Any, grown: Growing) -> None:
    forest = two.forest
    tree, column = forest.tree[part], forest.column[part]
    first, values = two.first[column], two.first[column + 1] - two.first[column]
    begin = forest.leaf[tree]
    for leaf in range(begin, forest.leaf[tree + 1]):
        if grown.reached[leaf]:
            top, flags = -np.inf, forest.flag[part] + (leaf - begin) * values
            for value in range(values):
                if forest.inside[flags + value] and allowed[first + value]:
                    top = max(top, grown.owed[forest.price[part] + value])
            at = forest.best[part] + leaf - begin
            grown.worth[leaf] += top - grown.best[at]
            grown.best[at] = top


@jit()
def most(two: Any, grown: Growing) -> float:
    """Return the sum of what the trees' best leaves are worth."""
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
    """Write what each value of a column is worth to the trees that split it."""
    forest = two.forest
    values = two.first[column + 1] - two.first[column]
    for at in range(forest.within[column], forest.within[column + 1]):
        part = forest.order[at]
        tree, price = forest.tree[part], forest.price[part]
        begin = forest.leaf[tree]
        grown.wanted[price : price + values] = -np.inf
        for leaf in range(begin, forest.leaf[tree + 1]):
            if grown.reached[leaf]:
                rest = grown.worth[leaf] - grown.best[forest.best[part] + leaf - begin]
                flags = forest.flag[part] + (leaf - begin) * values
                for value in range(values):
                    if forest.inside[flags + value]:
                        gain = rest + grown.owed[price + value]
                        grown.wanted[price + value] = max(grown.wanted[price + value], gain)


@jit()
def make_worth(two: Any, column: int, value: int, grown: Growing, mean: float) -> None:
    """Set the prices of a column's value so that it is worth as much to each tree."""
    forest = two.forest
    for at in range(forest.within[column], forest.within[column + 1]):
        price = forest.price[forest.order[at]] + value - two.first[column]
        grown.owed[price] += mean - grown.wanted[price]


@jit()
def settle(two: Any, column: int, allowed: Any, grown: Growing) -> None:
    """Write what leaves are worth after a column's prices have changed."""
    for at in range(two.forest.within[column], two.forest.within[column + 1]):
        _rate_part(two, two.forest.order[at], allowed, grown)


@jit()
def learn(two: Any, agreed: Any, grown: Growing, one: float, other: float, score: Any) -> float:
    """Write what trees add for the person agreed upon; score the columns that keep trees from agreeing.

    Return how much of the bound is due to disagreement.
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
    column = two.forest.column[part]
    values = two.first[column + 1] - two.first[column]
    return bool(two.forest.inside[two.forest.flag[part] + leaf * values + value])


@jit()
def _leaf_of(two: Any, tree: int, values: Any) -> int:
    """Return the leaf to which somebody with these values, one for each column, comes."""
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
    """Add what trees say to both policies' logits of people, given by one value for each column."""
    for person in range(len(values)):
        for tree in range(len(two.forest.leaf) - 1):
            logits[person] += two.forest.adds[_leaf_of(two, tree, values[person])]
