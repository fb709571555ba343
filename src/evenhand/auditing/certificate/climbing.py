"""Random people to start from, and the search for worse people, which changes one column at a time."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np

from evenhand.arrays import Codes, Flags, Floats


def climb(
    tree: Any, chosen: Flags, numbers: Floats, *, until: float, who: Any = None, sweeps: int = 5,
    points: int = 9,
) -> None:  # fmt: skip
    """Make people worse, one column at a time and within a time limit, and offer the worst to the tree.

    `who` are the real people whom they have to stay near.
    """
    best = tree.score(chosen, numbers)
    for _ in range(sweeps):
        before = best.copy()
        for column, (begin, end) in enumerate(pairwise(tree.first.tolist())):
            if time.monotonic() > until:
                break
            many = max(2, points // (end - begin))
            for option, (low, high, able) in enumerate(tree.reach(who, chosen, numbers, column), begin):
                for part in np.linspace(0, 1, many if tree.high[option] > tree.low[option] else 1):
                    value = low + part * (high - low)
                    other, amounts = chosen.copy(), numbers.copy()
                    other[:, begin:end] = False
                    other[:, option] = True
                    amounts[:, option] = np.round(value) if tree.whole[option] else value
                    score = tree.score(other, amounts)
                    better = (score > best) & able
                    chosen[better], numbers[better] = other[better], amounts[better]
                    best[better] = score[better]
        if (best <= before + 1e-9).all():
            break
    at = int(best.argmax())
    if best[at] > 0:
        tree.offer(float(best[at]), chosen[at], numbers[at])


def any_people(
    first: Codes, low: Floats, high: Floats, whole: Flags, count: int, rng: np.random.Generator
) -> tuple[Flags, Floats]:
    """Draw possible people at random: an option for each column, and a number in each range."""
    chosen = np.zeros((count, len(low)), dtype=np.bool_)
    for begin, end in pairwise(first):
        chosen[np.arange(count), rng.integers(begin, end, count)] = True
    numbers = rng.uniform(low, high, chosen.shape)
    return chosen, np.where(whole, np.round(numbers), numbers)
