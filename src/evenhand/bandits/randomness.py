"""Counter-based random numbers: for the same seed, every engine and any number of threads get the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.jit import jit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ / golden ratio: spreads consecutive counters
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(11)
_ONE = np.uint64(1)


@jit(inline="always")
def scramble(seed: int, counter: int) -> Any:
    """Return 64 well-mixed bits for a seed and a counter (SplitMix64's finaliser)."""
    x = np.uint64(seed) + (np.uint64(counter) + _ONE) * _GOLDEN
    x = (x ^ (x >> _S30)) * _MIX_1
    x = (x ^ (x >> _S27)) * _MIX_2
    return x ^ (x >> _S31)


@jit(inline="always")
def uniform(seed: int, step: int, stream: int) -> Any:
    """Return a number in [0, 1) for a step; the streams of a step are independent.

    >>> round(uniform(0, 1, 0), 6), round(uniform(0, 1, 1), 6)
    (0.701212, 0.215868)
    """
    bits = scramble(scramble(seed, stream), step)
    return np.float64(bits >> _S11) * (1.0 / 9007199254740992.0)


@jit()
def shuffle_of(n: int, key: int) -> Any:
    """Return the parameters that `walk` needs for the permutation of 0 … n-1 with this key."""
    width = 1
    while (1 << width) < n:
        width += 1
    mask, shift = np.uint64((1 << width) - 1), np.uint64((width + 1) // 2)
    return np.uint64(n), mask, shift, scramble(key, 0), scramble(key, 1), scramble(key, 2), scramble(key, 3)


@jit(inline="always")
def walk(position: int, shuffle: Any) -> Any:
    """Return the element at `position` of a permutation, without storing the permutation.

    Each round is a bijection of the w-bit words. Rounds repeat until the word is below n.
    """
    n, mask, shift = shuffle[0], shuffle[1], shuffle[2]
    x = np.uint64(position)
    while True:
        for bits in shuffle[3:]:
            x = (x ^ bits) & mask
            x = (x * ((bits >> _S30) | _ONE)) & mask  # an odd factor: invertible modulo 2^w
            x = x ^ (x >> shift)
        if x < n:
            return np.int64(x)


@jit()
def shuffled(position: int, n: int, key: int) -> Any:
    """Return the element at `position` of the permutation of 0 … n-1 with this key.

    >>> sorted(shuffled(i, 10, 7) for i in range(10))
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    return walk(position, shuffle_of(n, key))
