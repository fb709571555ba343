"""Pads policies with hidden units of zero weight, so that the loops work on whole vectors.

A unit whose weights are all zero has no output and no gradient, so no optimiser changes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from evenhand.bandits.kernels import layers, loop
from evenhand.bandits.kernels.simd import LANES
from evenhand.bandits.kernels.structs import Moments
from evenhand.bandits.kernels.subnormal import flushed_to_zero
from evenhand.network import Network

_BUFFERS = Moments._fields[:3]


@contextmanager
def padded(policies: Network, moments: Moments) -> Iterator[tuple[Network, Moments]]:
    """Yield padded policies and moments for the loops; on exit, copy the results back to the originals."""
    buffers: dict[str, Any] = {name: _wide(getattr(moments, name)) for name in _BUFFERS}
    wide = _wide(policies), moments._replace(**buffers)
    yield wide
    for own, filled in ((policies, wide[0]), *zip(moments[:3], wide[1][:3], strict=True)):
        for part, there in zip(own, filled, strict=True):
            if part is not there:
                part[...] = there[tuple(map(slice, part.shape))]


def train(policies: Network, moments: Moments, *others: Any) -> int:
    """Do what `loop.train` does, for policies and moments of any width, in place."""
    rates = others[3].rates
    pair = True if policies.W2.shape[:2] == (2, 2) and rates.shape[1:] == (2, 3, 2) else None
    with padded(policies, moments) as (wide, wide_moments), flushed_to_zero():
        return int(loop.train(wide, wide_moments, _room(wide), *others, pair=pair))


def probabilities(policies: Network, rows: Any, out: Any) -> None:
    """Fill out[person, group, action] with every policy's probabilities."""
    layers.probabilities(*_wide(policies), rows, out)


def _room(policies: Network) -> loop.Scratch:
    """Return scratch arrays for one step."""
    kind, (n_groups, n_actions, width) = policies.b1.dtype, policies.W2.shape
    return loop.Scratch(
        hidden=np.zeros((n_groups, width), kind), logits=np.zeros((n_groups, n_actions), kind),
        back=np.zeros(width, kind), said=np.zeros((n_groups, n_actions)),
        logs=np.zeros((n_groups, n_actions)), rewards=np.zeros(n_actions), untold=np.zeros(n_actions),
        gradient=np.zeros(n_actions), draws=np.zeros(n_groups, np.int64),
    )  # fmt: skip


def _wide(network: Network) -> Network:
    """Return a network whose last axes fill whole vectors; arrays that already do are not copied."""
    return Network(*(_filled(part) for part in network))


def _filled(part: Any) -> Any:
    lacking = -part.shape[-1] % LANES
    if not lacking:
        return part
    # Not np.pad: it takes longer than the prediction for one person.
    wide = np.zeros((*part.shape[:-1], part.shape[-1] + lacking), part.dtype)
    wide[..., : part.shape[-1]] = part
    return wide
