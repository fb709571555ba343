"""The outputs of networks by matrix products, fast enough for thousands of checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.arrays import Array, Codes
from evenhand.network import Network


class Frozen(NamedTuple):
    """Policies as they were at a checkpoint, to use them again later."""

    policies_: Network


def policies_of(model: Any) -> Network | None:
    """Return a model's policies if they are networks, one per group or one for all groups; else None."""
    policies = getattr(model, "policies_", None)
    return policies if isinstance(policies, Network) else None


def freeze(model: Any) -> Frozen | None:
    """Copy a model's policies, which is faster than predicting now; None if they are not networks."""
    policies = policies_of(model)
    return None if policies is None else Frozen(Network(*(part.copy() for part in policies)))


def logits(policies: Network, X: Any) -> Array:
    """Return the outputs of every group's policy before the softmax: (people, groups, actions).

    The groups' first layers are multiplied side by side as one layer, which is faster than a loop.
    """
    n_groups, n_features, n_hidden = policies.W1.shape
    beside = policies.W1.transpose(1, 0, 2).reshape(n_features, n_groups * n_hidden)
    hidden = X @ beside
    hidden += policies.b1.reshape(-1)
    np.maximum(hidden, 0, out=hidden)
    by_group = hidden.reshape(-1, n_groups, n_hidden)
    outputs = [by_group[:, g] @ policies.W2[g].T + policies.b2[g] for g in range(n_groups)]
    return np.stack(outputs, axis=1)


def own_decisions(policies: Network, members: Sequence[tuple[npt.NDArray[np.intp], Any]]) -> Codes:
    """Return each person's decision by their own group's policy only, half the work if there are two groups.

    `members` has the positions and the contexts of each group's members.
    """
    decided = np.empty(sum(len(who) for who, _ in members), dtype=np.int64)
    for g, (who, X) in enumerate(members):
        hidden = X @ policies.W1[g]
        hidden += policies.b1[g]
        np.maximum(hidden, 0, out=hidden)
        if len(policies.b2[g]) == 2:  # one product with the difference, without an argmax
            ahead, bar = policies.W2[g, 1] - policies.W2[g, 0], policies.b2[g, 0] - policies.b2[g, 1]
            decided[who] = hidden @ ahead > bar
        else:
            decided[who] = (hidden @ policies.W2[g].T + policies.b2[g]).argmax(axis=1)
    return decided
