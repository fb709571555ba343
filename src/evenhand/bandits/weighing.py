"""Each person's weight in training: the sample weight times the cost of an error about their label."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand import checks
from evenhand.arrays import Flags, Floats
from evenhand.bandits.kernels.structs import People
from evenhand.metrics.weights import check_weights
from evenhand.wording import listed


def weighed(people: People, sample_weight: Any, class_weight: Any, classes: Any) -> tuple[People, Flags]:
    """Return people with their weights, and a mask of who is kept: people with weight 0 are left out.

    Weights are scaled to mean 1, so their unit has no effect. Without weights, people stay as they are.
    """
    n_people = len(people.labels)
    everybody = np.ones(n_people, dtype=np.bool_)
    if sample_weight is None and class_weight is None:
        return people, everybody
    shares = np.ones(n_people) if sample_weight is None else check_weights(sample_weight, n_people)
    kept = shares > 0
    groups, labels, shares = people.groups[kept], people.labels[kept], shares[kept]
    costs = _costs(class_weight, np.asarray(classes).tolist(), np.bincount(labels, shares, len(classes)))
    weights = shares * costs[labels]
    _somebody_counts(class_weight, weights)
    return People(groups, labels, weights=weights / weights.mean(), shares=shares / shares.mean()), kept


def as_they_weigh(
    people: People, sample_weight: Any, class_weight: Any = None, classes: Any = ()
) -> tuple[People, Flags]:
    """Return people with weights as given, and a mask of who is kept: people with weight 0 are left out.

    The weights have mean 1 over all pieces of the data, of which these people are one.
    """
    if sample_weight is None:
        return as_they_cost(people, class_weight, classes), np.ones(len(people.labels), dtype=np.bool_)
    weights = check_weights(sample_weight, len(people.labels))
    kept = weights > 0
    weights = weights[kept]
    people = People(people.groups[kept], people.labels[kept], weights=weights, shares=weights)
    return as_they_cost(people, class_weight, classes), kept


def as_they_cost(people: People, class_weight: Any, classes: Any) -> People:
    """Return people whose weights are multiplied by the cost of an error about their label, as given.

    `fit` divides by the mean cost of all people. These are only a piece of them: dividing by its own mean
    would make the same error cost more in one piece than in another.
    """
    if class_weight is None:
        return people
    if isinstance(class_weight, str) and class_weight == "balanced":
        raise ValueError(
            "Got class_weight='balanced' for partial_fit, but one call can't tell how frequent each label is "
            "in all calls; expected a dict of costs, or None. From the labels of all people, "
            "sklearn.utils.class_weight.compute_class_weight computes balanced costs."
        )
    costs = _costs(class_weight, np.asarray(classes).tolist(), None)
    _somebody_counts(class_weight, costs)
    shares = people.shares if len(people.shares) else np.ones(len(people.labels))
    return people._replace(weights=shares * costs[people.labels], shares=shares)


def _somebody_counts(class_weight: Any, weights: Floats) -> None:
    if not weights.any():
        raise ValueError(f"Got class_weight={class_weight!r}, so nobody counts; expected some above 0.")


def _costs(class_weight: Any, labels: list[Any], people: Any) -> Floats:
    """Return the cost of an error about each label; 'balanced' gives all labels the same total cost."""
    if class_weight is None:
        return np.ones(len(labels))
    if not isinstance(class_weight, dict):
        if not isinstance(class_weight, str) or class_weight != "balanced":
            raise ValueError(
                f"Got class_weight={class_weight!r}, but expected None, 'balanced' or a dict of labels."
            )
        return np.asarray(people.sum() / (len(labels) * np.where(people > 0, people, np.inf)))
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise ValueError(
            f"Got {unknown[0]!r} in class_weight, but fit saw only the classes {listed(labels)}."
            f"{checks.did_you_mean(unknown[0], labels)}"
        )
    return np.array(
        [checks.number(f"class_weight[{label!r}]", class_weight.get(label, 1.0), low=0) for label in labels]
    )
