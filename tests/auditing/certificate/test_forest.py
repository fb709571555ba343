"""Trees, and trees with networks: against every possible person, and with random trees and prices."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from evenhand import CooperativeBandits, CooperativeBoosting, CooperativeEnsemble, tabular
from evenhand.auditing.certificate import certify
from evenhand.auditing.certificate.climbing import any_people
from evenhand.auditing.certificate.consensus import bound_boxes
from evenhand.auditing.certificate.domain import possible_people
from evenhand.auditing.certificate.held import mixture
from evenhand.auditing.certificate.policies import Aim
from evenhand.auditing.certificate.tree import Tree
from evenhand.boosting.training import Boosted
from evenhand.boosting.trees import Trees, joined
from evenhand.network import Network

from .test_certify import everybody, largest, people_and_hired, possible
from .test_consensus import needed

SMALL = {"rounds": 15, "max_leaves": 5, "min_leaf": 5, "l2": 1.0}


def small(kind, weight=2.0):
    boosting = CooperativeBoosting(weight, **SMALL, random_state=0)
    if kind == "trees":
        return boosting
    bandits = CooperativeBandits(hidden=3, epochs=15)
    return CooperativeEnsemble(weight, share=0.4, bandits=bandits, boosting=boosting, random_state=0)


@pytest.mark.parametrize("kind", ["trees", "both"])
def test_a_certificate_is_what_asking_about_everybody_finds(kind):
    people, sex, hired = people_and_hired()
    model = tabular(small(kind)).fit(people, hired, sensitive_features=sex)
    found = certify(model, people, tolerance=1e-4)
    for worst, flips in ((found.worst, False), (found.flip, True)):
        true = largest(model, possible(people), flips=flips)
        assert worst.certified
        assert true - 1.1e-4 <= worst.gap <= true + 1e-9 <= worst.bound + 2e-6 <= true + 3e-4
    row = found.worst.person.to_frame().T
    for group, probability in found.worst.probabilities.items():
        assert model.predict_proba(row, sensitive_features=[group])[0, 1] == pytest.approx(probability)
    assert found.ranges["age"] == [18, 39]


@pytest.mark.parametrize("kind", ["trees", "both"])
def test_without_time_the_bound_still_holds(kind):
    people, sex, hired = people_and_hired()
    model = tabular(small(kind, 0.5)).fit(people, hired, sensitive_features=sex)
    found = certify(model, people, time_limit=0, tolerance=1e-6)
    assert found.worst.bound >= largest(model, possible(people))


def test_trees_take_categories_and_gaps_as_they_are():
    people, sex, hired = people_and_hired()
    gaps = np.random.default_rng(1).random(len(people)) < 0.3
    people["age"] = people["age"].astype(float).mask(gaps)
    hired = np.where(gaps, np.where(sex == "m", "yes", "no"), hired)  # of the missing, the sexes differ most
    model = small("trees").fit(people, hired, sensitive_features=sex)
    found = certify(model, people, tolerance=1e-4)
    ages = [*range(18, 40), np.nan]
    every = everybody({"age": ages, "grade": range(1, 6), "job": ["clerk", "cook", "smith"]})
    assert found.certified
    assert found.worst.gap == pytest.approx(largest(model, every), abs=1.1e-4)
    assert np.isnan(found.worst.person["age"])


def test_three_groups_and_numbers_that_are_not_whole():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-2, 2, 400), rng.integers(0, 3, 400)])
    s = rng.integers(0, 3, 400)
    y = X[:, 0] + X[:, 1] * (s - 1) > 0
    model = small("both").fit(X, y, sensitive_features=s)
    found = certify(model, X, tolerance=1e-3)
    numbers = np.linspace(X[:, 0].min(), X[:, 0].max(), 4001)
    said = model.probabilities_by_group(everybody({"x": numbers, "count": [0, 1, 2]}).to_numpy())[:, :, 1]
    true = (said.max(1) - said.min(1)).max()
    assert found.certified
    assert true - 1.1e-3 <= found.worst.gap <= found.worst.bound
    assert found.worst.bound >= true


def random_tree(rng, output, n_features):
    """Return a tree that splits numbers at random, and the third feature's categories by a set."""
    n = int(rng.integers(1, 6))
    left, right = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.int32)
    places = []
    for split in range(n):
        if split:
            side, at = places.pop(int(rng.integers(len(places))))
            side[at] = split
        places += [(left, split), (right, split)]
    for leaf, (side, at) in enumerate(places):
        side[at] = ~leaf
    feature = rng.integers(0, n_features, n).astype(np.int32)
    return Trees(
        root=np.zeros(1, dtype=np.int32), output=np.array([output], dtype=np.int32), feature=feature,
        threshold=rng.normal(size=n).astype(np.float32), nan_left=rng.random(n) < 0.5, left=left, right=right,
        set_start=np.arange(n, dtype=np.int32), set_words=(feature == 2).astype(np.int32),
        sets=rng.integers(0, 16, n).astype(np.uint32), leaf=rng.normal(size=n + 1),
    )  # fmt: skip


