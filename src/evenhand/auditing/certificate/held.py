"""What a certificate needs from a model: the networks and trees of its policies, and their columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from evenhand.arrays import Flags, Floats
from evenhand.auditing.certificate.domain import COMBINED, Domain, Encode, check_sums
from evenhand.auditing.certificate.forest import Forest
from evenhand.auditing.certificate.policies import TwoPolicies
from evenhand.auditing.certificate.splitting import Leaf, cut_where_trees_split, forest_of, leaves_of
from evenhand.auditing.predictions import check_is_model
from evenhand.frames import as_pandas
from evenhand.metrics.counts import positive_label
from evenhand.metrics.gower import as_frame
from evenhand.network import Network
from evenhand.tables.columns import CATEGORY, NUMBER
from evenhand.tables.matching import contexts_of, known_categories
from evenhand.tables.preprocessing import encode, told_missing

_LABELS = 6  # the most labels: every set of them is compared


@dataclass(frozen=True)
class Mixture:
    """Policies as networks and trees over the possible people; without networks, these have no units."""

    domain: Domain  # with ranges cut where trees split
    encode: Encode
    networks: Network
    boosted: Any  # a Boosted, or None
    share: float  # the trees' share of the logits
    trees: list[list[Leaf]]
    forest: list[Forest] = field(default_factory=list)  # what all groups' trees share; filled on first use

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

        A set and its complement differ by the same amount, so no set has the first label. With two labels,
        there is one set.
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
        """Raise unless the columns' separate contributions add up to the first policy's output for people."""
        if len(two.weights):
            check_sums(self.domain, self.encode, two, people, self.networks.W1[one].astype(np.float64))
        if self.boosted is not None:
            spread, features = self.boosted.spread[one], self.encode(self.domain.rows(*people))
            seen = spread @ self.boosted.trees.scores(features.astype(np.float32), len(spread))
            summed = two._replace(weights=0 * two.weights).logits(*people)[:, 0] - two.bias[0]
            if not np.allclose(self.share * seen, summed, atol=1e-9):
                raise ValueError(COMBINED)


def mixture(policies: Any, domain: Domain, encode: Encode) -> Mixture:
    """Return a model's policies as networks and trees."""
    networks, boosted = _parts(policies)
    if boosted is None:
        return Mixture(domain, encode, networks, None, 0.0, [])
    share = 1.0 if networks is None else float(policies.share)
    if networks is None:
        shapes = (policies.n_features_in_, 0), (0,), (2, 0), (2,)
        networks = Network(*(np.zeros((len(boosted.spread), *shape)) for shape in shapes))
    domain = cut_where_trees_split(domain, encode, boosted.trees)
    return Mixture(domain, encode, networks, boosted, share, leaves_of(domain, encode, boosted.trees))


def _parts(policies: Any) -> tuple[Any, Any]:
    """Return the networks and the trees of policies; None for those that they don't have."""
    both = [getattr(policies, name, policies) for name in ("bandits_", "boosting_")]
    networks, boosted = (getattr(part, "policies_", None) for part in both)
    return networks if isinstance(networks, Network) else None, boosted if hasattr(boosted, "trees") else None


class Held(NamedTuple):
    """What a certificate needs from a model."""

    policies: Any  # a CooperativeBandits or similar; not imported here, so that audits don't load it
    encode: Encode
    kinds: dict[str, str]
    categories: dict[str, list[Any]]
    gaps: set[str]
    contexts: pd.DataFrame | None
    threshold: float | None
    positive: int


def bounded_policies(model: Any, radius: float | None = None) -> Any:
    """Return the policies of a model; raise if they can't be bounded, or not within a radius."""
    check_is_model(model, "a certificate", "it covers people who are not in the table")
    policies = model
    if _preprocessor(model) is not None:  # a Deployed or tabular model
        policies = getattr(model, "model", getattr(model, "estimator_", model))
    networks, boosted = _parts(policies)
    if not hasattr(policies, "groups_") or (networks is None and boosted is None):
        raise TypeError(
            f"Got {type(policies).__name__}, but expected a fitted CooperativeBandits, CooperativeBoosting "
            "or CooperativeEnsemble, or a Deployed or tabular model around one: only their policies can be "
            "bounded."
        )
    labels = len(policies.classes_)
    most = _LABELS if boosted is None else 2
    if not 2 <= labels <= most:
        raise ValueError(
            f"Got a model of {labels} labels, but a certificate takes 2, or of networks up to {_LABELS}."
        )
    if radius is not None and boosted is not None:
        raise ValueError(
            "Got a radius for policies with trees, but a radius is only possible for networks. `evenhand fit "
            "--policies networks` makes them."
        )
    return policies


def held_by(model: Any, X: Any, radius: float | None = None) -> Held:
    """Return what a certificate needs from a model; raise if it can't be bounded."""
    policies = bounded_policies(model, radius)
    labels = policies.classes_.tolist()
    positive = positive_label(labels, getattr(model, "pos_label", None))
    threshold, frame = getattr(model, "threshold", None), None if X is None else as_pandas(X)
    about = threshold, 1 if positive is None else positive
    prepared = _preprocessor(model)
    if prepared is None:
        if frame is None:
            raise ValueError(
                f"Got no X, but a bare {type(policies).__name__} needs it: the columns' ranges are X's."
            )
        return _bare(policies, as_frame(_dense(frame) if sparse.issparse(frame) else frame), *about)
    kinds = getattr(model, "columns", None) or model.columns_
    contexts = None if frame is None else contexts_of(frame, kinds, prepared)
    categories = {
        name: list(dict.fromkeys(known_categories(prepared, name).values()))
        for name, kind in kinds.items()
        if kind == CATEGORY
    }
    return Held(
        policies, lambda rows: _dense(encode(prepared, rows)), kinds, categories, told_missing(prepared),
        contexts, *about,
    )  # fmt: skip


def _preprocessor(model: Any) -> Any:
    return getattr(model, "preprocessor", getattr(model, "preprocessor_", None))


def _bare(policies: Any, table: pd.DataFrame, threshold: float | None, positive: int) -> Held:
    """Return what is needed from a model that takes people's columns as they are."""
    table = table.rename(columns=str)
    words = getattr(policies, "categories_", None)
    if words is None:  # networks take numbers, and no missing values
        kinds = dict.fromkeys(table.columns, NUMBER)
        return Held(
            policies, lambda rows: rows.to_numpy(np.float64), kinds, {}, set(), table, threshold, positive
        )
    from evenhand.boosting.columns import as_numbers

    table = table.assign(**{name: table[name].map(str) for name in words})
    kinds = {name: CATEGORY if name in words else NUMBER for name in table.columns}
    return Held(
        policies, lambda rows: as_numbers(rows, words).to_numpy(np.float64), kinds,
        {name: known.tolist() for name, known in words.items()},
        {name for name, kind in kinds.items() if kind == NUMBER and table[name].isna().any()},
        table, threshold, positive,
    )  # fmt: skip


def _dense(features: Any) -> Floats:
    dense = features if isinstance(features, np.ndarray) else features.toarray()
    return np.asarray(dense, dtype=np.float64)
