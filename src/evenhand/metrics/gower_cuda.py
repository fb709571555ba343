"""Gower's neighbours on a GPU: the CPU's coarse and exact distances, with one lane per person."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from evenhand.arrays import Codes, Floats
from evenhand.cuda import cupy
from evenhand.metrics.gower_coarse import coarsen, largest_span, lay_out, places_of, similar_first
from evenhand.metrics.gower_features import Features
from evenhand.metrics.gower_kernel import MISSING

BLOCK, GROUP = 64, 8  # people per box, and boxes that are checked together
WARP = 32
FARTHEST = 2**16 - 1  # the largest sum of all costs: no 16-bit sum overflows
ASKED_A_LAUNCH = 2**18  # keeps launches short: a screen may run on the same GPU
MOST_UNROLLED = 128  # loops over more features are not unrolled


class Packed(NamedTuple):
    """People as the kernel reads them, ordered so that similar people are together."""

    blocks: Any  # (boxes, features, BLOCK) coarse
    low: Any  # of boxes, (groups of boxes, features, GROUP)
    high: Any
    numbers: Any
    codes: Any
    weights: Any
    scales: Any
    order: Any
    source: str
    span: float
    margin: float
    all_weight: float


def pack(features: Features, scales: Floats, xp: Any = np) -> Packed:
    """Return people in boxes of similar people; `xp` is CuPy, or NumPy to inspect them without a GPU."""
    features = Features(xp.asarray(features.numbers), xp.asarray(features.codes), features.weights)
    span = min(largest_span(features.weights), float(FARTHEST))
    coarse, costs, margin = coarsen(features, scales, span, xp)
    order = similar_first(coarse, costs, len(scales), BLOCK, xp)
    blocks, *ends = lay_out(coarse, order, BLOCK, GROUP, xp)
    low, high = (xp.ascontiguousarray(end.reshape(len(costs), -1, GROUP).swapaxes(0, 1)) for end in ends)
    holed = (coarse == MISSING).any(axis=1)
    return Packed(
        blocks, low, high, features.numbers[order], features.codes[order], xp.asarray(features.weights),
        xp.asarray(scales), order.astype(np.int32), source_of(costs.tolist(), holed.tolist(), len(scales)),
        span, margin, float(features.weights.sum() * (1 + 1e-12)),
    )  # fmt: skip


def source_of(costs: list[int], holed: list[bool], n_numbers: int) -> str:
    """Return the kernel's source for features with these costs; `holed` are those with missing values."""
    listed = ["{" + ", ".join(str(int(one)) for one in each) + "}" for each in (costs, holed)]
    told = {
        "BLOCK": BLOCK, "FEATURES": len(costs), "NUMBERS": n_numbers, "COSTS": listed[0], "HOLED": listed[1],
        "UNROLLED": len(costs) if len(costs) <= MOST_UNROLLED else GROUP,
    }  # fmt: skip
    text = files(__package__).joinpath("gower.cu").read_text(encoding="utf-8")
    return "".join(f"#define {name} {value}\n" for name, value in told.items()) + text


@cache
def compiled(source: str) -> Any:
    """Return the compiled kernel; CuPy caches it on disk."""
    return cupy().RawModule(code=source, options=("--std=c++17", "--fmad=false")).get_function("nearest")


def numbers_of(people: Packed, first: int, asked: int, k: int) -> tuple[Any, ...]:
    """Return the kernel's scalar arguments."""
    sizes = (first, asked, len(people.order), len(people.blocks))
    reals = (people.span, people.margin, people.all_weight)
    return *map(np.int64, sizes), np.int32(k), *map(np.float64, reals)


def nearest(people: Packed, places: Any, k: int) -> tuple[Any, Any]:
    """Return the k nearest neighbours of the people at these places, and the distances: (k, places)."""
    cp, asked, kernel = cupy(), len(places), compiled(people.source)
    distances, found = cp.full((k, asked), np.inf), cp.zeros((k, asked), dtype=np.int32)
    for first in range(0, asked, ASKED_A_LAUNCH):
        warps = -(-min(ASKED_A_LAUNCH, asked - first) // WARP)
        told = (*people[:8], places, *numbers_of(people, first, asked, k), distances, found)
        kernel((warps,), (WARP,), told)
    return found, distances


def on_gpu(features: Features, scales: Floats, asked: Codes, k: int) -> tuple[Codes, Floats]:
    """Return the neighbours of the people at positions `asked`, and their distances."""
    cp = cupy()
    people = pack(features, scales, cp)
    places = places_of(people.order, cp.asarray(asked), cp)
    by_place = cp.argsort(places)
    found, distances = nearest(people, places[by_place].astype(np.int32), k)
    back = cp.argsort(by_place)
    return cp.asnumpy(found.T[back]).astype(np.int64), cp.asnumpy(distances.T[back])
