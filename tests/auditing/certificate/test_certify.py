"""certify: against every possible person, one by one, where that can be done."""

import re
import sys
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from evenhand import CooperativeBandits, CooperativeBoosting, audit, search_flips, tabular
from evenhand.auditing.certificate import certify
from evenhand.network import Network
from evenhand.workflow.deployed import Deployed


def people_and_hired(n=300, seed=0):
    rng = np.random.default_rng(seed)
    people = pd.DataFrame(
        {
            "age": rng.integers(18, 40, n),
            "grade": rng.integers(1, 6, n),
            "job": rng.choice(["cook", "clerk", "smith"], n),
        }
    )
    sex = rng.choice(["f", "m"], n)
    hired = np.where(people["age"] + 12 * (sex == "m") + 3 * people["grade"] > 42, "yes", "no")
    return people, sex, hired


@pytest.fixture(scope="module")
def model():
    people, sex, hired = people_and_hired()
    return tabular(CooperativeBandits(2.0, hidden=4, epochs=20, random_state=0)).fit(
        people, hired, sensitive_features=sex
    )


def everybody(columns):
    return pd.DataFrame(list(product(*columns.values())), columns=list(columns))


def possible(people):
    numbers = {name: range(people[name].min(), people[name].max() + 1) for name in ("age", "grade")}
    return everybody({**numbers, "job": ["clerk", "cook", "smith"]})


def largest(model, people, *, flips=False):
    said = model.probabilities_by_group(people)[:, :, 1]
    gaps = np.abs(said[:, 0] - said[:, 1])
    return gaps[(said >= 0.5).any(1) & (said < 0.5).any(1)].max() if flips else gaps.max()


def test_a_certificate_is_what_asking_about_everybody_finds(model):
    people, *_ = people_and_hired()
    found = certify(model, people, tolerance=1e-4)
    for worst, flips in ((found.worst, False), (found.flip, True)):
        true = largest(model, possible(people), flips=flips)
        assert worst.certified
        assert true - 1.1e-4 <= worst.gap <= true + 1e-9 <= worst.bound + 2e-6 <= true + 3e-4
    assert len(set(found.flip.decisions.values())) == 2


def test_the_worst_person_is_what_predict_says(model):
    people, *_ = people_and_hired()
    found = certify(model, people)
    row = found.worst.person.to_frame().T
    for group, probability in found.worst.probabilities.items():
        assert model.predict_proba(row, sensitive_features=[group])[0, 1] == pytest.approx(probability)
        assert model.predict(row, sensitive_features=[group])[0] == found.worst.decisions[group]
    assert isinstance(found.worst.person["age"], int)
    assert "Certified: probabilities differ by at most" in found.summary()
    assert found.to_dict()["worst"]["person"]["job"] == found.worst.person["job"]


@pytest.mark.parametrize("radius", [None, 0.1])
def test_the_worst_person_has_no_more_digits_than_the_model_tells_apart(radius):
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"pay": rng.gamma(3.0, 700.123456789, 300), "share": rng.random(300)})
    sex = rng.choice(["f", "m"], 300)
    hired = np.where(people["pay"] + 900 * (sex == "m") > 2500, "yes", "no")
    model = tabular(CooperativeBandits(2.0, hidden=4, random_state=0))
    model.fit(people, hired, sensitive_features=sex)
    found = certify(model, people, radius=radius, time_limit=1)
    for worst in (found.worst, found.flip):
        ends = [np.float64(end) for name in people for end in (people[name].min(), people[name].max())]
        assert all(len(repr(float(value))) <= 11 or value in ends for value in worst.person)
        twice = pd.DataFrame([worst.person] * 2).astype(float)
        decided = model.predict(twice, sensitive_features=["f", "m"])
        assert dict(zip(["f", "m"], decided, strict=True)) == worst.decisions


def test_without_time_the_bound_still_holds(model):
    people, *_ = people_and_hired()
    found = certify(model, people, time_limit=0, tolerance=1e-6)
    assert not found.certified
    assert found.worst.bound >= largest(model, possible(people))
    proven = found.summary().splitlines()[1]
    assert proven.startswith("Proven: probabilities differ by at most ")
    assert proven.endswith(
        "Whether anybody is worse than the worst found was not settled within the time limit."
    )


def test_compiling_takes_none_of_the_time(model, monkeypatch):
    module, now = sys.modules["evenhand.auditing.certificate.certify"], [0.0]

    class Compiled(module.Tree):
        def __post_init__(self):
            now[0] += 100.0
            super().__post_init__()

    def clock():
        now[0] += 0.001
        return now[0]

    monkeypatch.setattr(module, "Tree", Compiled)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock))
    people, *_ = people_and_hired()
    found = certify(model, people, tolerance=1e-4, time_limit=50)
    assert found.certified
    assert 0 < found.seconds < 50