def random_policies(seed, share=0.6):
    """Return two policies of random trees and random networks, over two numbers and a category."""
    rng = np.random.default_rng(seed)
    trees = joined([random_tree(rng, at % 2, 3) for at in range(8)])
    boosted = Boosted(trees, rng.normal(size=1), np.array([[1.0, 1.0], [1.0, -1.0]]))

    class Fitted:
        """What a certificate reads of a model."""

        def __init__(self, policies):
            self.policies_ = policies

    model = Fitted(None)
    model.bandits_ = Fitted(
        Network(*(rng.normal(size=(2, *shape)) for shape in ((3, 3), (3,), (2, 3), (2,))))
    )
    model.boosting_, model.share = Fitted(boosted), share
    frame = pd.DataFrame({"x": [-1.5, 1.5], "count": [-2.0, 2.0], "job": ["a", "b"]})
    domain = possible_people(
        frame, {"x": "number", "count": "number", "job": "category"}, {"job": ["0", "1", "2"]}, {"count"}, {}
    )
    mixed = mixture(model, domain, lambda rows: np.nan_to_num(rows.astype(float).to_numpy(), nan=9.0))
    return mixed, mixed.two(0, 1), rng


def ends(domain):
    return (np.array([getattr(option, end) for option in domain.options]) for end in ("low", "high", "whole"))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), gap=st.sampled_from([0.0, 0.05, 0.6]), flips=st.booleans())
def test_whatever_the_prices_nobody_is_beyond_the_bound(seed, gap, flips):
    mixed, two, rng = random_policies(seed)
    low, high, whole = ends(mixed.domain)
    people = any_people(mixed.domain.first, low, high, whole, 300, rng)
    mixed.check(two, 0, people)
    u, v = two.logits(*people).T
    box = Tree(two, mixed.domain.first, low, high, whole).boxes
    box.prices[:] = rng.normal(size=box.prices.shape)
    box.tree_prices[:] = rng.normal(size=box.tree_prices.shape)
    box.tilt[:] = rng.normal(), rng.normal() if flips else 0, 0
    boundary = float(np.median(u)) if flips else np.nan
    column = int(rng.integers(3))  # of one column, only some values are possible
    values = np.arange(two.first[column], two.first[column + 1])
    keep = rng.random(len(values)) < 0.7
    keep[int(rng.integers(len(values)))] = True
    keep |= np.isin(two.option[values], two.option[values[keep]])  # both ends of a range
    box.allowed[0, values[~keep]] = False
    bound_boxes(two, Aim(gap, boundary), box, int(rng.integers(1, 4)), 0, 1)
    inside = people[0][:, np.unique(two.option[values[keep]])].any(1)
    if flips:
        inside &= (u >= boundary) & (v < boundary)
    beyond = u - v - needed((u + v) / 2, gap)
    assert (beyond[inside] <= box.excess[0] + 1e-6).all()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_splitting_ends_at_the_worst_of_random_trees(seed):
    mixed, two, _ = random_policies(seed, share=1.0)
    low, high, whole = ends(mixed.domain)
    tree = Tree(two, mixed.domain.first, low, high, whole)
    for _ in range(100):
        if tree.bound <= tree.found + 1e-4:
            break
        tree.grow(max(0.0, tree.found) + 1e-4)
    numbers = [option.low for option in mixed.domain.options]
    every = everybody({name: range(len(options)) for name, options in mixed.domain.columns.items()})
    chosen = np.zeros((len(every), len(numbers)), dtype=bool)
    chosen[np.arange(len(every))[:, None], every.to_numpy() + mixed.domain.first[:-1]] = True
    u, v = two.logits(chosen, np.tile(numbers, (len(every), 1))).T
    assert max(tree.found, 0.0) == pytest.approx(max((expit(u) - expit(v)).max(), 0.0), abs=2e-4)
