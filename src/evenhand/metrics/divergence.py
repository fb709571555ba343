"""Divergences between action distributions: how differently two policies treat the same context.

All take arrays whose last axis runs over the actions, broadcast like NumPy, and reduce that axis. Logarithms
are natural; their arguments are clipped at 1e-12, so a probability of 0 never gives infinity or NaN.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from evenhand.arrays import Array
from evenhand.checks import one_of

Divergence = Callable[[npt.ArrayLike, npt.ArrayLike], Array]

SMALLEST = 1e-12


def kl(p: npt.ArrayLike, q: npt.ArrayLike) -> Array:
    """Return the Kullback–Leibler divergence KL(p ‖ q), in nats; at most -log(1e-12), about 27.6.

    Examples
    --------
    >>> kl([[0.5, 0.5], [1.0, 0.0]], [0.5, 0.5]).round(4).tolist()
    [0.0, 0.6931]
    """
    p, q = _distributions(p, q)
    ratio = np.log(np.maximum(p, SMALLEST)) - np.log(np.maximum(q, SMALLEST))
    # Clipping can make the sum of q slightly more than one, and the divergence slightly negative.
    return np.asarray(np.maximum(np.sum(p * ratio, axis=-1), 0.0))


def jensen_shannon(p: npt.ArrayLike, q: npt.ArrayLike) -> Array:
    """Return the Jensen–Shannon divergence, in nats: symmetric, from 0 to log 2 (not its square root).

    Examples
    --------
    >>> float(jensen_shannon([1.0, 0.0], [0.0, 1.0]).round(4))
    0.6931
    """
    p, q = _distributions(p, q)
    middle = (p + q) / 2
    return np.asarray((kl(p, middle) + kl(q, middle)) / 2)


def total_variation(p: npt.ArrayLike, q: npt.ArrayLike) -> Array:
    """Return the total variation distance, half the L1 distance: from 0 to 1.

    Examples
    --------
    >>> float(total_variation([0.7, 0.3], [0.4, 0.6]).round(4))
    0.3
    """
    p, q = _distributions(p, q)
    return np.asarray(np.abs(p - q).sum(axis=-1) / 2)


def hellinger(p: npt.ArrayLike, q: npt.ArrayLike) -> Array:
    """Return the Hellinger distance: from 0 to 1.

    Examples
    --------
    >>> float(hellinger([1.0, 0.0], [0.5, 0.5]).round(4))
    0.5412
    """
    p, q = _distributions(p, q)
    return np.asarray(np.sqrt(np.square(np.sqrt(p) - np.sqrt(q)).sum(axis=-1) / 2))


DIVERGENCES: dict[str, Divergence] = {
    "kl": kl,
    "jensen_shannon": jensen_shannon,
    "total_variation": total_variation,
    "hellinger": hellinger,
}


def divergence(name: str) -> Divergence:
    """Return the divergence with this name; the error for an unknown name suggests the nearest.

    Examples
    --------
    >>> divergence("total_variation") is total_variation
    True
    """
    return DIVERGENCES[one_of("divergence", name, DIVERGENCES)]


def _distributions(p: npt.ArrayLike, q: npt.ArrayLike) -> tuple[Array, Array]:
    p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    if p.ndim == 0 or q.ndim == 0 or p.shape[-1] != q.shape[-1]:
        raise ValueError(
            f"Got distributions of shapes {p.shape} and {q.shape}, but expected equal last axes (actions)."
        )
    return p, q
