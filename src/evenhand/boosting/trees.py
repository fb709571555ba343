"""Fitted trees as plain arrays, evaluated by a compiled loop. A model file is checked, never parsed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.arrays import Array, Flags, Floats
from evenhand.jit import jit

_BLOCK = 256  # people who go through the same tree in turn, so that it stays in the cache
_CATEGORICAL, _NAN_LEFT, _NAN_IS_MISSING = 1, 2, 8  # LightGBM's flags of a split
_KINDS = {"threshold": np.float32, "nan_left": np.bool_, "sets": np.uint32, "leaf": np.float64}


@dataclass(frozen=True)
class Trees:
    """Binary trees, one after another. A child below 0 is a leaf: ~child is its number.

    A split sends people left whose feature is at most the threshold. A split with a set of categories sends
    people left if the bit of their category is set.
    """

    root: npt.NDArray[np.int32]  # (trees,), as a child
    output: npt.NDArray[np.int32]  # (trees,): which score the tree adds to
    feature: npt.NDArray[np.int32]  # (splits,), as the next four
    threshold: npt.NDArray[np.float32]
    nan_left: npt.NDArray[np.bool_]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    set_start: npt.NDArray[np.int32]  # (splits,): where the split's categories begin in `sets`
    set_words: npt.NDArray[np.int32]  # (splits,): the number of 32-bit words they take; 0: no categories
    sets: npt.NDArray[np.uint32]
    leaf: Floats

    def scores(self, features: npt.NDArray[np.float32], n_outputs: int) -> Floats:
        """Return the sums of each person's leaves: (outputs, people)."""
        out = np.zeros((n_outputs, len(features)))
        _add(
            np.ascontiguousarray(features, dtype=np.float32),
            *(getattr(self, part.name) for part in fields(self)),
            out,
        )
        return out

    def goes_left(self, split: int, values: npt.NDArray[np.float32]) -> Flags:
        """Return who goes left at a split, given the values of its feature, like the compiled loop."""
        words = int(self.set_words[split])
        if words == 0:
            return np.asarray((values <= self.threshold[split]) | (np.isnan(values) & self.nan_left[split]))
        codes = np.where(values >= 0, values, 32 * words).astype(np.int64)
        start = int(self.set_start[split])
        bits = np.append(self.sets[start : start + words], np.uint32(0))[np.minimum(codes >> 5, words)]
        return np.asarray((bits >> (codes & 31).astype(np.uint32)) & 1 == 1)

    def scaled(self, by: Array) -> Trees:
        """Return trees with their leaves multiplied by one number per tree."""
        return replace(self, leaf=self.leaf * by[self._tree_of_leaf()])

    def _tree_of_leaf(self) -> Array:
        grown, splits = self.root >= 0, np.zeros(len(self.root), dtype=np.int64)
        splits[grown] = np.diff([*self.root[grown], len(self.feature)])  # trees lie one after another
        return np.repeat(np.arange(len(self.root)), splits + 1)

    def check(self, n_features: int, n_outputs: int) -> None:
        """Raise unless the loop can evaluate these trees without leaving an array or running forever."""
        n_trees, n_splits, n_leaves = len(self.root), len(self.feature), len(self.leaf)
        sizes = {"root": n_trees, "output": n_trees, "sets": len(self.sets), "leaf": n_leaves}
        for part in fields(self):
            array = getattr(self, part.name)
            kind = np.dtype(_KINDS.get(part.name, np.int32))
            size = sizes.get(part.name, n_splits)
            if array.shape != (size,) or array.dtype != kind or not array.flags.c_contiguous:
                raise ValueError(
                    f"The model is damaged: its trees' {part.name!r} have the shape {array.shape} of "
                    f"{array.dtype}, but expected {(size,)} of {kind}."
                )
        starts, words = self.set_start.astype(np.int64), self.set_words.astype(np.int64)
        earlier = np.concatenate([self.left, self.right]) <= np.tile(np.arange(n_splits), 2)
        children = np.concatenate([self.root, self.left, self.right])
        wrong = (
            ((children >= n_splits) | (~children >= n_leaves)).any()
            or (earlier & (children[n_trees:] >= 0)).any()  # children come after their parents
            or ((self.output < 0) | (self.output >= n_outputs)).any()
            or ((self.feature < 0) | (self.feature >= n_features)).any()
            or ((starts < 0) | (words < 0) | (starts + words > len(self.sets))).any()
            or not np.isfinite(self.leaf).all()
            or np.isnan(self.threshold).any()
        )
        if wrong:
            raise ValueError("The model is damaged: its trees have parts that do not fit together.")


