"""The compiled half of Gower's neighbours: a coarse distance finds candidates, an exact distance ranks them.

The coarse distance uses 16-bit integers, so the processor compares many people at a time. It is precise for
near people and stops at FARTHEST. It never exceeds the exact distance by more than a known margin, so nobody
whom it rules out is a neighbour.
People are stored in blocks of similar people. A block is skipped if even its bounding box is too far.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.arrays import Flags, Floats
from evenhand.jit import jit

BLOCK = 256
STAGE = 8  # The number of features between two checks whether a block can still hold a neighbour.
TILE = 32  # The number of queries that share a block while it is in the first-level cache.
MISSING = -1
FARTHEST = np.uint16(32767)  # Twice this fits into 16 bits: sums are clipped after each feature.

Integers = npt.NDArray[np.integer[Any]]


@jit(error_model="python")
def box_distances(
    query: Integers, low: Integers, high: Integers, costs: Integers, n_numbers: int, out: Integers
) -> None:
    """Write the smallest coarse distance from the query to anybody in each box."""
    out[:] = 0
    for f in range(low.shape[0]):
        value, cost = query[f], costs[f]
        if value == MISSING:
            continue
        lows, highs = low[f], high[f]
        for b in range(len(out)):
            nearest = min(max(value, lows[b]), highs[b])
            if lows[b] == MISSING:
                continue
            if f < n_numbers:
                apart = np.uint16(max(value, nearest) - min(value, nearest))
                out[b] = min(np.uint16(out[b] + apart), FARTHEST)
            elif nearest != value:
                out[b] = min(np.uint16(out[b] + cost), FARTHEST)


@jit(error_model="python")
def coarse_distances(
    query: Integers,
    block: Integers,
    costs: Integers,
    together: Flags,
    n_numbers: int,
    limit: int,
    out: Integers,
) -> bool:
    """Write the coarse distance to each person in a block; return False once all are beyond the limit.

    `together[f]` is true if features f to f + 3 are of the same kind, never missing, and can be added without
    overflow. Adding four at a time needs a quarter of the loads and stores.
    """
    out[:] = 0
    n_features = len(costs)
    f = 0
    since = 0
    while f < n_features:
        value, cost, column = query[f], costs[f], block[f]
        # The loops are separate so that each compiles to vector instructions without a branch.
        if together[f] and f < n_numbers:
            v1, v2, v3 = query[f + 1], query[f + 2], query[f + 3]
            c1, c2, c3 = block[f + 1], block[f + 2], block[f + 3]
            for j in range(BLOCK):
                apart = np.uint16(max(value, column[j]) - min(value, column[j]))
                apart = np.uint16(apart + np.uint16(max(v1, c1[j]) - min(v1, c1[j])))
                apart = np.uint16(apart + np.uint16(max(v2, c2[j]) - min(v2, c2[j])))
                apart = np.uint16(apart + np.uint16(max(v3, c3[j]) - min(v3, c3[j])))
                out[j] = min(np.uint16(out[j] + apart), FARTHEST)
        elif together[f]:
            v1, v2, v3 = query[f + 1], query[f + 2], query[f + 3]
            c1, c2, c3 = block[f + 1], block[f + 2], block[f + 3]
            k1, k2, k3 = costs[f + 1], costs[f + 2], costs[f + 3]
            for j in range(BLOCK):
                apart = cost if column[j] != value else np.uint16(0)
                apart = np.uint16(apart + (k1 if c1[j] != v1 else np.uint16(0)))
                apart = np.uint16(apart + (k2 if c2[j] != v2 else np.uint16(0)))
                apart = np.uint16(apart + (k3 if c3[j] != v3 else np.uint16(0)))
                out[j] = min(np.uint16(out[j] + apart), FARTHEST)
        elif f < n_numbers and value != MISSING:
            for j in range(BLOCK):
                apart = np.uint16(max(value, column[j]) - min(value, column[j]))
                apart = apart if column[j] >= 0 else np.uint16(0)
                out[j] = min(np.uint16(out[j] + apart), FARTHEST)
        elif value != MISSING:
            for j in range(BLOCK):
                apart = cost if (column[j] != value) & (column[j] >= 0) else np.uint16(0)
                out[j] = min(np.uint16(out[j] + apart), FARTHEST)
        step = 4 if together[f] else 1
        f += step
        since += step
        if since < STAGE and f < n_features:
            continue
        since = 0
        nearest = FARTHEST
        for j in range(BLOCK):
            nearest = min(nearest, out[j])
        if nearest > limit:
            return False
    return True


@jit(error_model="python")
def exact_distance(
    numbers: Floats, codes: Integers, weights: Floats, scales: Floats, i: int, j: int, enough: float
) -> float:
    """Return Gower's distance between two people over the features that both have; 1.0 if they share none.

    It is infinite if the differences in numbers already add up to more than `enough`.
    """
    total, weight = 0.0, 0.0
    n_numbers = len(scales)
    for f in range(n_numbers):
        apart = abs(numbers[i, f] - numbers[j, f])
        if apart == apart:  # not NaN
            total += np.rint(apart * scales[f])
            weight += weights[f]
            if total > enough:
                return np.inf
    for c in range(codes.shape[1]):
        if codes[i, c] != MISSING and codes[j, c] != MISSING:
            weight += weights[n_numbers + c]
            if codes[i, c] != codes[j, c]:
                total += weights[n_numbers + c]
    return total / weight if weight > 0 else 1.0


@jit(error_model="python")
def between(
    numbers: Floats, codes: Integers, weights: Floats, scales: Floats, ones: Integers, others: Integers
) -> npt.NDArray[np.float32]:
    """Return Gower's distance from each of these people to each of the others."""
    found = np.empty((len(ones), len(others)), np.float32)
    for a in range(len(ones)):
        for b in range(len(others)):
            found[a, b] = exact_distance(numbers, codes, weights, scales, ones[a], others[b], np.inf)
    return found


