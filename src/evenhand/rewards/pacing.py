"""How fast the prices of bounded rates may move where a group is small."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.arrays import Floats

FULL_PACE = 2.5  # a group with 1/2.5 of an equal share, or more, needs no slower prices


def pace(group_sizes: npt.ArrayLike) -> Floats:
    """Return how fast each group's prices may move: 1, or less for a group that is rarely met.

    A small group's rate tells late what a price did, and its price weighs more; both by 1/share. Prices that
    rose as fast as those of a large group would be far too high by then, and everybody in the small group
    would get the same decision. Of two groups, a fifth of the people is enough for full pace; a group of
    which nobody was met yet slows nothing.

    >>> pace([800, 200]), pace([980, 20]), pace([10, 0])
    (array([1., 1.]), array([1. , 0.1]), array([1., 1.]))
    """
    sizes = np.asarray(group_sizes, dtype=np.float64)
    shares = FULL_PACE * len(sizes) * sizes / max(sizes.sum(), 1.0)
    return np.where(sizes > 0, np.minimum(shares, 1.0), 1.0)
