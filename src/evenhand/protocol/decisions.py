"""What a model says of people, as members of every group: quickly enough for thousands of checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.metrics.response import takes_group
from evenhand.network import Network, softmax

Floats = npt.NDArray[np.floating[Any]]
Codes = npt.NDArray[np.int64]


def said_by_group(
    model: Any, X: Any, *, labels: npt.NDArray[Any], groups: npt.NDArray[Any], decisions_only: bool = False
) -> Floats:
    """Return what the model says of each person in every group: (people, groups, actions).

    These are probabilities; with `decisions_only` anything of which the largest is the decision. A model that
    gives no probabilities says 1 for its decision and 0 for the others; a model that is not told the group
    says the same for every group.

    Parameters
    ----------
    model : a fitted classifier
    X : its contexts
    labels, groups : sorted names of the actions and groups, in the order of the answer

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier().fit([[0], [1]], ["no", "yes"])
    >>> said_by_group(tree, [[1]], labels=np.array(["no", "yes"]), groups=np.array(["f", "m"])).tolist()
    [[[0.0, 1.0], [0.0, 1.0]]]
    """
    policies = getattr(model, "policies_", None)
    if isinstance(policies, Network):
        said = logits(policies, X)
        if said.shape[1] == 1:  # one policy for all
            said = np.repeat(said, len(groups), axis=1)
        return said if decisions_only else softmax(said.astype(np.float64))
    if hasattr(model, "probabilities_by_group"):
        return np.asarray(model.probabilities_by_group(X))
    if takes_group(model):
        people = X.shape[0]
        each = [_said(model, X, labels, {"sensitive_features": np.full(people, name)}) for name in groups]
        return np.stack(each, axis=1)
    return np.repeat(_said(model, X, labels, {})[:, None], len(groups), axis=1)


class Frozen(NamedTuple):
    """Policies as they were at a checkpoint: enough to say again what the model said then."""

    policies_: Network


def freeze(model: Any) -> Frozen | None:
    """Copy a model's policies, which is cheaper than asking them about the test part; None if it has none."""
    policies = getattr(model, "policies_", None)
    if not isinstance(policies, Network):
        return None
    return Frozen(Network(*(part.copy() for part in policies)))


def logits(policies: Network, X: Any) -> Floats:
    """Return every group's policy before the softmax, by matrix products: they beat a loop over people.

    The groups' first layers are one layer side by side.
    """
    n_groups, n_features, n_hidden = policies.W1.shape
    beside = policies.W1.transpose(1, 0, 2).reshape(n_features, n_groups * n_hidden)
    hidden = X @ beside
    hidden += policies.b1.reshape(-1)
    np.maximum(hidden, 0, out=hidden)
    by_group = hidden.reshape(-1, n_groups, n_hidden)
    outputs = [by_group[:, g] @ policies.W2[g].T + policies.b2[g] for g in range(n_groups)]
    return np.stack(outputs, axis=1)


def own_decisions(policies: Network, apart: Sequence[tuple[npt.NDArray[np.intp], Any]]) -> Codes:
    """Return everybody's decision by their own group's policy: half the work of asking both of two groups.

    `apart` has, for each group, who is in it and their contexts.
    """
    decided = np.empty(sum(len(who) for who, _ in apart), dtype=np.int64)
    for g, (who, X) in enumerate(apart):
        hidden = X @ policies.W1[g]
        hidden += policies.b1[g]
        np.maximum(hidden, 0, out=hidden)
        if len(policies.b2[g]) == 2:  # one product with the difference, and no argmax
            ahead, bar = policies.W2[g, 1] - policies.W2[g, 0], policies.b2[g, 0] - policies.b2[g, 1]
            decided[who] = hidden @ ahead > bar
        else:
            decided[who] = (hidden @ policies.W2[g].T + policies.b2[g]).argmax(axis=1)
    return decided


def _said(model: Any, X: Any, labels: npt.NDArray[Any], told: dict[str, Any]) -> Floats:
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X, **told))
    decided = np.asarray(model.predict(X, **told))
    return np.asarray((decided[:, None] == labels[None, :]).astype(np.float64))
