"""What a model's policies are made of: networks, boosted trees, or the mean of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand.arrays import Flags, Floats
from evenhand.auditing.certificate.domain import COMBINED, Domain, Encode, check_sums
from evenhand.auditing.certificate.forest import Forest
from evenhand.auditing.certificate.policies import TwoPolicies
from evenhand.auditing.certificate.splitting import Leaf, cut_where_trees_split, forest_of, leaves_of
from evenhand.network import Network


@dataclass(frozen=True)
class Mixture:
    """Networks and trees over the possible people; if there are no networks, they have no units."""

    domain: Domain  # with ranges cut where trees split
    encode: Encode
    networks: Network
    boosted: Any  # a Boosted, or None
    share: float  # of the trees in the logits
    trees: list[list[Leaf]]
    forest: list[Forest] = field(default_factory=list)  # what all groups' trees have in common, once known

    def two(self, one: int, other: int) -> TwoPolicies:
        """Return two groups' policies."""
        two = self.domain.two(self.encode, self.networks, one, other)
        if self.boosted is None:
            return two
        spread = self.share * self.boosted.spread[[one, other]]
        if not self.forest:
            self.forest.append(forest_of(self.trees, self.domain, two.first, two.option))
        adds = [leaf.adds * spread[:, leaf.output] for leaves in self.trees for leaf in leaves]
        return two._replace(
            weights=(1 - self.share) * two.weights,
            bias=(1 - self.share) * two.bias + self.share * self.boosted.base[0],
            forest=self.forest[0]._replace(adds=np.array(adds)),
        )

    def of_labels(self, one: int, other: int) -> Iterator[TwoPolicies]:
        """Return two groups' policies for each set of labels whose probability is compared.

        That of a set and that of all others differ as much: the first label is in no set. Two labels are one.
        """
        labels = self.networks.b2.shape[1]
        two = self.two(one, other)
        if labels == 2:
            yield two
            return
        both = [one, other]
        for number in range(1, 2 ** (labels - 1)):
            chosen = (2 * number >> np.arange(labels)) % 2 == 1
            outputs, biases = (part[both].astype(np.float64) for part in (self.networks.W2, self.networks.b2))
            yield two.with_labels(outputs, biases, chosen)

    def check(self, two: TwoPolicies, one: int, people: tuple[Flags, Floats]) -> None:
        """Raise unless what columns do, one by one, makes up what the first policy says of people."""
        if len(two.weights):
            check_sums(self.domain, self.encode, two, people, self.networks.W1[one].astype(np.float64))
        if self.boosted is not None:
            spread, features = self.boosted.spread[one], self.encode(self.domain.rows(*people))
            seen = spread @ self.boosted.trees.scores(features.astype(np.float32), len(spread))
            summed = two._replace(weights=0 * two.weights).logits(*people)[:, 0] - two.bias[0]
            if not np.allclose(self.share * seen, summed, atol=1e-9):
                raise ValueError(COMBINED)


def mixture(policies: Any, domain: Domain, encode: Encode) -> Mixture:
    """Return what a model's policies are made of."""
    networks, boosted = _parts(policies)
    if boosted is None:
        return Mixture(domain, encode, networks, None, 0.0, [])
    share = 1.0 if networks is None else float(policies.share)
    if networks is None:
        shapes = (policies.n_features_in_, 0), (0,), (2, 0), (2,)
        networks = Network(*(np.zeros((len(boosted.spread), *shape)) for shape in shapes))
    domain = cut_where_trees_split(domain, encode, boosted.trees)
    return Mixture(domain, encode, networks, boosted, share, leaves_of(domain, encode, boosted.trees))


def can_be_bounded(policies: Any) -> bool:
    """Return whether these are policies of several groups, made of networks or trees."""
    return hasattr(policies, "groups_") and _parts(policies) != (None, None)


def has_trees(policies: Any) -> bool:
    """Return whether some of the policies are made of trees."""
    return _parts(policies)[1] is not None


def _parts(policies: Any) -> tuple[Any, Any]:
    both = [getattr(policies, name, policies) for name in ("bandits_", "boosting_")]
    networks, boosted = (getattr(part, "policies_", None) for part in both)
    return networks if isinstance(networks, Network) else None, boosted if hasattr(boosted, "trees") else None
