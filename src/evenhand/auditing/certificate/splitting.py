"""Trees in terms of possible people: where they cut the columns' ranges, and who reaches which leaf."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.arrays import Codes, Flags
from evenhand.auditing.certificate.domain import COMBINED, Domain, Encode
from evenhand.auditing.certificate.forest import Forest

_MOST_LEAVES = 64  # of a merged tree


class Leaf(NamedTuple):
    """A leaf: the score that it adds to, the amount, and the options of each split column that lead to it."""

    output: int
    adds: float
    options: dict[int, Flags]


def cut_where_trees_split(domain: Domain, encode: Encode, trees: Any) -> Domain:
    """Return the same possible people with ranges cut into pieces, within which no tree splits."""
    low, high, owner = _seen(domain, encode)
    splits = np.unique(np.array([trees.feature, trees.threshold])[:, trees.set_words == 0], axis=1)
    feature, limit = splits[0].astype(np.int64), splits[1].astype(np.float32)
    option = domain.first[owner[feature]]  # a column's range is its first option
    crossed = (low[option, feature] <= limit) != (high[option, feature] <= limit)
    feature, limit, option = feature[crossed], limit[crossed], option[crossed]
    rises, rows = low[option, feature] <= limit, np.arange(len(option))
    chosen = np.zeros((len(option), len(domain.options)), dtype=np.bool_)
    chosen[:, domain.first[:-1]] = True
    numbers = np.tile([one.low for one in domain.options], (len(option), 1))
    ranges = [domain.options[at] for at in option]
    whole = np.array([one.whole for one in ranges], dtype=np.bool_)
    ends = np.array([[one.low, one.high] for one in ranges]).reshape(-1, 2)
    while True:  # bisect until no number lies between the ends: exact, whatever the encoder rounds
        middle = ends.mean(1)
        middle = np.where(whole, np.floor(middle), middle)
        between = (ends[:, 0] < middle) & (middle < ends[:, 1])
        if not between.any():
            break
        numbers[rows, option] = middle
        seen = encode(domain.rows(chosen, numbers)).astype(np.float32)[rows, feature]
        side = np.where((seen <= limit) == rises, 0, 1)
        ends[rows[between], side[between]] = middle[between]
    return domain.cut(
        {
            name: np.unique(ends[option == at, 0])
            for name, at in zip(domain.columns, domain.first, strict=False)
        }
    )


def leaves_of(domain: Domain, encode: Encode, trees: Any) -> list[list[Leaf]]:
    """Return the leaves of each tree that possible people can reach; trees of the policies' mean come last.

    `domain` must be cut where trees split.
    """
    low, _, owner = _seen(domain, encode)
    first, found = domain.first, []
    for root, output in zip(trees.root.tolist(), trees.output.tolist(), strict=True):
        leaves, stack = [], [(root, dict[int, Flags]())]
        while stack:
            at, options = stack.pop()
            if at < 0:
                leaves.append(Leaf(output, float(trees.leaf[~at]), options))
                continue
            column = int(owner[trees.feature[at]])
            left = trees.goes_left(at, low[first[column] : first[column + 1], trees.feature[at]])
            known = options.get(column, np.ones(len(left), dtype=np.bool_))
            for child, fit in ((trees.left[at], left), (trees.right[at], ~left)):
                if (known & fit).any():
                    stack.append((int(child), {**options, column: known & fit}))
        found.append(leaves)
    return [*_merged([tree for tree in found if tree[0].output]), *(t for t in found if not t[0].output)]


def _merged(trees: list[list[Leaf]]) -> list[list[Leaf]]:
    """Merge trees into fewer, larger trees with the same sum: one tree has a tighter bound than two."""
    found: list[list[Leaf]] = []
    for tree in trees:
        alike = [at for at, other in enumerate(found) if other[0].output == tree[0].output]
        if alike:
            nearest = max(alike, key=lambda at: _shared(found[at], tree))
            both = [leaf for one in found[nearest] for other in tree if (leaf := _meet(one, other))]
            if len(both) <= _MOST_LEAVES:
                found[nearest] = both
                continue
        found.append(tree)
    return found


def _shared(one: list[Leaf], other: list[Leaf]) -> float:
    """Return the share of the trees' columns that both trees split."""
    columns, others = ({column for leaf in tree for column in leaf.options} for tree in (one, other))
    return len(columns & others) / max(len(columns | others), 1)


def _meet(one: Leaf, other: Leaf) -> Leaf | None:
    """Return the leaf of the people who reach both leaves; None if nobody does."""
    both = one.options | other.options
    for column in one.options.keys() & other.options.keys():
        both[column] = one.options[column] & other.options[column]
        if not both[column].any():
            return None
    return Leaf(one.output, one.adds + other.adds, both)


def forest_of(trees: list[list[Leaf]], domain: Domain, first: Codes, option: Codes) -> Forest:
    """Return trees over the columns' values, given each value's option; what leaves add is left at 0."""
    parts = [
        (number, column)
        for number, leaves in enumerate(trees)
        for column in sorted({column for leaf in leaves for column in leaf.options})
    ]
    tree, column = np.array(parts, dtype=np.int64).reshape(-1, 2).T.copy()
    kind, inside, begins = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.bool_)], domain.first
    for number, at in parts:
        every = np.ones(begins[at + 1] - begins[at], dtype=np.bool_)
        flags = np.array([leaf.options.get(at, every) for leaf in trees[number]])
        flags, kinds = np.unique(flags, axis=1, return_inverse=True)
        inside.append(flags.ravel())
        kind.append(kinds.ravel()[option[first[at] : first[at + 1]] - begins[at]])
    sizes = np.array([len(leaves) for leaves in trees], dtype=np.int64)
    loud = sum(trees[number][0].output > 0 for number in tree)
    flags_of = [len(flags) for flags in inside[1:]]
    return Forest(
        leaf=_begins(sizes), part=_begins(np.bincount(tree, minlength=len(trees))),
        price=_begins(np.diff(first)[column]), kinds=_begins(flags_of // sizes[tree]),
        best=_begins(sizes[tree]), flag=_begins(flags_of), tree=tree, column=column,
        within=_begins(np.bincount(column[:loud], minlength=len(first) - 1)),
        order=np.argsort(column[:loud], kind="stable"), priced=int(np.diff(first)[column[:loud]].sum()),
        kind=np.concatenate(kind), inside=np.concatenate(inside),
        adds=np.zeros((int(sizes.sum()), 2)),
    )  # fmt: skip


def _begins(sizes: Any) -> Codes:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _seen(domain: Domain, encode: Encode) -> tuple[Any, Any, Codes]:
    """Return the features of each option, at both ends of ranges, and the column behind each feature."""
    low, high = (domain.one_by_one(encode, end).astype(np.float32) for end in ("low", "high"))
    moved = np.logical_or.reduceat(_differ(low, low[:1]) | _differ(high, low[:1]), domain.first[:-1])
    if (moved.sum(0) > 1).any():
        raise ValueError(COMBINED)
    return low, high, moved.argmax(0)


def _differ(one: npt.NDArray[np.float32], other: npt.NDArray[np.float32]) -> Flags:
    return np.asarray((one != other) & ~(np.isnan(one) & np.isnan(other)))