def test_narrower_ranges_and_fewer_categories(model):
    people, *_ = people_and_hired()
    found = certify(model, people, ranges={"age": (30, 31), "job": "cook"}, tolerance=1e-4)
    some = everybody({"age": [30, 31], "grade": range(1, 6), "job": ["cook"]})
    assert found.worst.gap == pytest.approx(largest(model, some), abs=2e-4)
    assert found.ranges["age"] == [30, 31]
    assert found.worst.person["job"] == "cook"


def test_a_missing_number_is_possible_where_training_had_gaps():
    people, sex, hired = people_and_hired()
    rng = np.random.default_rng(1)
    gaps = rng.random(len(people)) < 0.3
    people["age"] = people["age"].astype(float).mask(gaps)
    hired = np.where(gaps & (sex == "m"), "yes", hired)  # of the missing, the sexes differ most
    model = tabular(CooperativeBandits(1.0, hidden=3, epochs=20, random_state=0)).fit(
        people, hired, sensitive_features=sex
    )
    found = certify(model, people, tolerance=1e-4)
    known = people["age"].dropna()
    ages = [*range(int(known.min()), int(known.max()) + 1), np.nan]
    every = everybody({"age": ages, "grade": range(1, 6), "job": ["clerk", "cook", "smith"]})
    assert found.worst.gap == pytest.approx(largest(model, every), abs=2e-4)
    assert np.isnan(found.worst.person["age"])


def test_ranges_alone_are_enough_for_numbers(model):
    found = certify(model, ranges={"age": (18, 39), "grade": (1, 5)}, tolerance=1e-4)
    people, *_ = people_and_hired()
    assert found.worst.bound >= largest(model, possible(people))
    with pytest.raises(ValueError, match=r"Got no range for 'age', but a certificate needs one"):
        certify(model)


