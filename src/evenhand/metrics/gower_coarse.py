"""The coarse half of Gower's neighbours: people as 16-bit integers, in blocks of similar people.

A coarse distance never exceeds the exact distance, times `span`, by more than a known margin. Arrays are
NumPy's, or CuPy's if `xp` is CuPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.arrays import Flags, Floats
from evenhand.metrics import gower_kernel as kernel
from evenhand.metrics.gower_features import Features

COARSE_CODES = 32749
SAMPLE = 64  # the number of pairs used to choose the widest feature of a part


def span_of(features: Features, scales: Floats, k: int) -> float:
    """Return the coarse length of distance 1: larger if the neighbours of a sample of people are near.

    The smallest span resolves distance 1; the largest spends all codes on the feature of largest weight.
    """
    n = len(features.numbers)
    others = np.unique(np.linspace(0, n - 1, max(1024, k + 1)).astype(np.int64))
    people = others[:: max(1, len(others) // 32)]
    farthest = kernel.farthest_neighbour(*features, scales, people, others, k)
    usual = float(kernel.FARTHEST) / min(1.0, max(1e-9, 2 * farthest))
    return float(min(largest_span(features.weights), usual))


def largest_span(weights: Floats) -> float:
    """Return the span that spends all codes on the feature of largest weight."""
    return float(kernel.FARTHEST) * float(weights.sum() / weights.max())


def coarsen(features: Features, scales: Floats, span: float, xp: Any = np) -> tuple[Any, Any, float]:
    """Return the coarse features, their costs, and how much a coarse distance may exceed the exact one.

    Rounding numbers down changes a difference by at most the spread of what was cut off; the margin is the
    sum over all numbers. A category's cost is rounded down, which only lowers the coarse distance.
    """
    numbers, codes, weights = features
    costs = np.minimum(np.floor(weights / weights.sum() * span), kernel.FARTHEST)
    coarse = xp.empty((len(weights), len(numbers)), dtype=np.int16)
    margin = 1.0  # for the rounding of the exact distance's last bits
    for f, scale in enumerate(scales):
        column = numbers[:, f]
        missing = xp.isnan(column)
        above = column - (0.0 if missing.all() else column[~missing].min())
        step = scale / weights.sum() * span
        if step >= 16 and (xp.floor(above) == above)[~missing].all():
            step = np.floor(step)  # Whole numbers get whole steps: a little short, but nothing is cut off.
        fine = xp.where(missing, 0.0, above * step)
        whole = xp.minimum(xp.floor(fine), costs[f])
        cut = fine - whole
        margin += float(cut.max() - cut.min())
        coarse[f] = xp.where(missing, kernel.MISSING, whole)
    for c in range(codes.shape[1]):
        coarse[len(scales) + c] = xp.where(codes[:, c] < 0, kernel.MISSING, codes[:, c] % COARSE_CODES)
    return coarse, costs.astype(np.uint16), margin


def similar_first(coarse: Any, costs: Any, n_numbers: int, block: int, xp: Any = np) -> Any:
    """Order people so that each block holds similar people, by halving parts along their widest features."""
    n = coarse.shape[1]
    order, ends = xp.arange(n), np.array([0, n])
    while (sizes := np.diff(ends)).max() > block:
        low, half = ends[:-1], sizes // 2
        one = low[:, None] + np.arange(SAMPLE) * half[:, None] // SAMPLE
        ones, others = (coarse[:, order[xp.asarray(at)]] for at in (one, one + half[:, None]))
        apart = xp.abs(ones.astype(np.int32) - others)
        apart[n_numbers:] = (apart[n_numbers:] > 0) * xp.asarray(costs[n_numbers:, None, None], np.int32)
        widest = apart.sum(axis=2).argmax(axis=0)
        part = xp.searchsorted(xp.asarray(ends[1:]), xp.arange(n), side="right")
        by = (part << 16) + coarse[widest[part], order]
        order = order[xp.argsort(by, kind="stable")]
        middle = low + np.maximum(block, half // block * block)
        ends = np.sort(np.concatenate([ends, middle[sizes > block]]))
    return order


def places_of(order: Any, asked: Any, xp: Any = np) -> Any:
    """Return the positions of these people in the order."""
    places = xp.empty_like(order)
    places[order] = xp.arange(len(order))
    return places[asked]


def lay_out(coarse: Any, order: Any, block: int, group: int = 1, xp: Any = np) -> tuple[Any, Any, Any]:
    """Return the blocks (blocks, features, block) and their boxes: low and high (features, blocks).

    The number of blocks is a multiple of `group`. Places past the last person repeat that person; the search
    ignores them.
    """
    (n_features, n), whole = coarse.shape, block * group
    places = xp.minimum(xp.arange(-(-n // whole) * whole), n - 1)
    blocks = coarse[:, order[places]].reshape(n_features, -1, block)
    return xp.ascontiguousarray(blocks.swapaxes(0, 1)), blocks.min(axis=2), blocks.max(axis=2)


def on_cache_lines(array: Any) -> Any:
    """Return a copy that starts on a cache line: vectors that straddle two lines take a fifth longer."""
    room = np.empty(array.nbytes + 64, np.uint8)
    first = -room.ctypes.data % 64
    copy = room[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def together_of(coarse: Any, costs: Any, n_numbers: int) -> Flags:
    """Return at which features four can be added at once: same kind, none missing, no overflow."""
    whole = (coarse != kernel.MISSING).all(axis=1)
    n_features = len(costs)
    together = np.zeros(n_features, dtype=bool)
    for f in range(n_features - 3):
        alike = f >= n_numbers or f + 4 <= n_numbers
        room = costs[f : f + 4].sum(dtype=np.int64) + int(kernel.FARTHEST) <= 2**16 - 1
        together[f] = alike and room and whole[f : f + 4].all()
    return together
