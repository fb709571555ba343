"""certify with a radius: against every possible person near a real one, where they can be listed."""

import numpy as np
import pandas as pd
import pytest

from evenhand import CooperativeBandits, audit, tabular
from evenhand.auditing.certificate import certify
from evenhand.metrics.gower import gower_distances
from evenhand.network import Network

from .test_certify import everybody, largest, people_and_hired


def distances(people, others):
    """Return Gower's distances from people to others, (people, others), by the library's own function."""
    both = gower_distances(pd.concat([people, others], ignore_index=True))
    return both(np.arange(len(people)), len(people) + np.arange(len(others)))


@pytest.fixture(scope="module")
def some():
    """A model, 40 people of whom some lack their age, and everybody possible."""
    people, sex, hired = people_and_hired()
    people["age"] = people["age"].astype(float).mask(np.arange(len(people)) % 7 == 0)
    model = tabular(CooperativeBandits(2.0, hidden=4, epochs=20, random_state=0)).fit(
        people, hired, sensitive_features=sex
    )
    real = people.iloc[:40].reset_index(drop=True)
    ages = [*np.arange(real["age"].min(), real["age"].max() + 1), np.nan]
    grades = range(real["grade"].min(), real["grade"].max() + 1)
    return model, real, everybody({"age": ages, "grade": grades, "job": ["clerk", "cook", "smith"]})


@pytest.mark.parametrize("radius", [0.01, 0.1, 0.3, 1])
def test_a_certificate_is_what_asking_about_everybody_near_finds(some, radius):
    model, real, every = some
    near = every[distances(every, real).min(1) <= radius + 1e-6]
    found = certify(model, real, radius=radius, tolerance=1e-4)
    for worst, flips in ((found.worst, False), (found.flip, True)):
        true = largest(model, near, flips=flips)
        assert worst.certified
        assert true - 1.1e-4 <= worst.gap <= true + 1e-9 <= worst.bound + 2e-6 <= true + 3e-4
        person, alike = (pd.DataFrame([row]).infer_objects() for row in (worst.person, worst.near))
        apart = distances(pd.concat([person, alike], ignore_index=True), real)
        assert apart[1].min() == 0
        assert apart[0].min() <= radius + 1e-6
    assert found.radius == radius


def test_ranges_and_a_radius_leave_those_within_both(some):
    model, real, every = some
    found = certify(model, real, radius=0.1, ranges={"age": (30, 39), "job": ["cook"]}, tolerance=1e-4)
    near = every[distances(every, real).min(1) <= 0.1 + 1e-6]
    inside = (near["age"].between(30, 39) | near["age"].isna()) & (near["job"] == "cook")
    assert found.worst.gap == pytest.approx(largest(model, near[inside]), abs=2e-4)
    cooks = real[(real["job"] == "cook") & real["age"].notna()]
    nobody = certify(model, cooks, radius=0.01, ranges={"job": ["clerk"]})
    assert nobody.worst.person is None
    assert nobody.worst.bound == 0


@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_near_people_for_random_policies(seed):
    """Any weights; numbers that are not whole, checked at many points."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-2, 2, 30), rng.uniform(0, 3, 30)])
    model = CooperativeBandits(hidden=3, epochs=1, random_state=seed)
    model.fit(X, np.arange(30) % 2, sensitive_features=np.arange(30) // 2 % 2)
    model._training.policies = model.policies_ = Network(
        *(rng.normal(scale=1, size=part.shape).astype(np.float32) for part in model.policies_)
    )
    found = certify(model, X, radius=0.05, tolerance=1e-3, time_limit=600)
    grid = [np.linspace(low, high, 121) for low, high in zip(X.min(0), X.max(0), strict=True)]
    every = np.stack(np.meshgrid(*grid), axis=2).reshape(-1, 2)
    near = (np.abs(every[:, None] - X) / np.ptp(X, axis=0)).mean(2).min(1) <= 0.05
    said = model.probabilities_by_group(every)[:, :, 1]
    gaps = np.abs(said[:, 0] - said[:, 1])
    assert near.mean() < 0.6
    assert found.certified
    assert gaps[near].max() - 1e-6 <= found.worst.bound <= gaps[near].max() + 0.03
    at = found.worst.person.to_numpy(dtype=float)
    assert (np.abs(at - X) / np.ptp(X, axis=0)).mean(1).min() <= 0.05 + 1e-9


def test_without_time_the_bound_near_people_still_holds(some):
    model, real, every = some
    found = certify(model, real, radius=0.1, time_limit=0, tolerance=1e-6)
    assert found.worst.bound >= largest(model, every[distances(every, real).min(1) <= 0.1])


def test_an_audit_says_whom_the_worst_person_is_near(some, tmp_path):
    model, real, _ = some
    sex = np.resize(["f", "m"], len(real))
    asked = {"radius": 0.1, "time_limit": 10}
    found = audit(model, real, None, sensitive_features=sex, n_bootstrap=2, certify=asked)
    assert "within 0.1 of a real person, the worst found" in found.summary()
    assert "The nearest real person differs in" in found.summary()
    told = found.to_dict()["worst"]
    assert told["radius"] == 0.1
    assert set(told["worst"]["near"]) == {"age", "grade", "job"}
    page = found.to_html(tmp_path / "audit.html").read_text(encoding="utf-8")
    assert "Only people within 0.1 (Gower distance) of a real person are counted." in page
    assert "nearest real person differs in" in page


def test_a_radius_needs_real_people(some):
    model, *_ = some
    with pytest.raises(ValueError, match="Got a radius but no X, but expected the real people"):
        certify(model, ranges={"age": (18, 39), "grade": (1, 5)}, radius=0.1)
    with pytest.raises(ValueError, match="Got radius=0, but expected a finite number above 0"):
        certify(model, radius=0)


@pytest.mark.parametrize("radius", [None, 0.05])
def test_few_questions_find_the_fewest_digits_of_many_numbers(radius, monkeypatch):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 40))).add_prefix("c")
    model = CooperativeBandits(hidden=4, epochs=2, random_state=0)
    model.fit(X, (X["c0"] > 0).astype(int), sensitive_features=np.arange(300) % 2)
    asked = []
    said = model.probabilities_by_group
    monkeypatch.setattr(model, "probabilities_by_group", lambda X: asked.append(len(X)) or said(X))
    found = certify(model, X, radius=radius, time_limit=0.5)
    assert len(asked) <= 20  # of both findings; not one for each number and each number of digits
    monkeypatch.undo()
    if radius is None:  # at a radius, fewer digits may be too far from the real person
        assert np.median([len(repr(abs(float(value)))) for value in found.worst.person]) <= 13
    printed = model.probabilities_by_group(pd.DataFrame([found.worst.person]).astype(float))[0, :, 1]
    assert dict(enumerate(printed.tolist())) == found.worst.probabilities