@jit()
def _add(
    features: Any, root: Any, output: Any, feature: Any, threshold: Any, nan_left: Any, left: Any, right: Any,
    set_start: Any, set_words: Any, sets: Any, leaf: Any, out: Any,
) -> None:  # fmt: skip
    for begin in range(0, features.shape[0], _BLOCK):
        end = min(begin + _BLOCK, features.shape[0])
        for t in range(root.shape[0]):
            top, target = root[t], output[t]
            for i in range(begin, end):
                at = top
                while at >= 0:
                    value = features[i, feature[at]]
                    if set_words[at] > 0:
                        goes_left = False
                        if value >= 0:  # an unknown category is -1, and goes right
                            code = int(value)
                            word = code >> 5
                            if word < set_words[at]:
                                goes_left = (sets[set_start[at] + word] >> np.uint32(code & 31)) & 1 == 1
                    elif value <= threshold[at]:
                        goes_left = True
                    else:
                        goes_left = nan_left[at] and value != value
                    at = left[at] if goes_left else right[at]
                out[target, i] += leaf[~at]


def joined(parts: Sequence[Trees]) -> Trees:
    """Return the trees of all parts together."""
    split = leaf = word = 0
    kinds = {part.name: _KINDS.get(part.name, np.int32) for part in fields(Trees)}
    moved = [Trees(**{name: np.zeros(0, kind) for name, kind in kinds.items()})]
    for part in parts:
        children = {
            name: np.where(getattr(part, name) >= 0, getattr(part, name) + split, getattr(part, name) - leaf)
            for name in ("root", "left", "right")
        }
        moved.append(replace(part, **children, set_start=part.set_start + word))
        split, leaf, word = split + len(part.feature), leaf + len(part.leaf), word + len(part.sets)
    whole = {name: np.concatenate([getattr(one, name) for one in moved]) for name in kinds}
    return Trees(**{name: whole[name].astype(kind) for name, kind in kinds.items()})


def from_lightgbm(text: str, n_outputs: int) -> Trees:
    """Return the trees of a LightGBM model in text format; they belong to the outputs in turn."""
    return joined([_one_tree(tree, at % n_outputs) for at, tree in enumerate(_trees(text))])


def _trees(text: str) -> Iterator[dict[str, str]]:
    for block in text.split("\nTree=")[1:]:
        lines = block.split("\nend of trees")[0].split("\n")
        yield dict(line.split("=", 1) for line in lines if "=" in line)


def _one_tree(tree: dict[str, str], output: int) -> Trees:
    def numbers(name: str, kind: Any) -> Array:
        return np.array(tree.get(name, "").split(), dtype=kind)

    lone = int(tree["num_leaves"]) == 1  # no split: everybody is in the same leaf
    flags = numbers("decision_type", np.int64)
    limits = numbers("threshold", np.float64)
    categorical = (flags & _CATEGORICAL) > 0
    bounds = numbers("cat_boundaries", np.int64) if categorical.any() else np.zeros(1, dtype=np.int64)
    which = np.where(categorical, limits, 0).astype(np.int64)
    after = np.minimum(which + 1, len(bounds) - 1)
    # Missing values go where the split says; if there were none in training, they go where a 0 goes.
    nan_left = np.where(flags & _NAN_IS_MISSING, (flags & _NAN_LEFT) > 0, limits >= 0) & ~categorical
    return Trees(
        root=np.array([-1 if lone else 0], dtype=np.int32),
        output=np.array([output], dtype=np.int32),
        feature=numbers("split_feature", np.int32),
        threshold=_at_most(np.where(categorical, 0.0, limits)),
        nan_left=nan_left,
        left=numbers("left_child", np.int32),
        right=numbers("right_child", np.int32),
        set_start=np.where(categorical, bounds[which], 0).astype(np.int32),
        set_words=np.where(categorical, bounds[after] - bounds[which], 0).astype(np.int32),
        sets=numbers("cat_threshold", np.uint32),
        leaf=numbers("leaf_value", np.float64),
    )


def _at_most(limits: Floats) -> npt.NDArray[np.float32]:
    """Return the largest float32 up to each limit: no float32 feature lies between the two."""
    single = limits.astype(np.float32)
    return np.where(single > limits, np.nextafter(single, np.float32(-np.inf)), single).astype(np.float32)