@pytest.mark.parametrize("seed", range(6))
def test_bounds_hold_for_random_policies(seed):
    """Any weights, large ones too; numbers that are not whole, checked at many points."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-2, 2, 200), rng.integers(0, 3, 200)])
    model = CooperativeBandits(hidden=3, epochs=1, random_state=seed)
    model.fit(X, np.arange(200) % 2, sensitive_features=np.arange(200) // 2 % 3)
    size = float(rng.choice([0.3, 1, 3]))
    model._training.policies = model.policies_ = Network(
        *(rng.normal(scale=size, size=part.shape).astype(np.float32) for part in model.policies_)
    )
    found = certify(model, X, tolerance=1e-3, time_limit=600)
    grid = everybody({"x": np.linspace(X[:, 0].min(), X[:, 0].max(), 2001), "count": [0, 1, 2]}).to_numpy()
    said = model.probabilities_by_group(grid)[:, :, 1]
    true = (said.max(1) - said.min(1)).max()
    assert found.certified
    assert found.worst.bound >= true - 1e-6
    assert found.worst.gap >= true - 1.1e-3
    some = certify(model, X, groups=[0, 2])
    assert some.worst.bound >= np.abs(said[:, 0] - said[:, 2]).max() - 1e-6
    assert set(some.worst.probabilities) == {0, 2}


def test_equal_policies_decide_nobody_differently():
    people, sex, hired = people_and_hired()
    model = tabular(CooperativeBandits(2.0, hidden=3, epochs=1, random_state=0)).fit(
        people, hired, sensitive_features=sex
    )
    inner = model.estimator_
    inner._training.policies = inner.policies_ = Network(
        *(np.stack([part[0]] * 2) for part in inner.policies_)
    )
    found = certify(model, people)
    assert found.certified
    assert found.worst.bound <= 1e-3 + 2e-6
    assert found.flip.person is None


def test_where_all_get_the_same_decision_no_flip_is_proven(model):
    people, *_ = people_and_hired()
    rich = {"age": (39, 39), "grade": (5, 5)}
    assert (
        model.probabilities_by_group(
            pd.DataFrame({"age": [39] * 3, "grade": [5] * 3, "job": ["cook", "clerk", "smith"]})
        )[:, :, 1]
        > 0.5
    ).all()
    found = certify(model, people, ranges=rich)
    assert found.flip.person is None
    assert found.flip.certified
    assert found.flip.bound == 0
    assert "Certified: no possible person gets different decisions" in found.summary()


def test_a_deployed_model_decides_at_its_threshold(model):
    people, *_ = people_and_hired()
    held = Deployed(
        model.preprocessor_,
        model.estimator_,
        model.columns_,
        "hired",
        ["sex"],
        pos_label="yes",
        threshold=0.8,
    )
    found = certify(held, people, tolerance=1e-4)
    said = held.probabilities_by_group(possible(people))[:, :, 1]
    flips = (said >= 0.8).any(1) & (said < 0.8).any(1)
    assert found.flip.gap == pytest.approx(np.abs(said[flips, 0] - said[flips, 1]).max(), abs=2e-4)
    assert sorted(found.flip.decisions.values()) == ["no", "yes"]
    assert found.column == "sex"


def test_errors_say_what_is_missing(model):
    people, sex, _ = people_and_hired()
    with pytest.raises(
        ValueError, match=r"Got 'aeg' in ranges, but the model takes no such column. Did you mean 'age'"
    ):
        certify(model, people, ranges={"aeg": (1, 2)})
    with pytest.raises(ValueError, match=r"Got 'baker' among the categories of 'job', but expected some of"):
        certify(model, people, ranges={"job": ["baker"]})
    with pytest.raises(ValueError, match=r"as the range of 'age', but expected two values, the lower first"):
        certify(model, people, ranges={"age": (40, 30)})
    with pytest.raises(ValueError, match=r"Got 1 group, but a certificate compares"):
        certify(model, people, groups=["f"])
    with pytest.raises(TypeError, match=r"Got GradientBandit, but expected a fitted CooperativeBandits"):
        certify(model.compress("f"), people)
    seven = CooperativeBandits(epochs=1, random_state=0).fit(
        people[["age", "grade"]], np.arange(300) % 7, sensitive_features=sex
    )
    with pytest.raises(
        ValueError, match=r"Got a model of 7 labels, but a certificate takes 2, or of networks"
    ):
        certify(seven, people[["age", "grade"]])


def test_an_audit_shows_the_worst_person(model, tmp_path):
    people, sex, hired = people_and_hired()
    found = audit(model, people, hired, sensitive_features=sex, n_bootstrap=2, certify={"time_limit": 30})
    assert found.worst.certified
    assert "Certified: probabilities differ by at most" in found.summary()
    told = found.to_dict()["worst"]
    assert told["worst"]["person"]["job"] == found.worst.worst.person["job"]
    page = found.to_html(tmp_path / "audit.html").read_text(encoding="utf-8")
    assert "The largest possible gap" in page
    assert f"{found.worst.worst.gap * 100:.2f} points" in page
    without = audit(model, people, hired, sensitive_features=sex, n_bootstrap=2)
    assert without.worst is None
    assert without.to_dict()["worst"] is None
    with pytest.raises(
        TypeError, match="Got predictions, but a certificate needs the model itself: it covers"
    ):
        audit(hired, people, hired, sensitive_features=sex, n_bootstrap=2, certify=True)


def test_an_audit_refuses_what_it_cannot_do_before_it_measures():
    people, sex, hired = people_and_hired()

    class Slow(ClassifierMixin, BaseEstimator):
        def predict(self, X):
            raise AssertionError("It was asked.")

    with pytest.raises(TypeError, match="Got Slow, but expected a fitted CooperativeBandits"):
        audit(Slow(), people, hired, sensitive_features=sex, certify=True)
    with pytest.raises(TypeError, match="Got predictions, but a search needs the model itself: it asks"):
        audit(hired[:5], people, hired, sensitive_features=sex, search=True)
    trees = tabular(CooperativeBoosting(rounds=2)).fit(people, hired, sensitive_features=sex)
    with pytest.raises(ValueError, match="Got a radius for policies with trees"):
        audit(trees, people, hired, sensitive_features=sex[:-1], certify={"radius": 0.1})


def test_dates_are_possible_days():
    people, sex, hired = people_and_hired()
    people["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(people.pop("age") * 10, unit="D")
    model = tabular(CooperativeBandits(2.0, hidden=3, epochs=5, random_state=0))
    found = certify(model.fit(people, hired, sensitive_features=sex), people, tolerance=1e-2)
    assert people["since"].min() <= found.worst.person["since"] <= people["since"].max()


def test_the_policies_inside_somebody_elses_model_are_not_certified(model):
    class Other:
        def __init__(self, inner):
            self.model = self.estimator_ = inner

        def predict(self, X, sensitive_features=None):
            return self.model.predict(X, sensitive_features=sensitive_features)

    people, _, _ = people_and_hired()
    with pytest.raises(TypeError, match="Got Other, but expected a fitted CooperativeBandits"):
        certify(Other(model.estimator_), people)


def test_the_person_as_printed_is_the_one_that_was_found():
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"skill": rng.normal(size=500) * 1000, "income": rng.lognormal(10, 1, 500)})
    people["h"], sex = rng.normal(size=500), rng.choice(["f", "m"], 500)
    hired = np.where(people["skill"] / 1000 + (sex == "m") * people["h"] > 0, "yes", "no")
    model = CooperativeBoosting(divergence_weight=0.0, rounds=20, random_state=0)
    model.fit(people, hired, sensitive_features=sex)
    found = certify(model, people, time_limit=2)
    searched = search_flips(model, people, sensitive_features=sex, max_predictions=2000)
    for text in (found.summary().splitlines()[0], searched.summary().splitlines()[1]):
        printed = {name: float(re.search(rf"\b{name} (-?\d+\.?\d*)", text)[1]) for name in people}
        said = model.probabilities_by_group(pd.DataFrame([printed]))[0, :, 1]
        for group, probability in zip("fm", said, strict=True):
            assert f"{probability:.3f} as {group}" in text or f"({probability:.3f}) as {group}" in text
    cells = found.to_frame()["farthest apart"]
    assert {name: float(cells[name]) for name in people} == dict(found.worst.person)
