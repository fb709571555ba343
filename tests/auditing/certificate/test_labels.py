"""certify with more than two labels: against every possible person, and whatever boxes and tilts are."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from evenhand import CooperativeBandits, tabular
from evenhand.auditing.certificate import certify
from evenhand.auditing.certificate.climbing import any_people
from evenhand.auditing.certificate.consensus import bound_boxes_of_labels
from evenhand.auditing.certificate.policies import Aim
from evenhand.network import Network

from .test_certify import people_and_hired, possible
from .test_consensus import FIRST, HIGH, LOW, WHOLE, needed, policies, tree_of, within


def apart(said):
    """Return the largest total variation of any two groups' probabilities, (people, groups, labels)."""
    return max(
        np.abs(said[:, one] - said[:, other]).sum(1).max() / 2
        for one, other in product(range(said.shape[1]), repeat=2)
    )


def of_labels(rng, labels, similar):
    """Two policies of several labels, a random set of which is compared with the others."""
    two, hidden = policies(rng, similar=similar), 3
    outputs, biases = rng.normal(size=(labels, hidden)), rng.normal(size=labels)
    chosen = np.zeros(labels, dtype=bool)
    chosen[rng.permutation(labels)[: rng.integers(1, labels)]] = True
    noise = similar * rng.normal(size=(labels, hidden)), similar * rng.normal(size=labels)
    return two.with_labels(
        np.stack([outputs, outputs + noise[0]]), np.stack([biases, biases + noise[1]]), chosen
    )


@pytest.mark.parametrize("labels", [3, 4])
@pytest.mark.parametrize("seed", range(10))
def test_whatever_the_box_nobody_is_beyond_the_bound(seed, labels):
    rng = np.random.default_rng(seed)
    two = of_labels(rng, labels, float(rng.choice([0.01, 0.3, 2])))
    tree = tree_of(two)
    box = tree.boxes
    for _ in range(10):
        box.gap[:] = 1
        box.ends[0, :4] = np.sort(rng.uniform([[-1], [0]], [[2], [3]], (2, 2)), axis=1).ravel()
        box.allowed[0, 4:] = np.eye(3)[rng.integers(3)] + rng.integers(0, 2, 3) > 0
        box.states[:] = True
        box.states[0, rng.integers(len(two.plus)), rng.integers(2)] = False
        box.prices[:] = rng.normal(size=box.prices.shape)
        box.tilt[:] = rng.normal(), 0, 0
        low, high = LOW.copy(), HIGH.copy()
        low[:2], high[:2] = box.ends[0, [0, 2]], box.ends[0, [1, 3]]
        chosen, numbers = any_people(FIRST, low, high, WHOLE, 500, rng)
        u, v = two.logits(chosen, numbers).T
        counts = within(two, box, chosen, numbers)[:, 0]
        for gap in (0.01, 0.3):
            bound_boxes_of_labels(two, Aim(gap, np.nan, 0.0, 0.0, 0.0), box, rng.integers(1, 4), 0, 1)
            assert ((u - v - needed((u + v) / 2, gap))[counts] <= box.excess[0] + 1e-6).all()


def test_the_logit_of_a_set_is_of_its_probability():
    rng = np.random.default_rng(0)
    two = of_labels(rng, 4, 0.3)
    people = any_people(FIRST, LOW, HIGH, WHOLE, 50, rng)
    said = np.exp(two.said(two.units(*people)))
    shares = said[..., two.chosen].sum(2) / said.sum(2)
    assert np.allclose(expit(two.logits(*people)), shares)


@pytest.fixture(scope="module")
def graded():
    people, sex, _ = people_and_hired()
    points = people["age"] + 12 * (sex == "m") + 3 * people["grade"]
    grade = np.array(["low", "middle", "high"])[np.digitize(points, [35, 45])]
    model = tabular(CooperativeBandits(2.0, hidden=4, epochs=20, random_state=0))
    return model.fit(people, grade, sensitive_features=sex), people


def test_three_labels_are_what_asking_about_everybody_finds(graded):
    model, people = graded
    found = certify(model, people, tolerance=1e-3)
    said = model.probabilities_by_group(possible(people))
    assert found.certified
    assert apart(said) - 1.1e-3 <= found.worst.gap <= apart(said) + 1e-9 <= found.worst.bound + 2e-6
    row = pd.DataFrame([found.worst.person])
    for group, probability in found.worst.probabilities.items():
        label = list(model.classes_).index(found.label)
        assert model.predict_proba(row, sensitive_features=[group])[0, label] == pytest.approx(probability)
    flips = said[said[:, 0].argmax(1) != said[:, 1].argmax(1)]
    assert len(set(found.flip.decisions.values())) == 2
    assert found.flip.gap <= apart(flips) + 1e-9 <= found.flip.bound + 2e-6


@pytest.mark.parametrize("seed", range(3))
def test_bounds_of_random_policies_of_four_labels_hold(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (100, 1))
    model = CooperativeBandits(hidden=3, epochs=1, random_state=seed)
    model.fit(X, np.arange(100) % 4, sensitive_features=np.arange(100) // 4 % 2)
    model._training.policies = model.policies_ = Network(
        *(rng.normal(size=part.shape).astype(np.float32) for part in model.policies_)
    )
    found = certify(model, X, tolerance=2e-3, time_limit=600)
    said = model.probabilities_by_group(np.linspace(X.min(), X.max(), 2001)[:, None])
    assert found.certified
    assert apart(said) - 2.1e-3 <= found.worst.gap <= apart(said) + 1e-3
    assert found.worst.bound >= apart(said) - 1e-6