@jit(error_model="python")
def farthest_neighbour(
    numbers: Floats,
    codes: Integers,
    weights: Floats,
    scales: Floats,
    people: Integers,
    others: Integers,
    k: int,
) -> float:
    """Return the largest distance from any of these people to their k-th nearest among the others."""
    farthest = 0.0
    distance = np.empty(len(others))
    for i in people:
        for at in range(len(others)):
            j = others[at]
            distance[at] = exact_distance(numbers, codes, weights, scales, i, j, np.inf) if i != j else np.inf
        farthest = max(farthest, np.sort(distance)[k - 1])
    return farthest


@jit(error_model="python")
def search(
    numbers: Floats,
    codes: Integers,
    weights: Floats,
    scales: Floats,
    costs: Integers,
    together: Flags,
    margin: float,
    span: float,
    blocks: Integers,
    low: Integers,
    high: Integers,
    order: Integers,
    places: Integers,
    k: int,
) -> tuple[Integers, Floats]:
    """Return the k nearest neighbours of the people at these places of the order, and their distances.

    The nearest come first; equal distances are ordered by index. `span` is the coarse length of distance 1.
    """
    n_blocks, n_features, _ = blocks.shape
    n_numbers, n, n_queries = len(scales), len(order), len(places)
    who = np.full((n_queries, k), n, np.int64)
    distance = np.full((n_queries, k), np.inf)
    limits = np.empty(TILE, np.int64)
    queries = np.empty((TILE, n_features), np.int16)
    to_box = np.empty((TILE, n_blocks), np.uint16)
    out = np.empty(BLOCK, np.uint16)
    all_weight = weights.sum() * (1 + 1e-12)
    for start in range(0, n_queries, TILE):
        tile = min(TILE, n_queries - start)
        for t in range(tile):
            place = places[start + t]
            queries[t] = blocks[place // BLOCK, :, place % BLOCK]
            limits[t] = FARTHEST
            box_distances(queries[t], low, high, costs, n_numbers, to_box[t])
        home = places[start] // BLOCK
        for visit in range(n_blocks):
            # The home block comes first: finding near people early makes the limit tight early.
            b = home if visit == 0 else (visit - 1 if visit <= home else visit)
            for t in range(tile):
                if to_box[t, b] > limits[t]:
                    continue
                if not coarse_distances(queries[t], blocks[b], costs, together, n_numbers, limits[t], out):
                    continue
                i = order[places[start + t]]
                nearest, near = distance[start + t], who[start + t]
                for at in range(min(BLOCK, n - b * BLOCK)):
                    j = order[b * BLOCK + at]
                    if out[at] > limits[t] or j == i or (nearest[k - 1] == 0 and j > near[k - 1]):
                        continue
                    d = exact_distance(numbers, codes, weights, scales, i, j, nearest[k - 1] * all_weight)
                    p = k
                    while p > 0 and (d < nearest[p - 1] or (d == nearest[p - 1] and j < near[p - 1])):
                        p -= 1
                    if p == k:
                        continue
                    for shift in range(k - 1, p, -1):
                        nearest[shift], near[shift] = nearest[shift - 1], near[shift - 1]
                    nearest[p], near[p] = d, j
                    if nearest[k - 1] <= 1:
                        limits[t] = np.int64(min(nearest[k - 1] * span + margin, float(FARTHEST)))
    return who, distance
