from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from fairlearn.postprocessing import ThresholdOptimizer
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from evenhand import CooperativeBandits, CooperativeBoosting, tabular
from evenhand.auditing import audit


def test_the_subgroup_named_comes_with_what_is_certain_of_it() -> None:
    sex, job = np.tile(["f", "m"], 400), np.repeat(["cook", "clerk"], 400)
    decided = ((sex == "m") & (job == "cook")).astype(int)
    found = audit(decided, pd.DataFrame({"job": job}), decided, sensitive_features=sex, n_bootstrap=20)
    worst = found.subgroups.iloc[0]
    assert (
        "among job = cook (400 people): decided 1 for 0.0 % of f and 100.0 % of m. Allowing for all "
        f"comparisons, the difference is at least {100 * worst['low']:.1f} points."
    ) in found.summary()
    assert 0.8 < worst["low"] < 1


def test_one_label_alone_is_not_compared() -> None:
    found = audit(["no"] * 8, None, ["no"] * 8, sensitive_features=["f", "m"] * 4, n_bootstrap=20)
    assert "Everybody got the decision 'no'" in found.summary()
    assert "differ" not in found.summary().splitlines()[2]


class _Told:
    classes_ = np.array(["no", "yes"])

    def predict(self, X: Any, *, sensitive_features: Any) -> Any:
        return self.classes_[self.predict_proba(X, sensitive_features=sensitive_features).argmax(1)]

    def predict_proba(self, X: Any, *, sensitive_features: Any) -> Any:
        yes = np.where(np.asarray(sensitive_features) == "f", 0.6, 0.7)  # 10 points, but 0.02 nats
        return np.stack([1 - yes, yes], axis=1)


@pytest.mark.parametrize(("epsilon", "wanted"), [(0.05, "100.0 %"), (0.11, "nobody")])
def test_a_gap_in_words_is_a_difference_of_probabilities(epsilon: float, wanted: str) -> None:
    X, sex = pd.DataFrame({"age": np.arange(40)}), np.array(["f", "m"] * 20)
    y = np.where(np.arange(40) < 20, "no", "yes")
    found = audit(_Told(), X, y, sensitive_features=sex, epsilon=epsilon, n_bootstrap=20)
    assert (
        f"For {wanted}, the probabilities of the decisions differ from those in another group by "
        f"{100 * epsilon:g} percentage points or more (total variation); the largest difference is 10.0 "
        "points. The list of people gives their gaps in nats of Kullback-Leibler divergence"
    ) in found.summary()
    found = audit(
        _Told(), X, y, sensitive_features=sex, divergence="total_variation", epsilon=epsilon, n_bootstrap=20
    )
    assert "nats" not in found.summary()


def test_groups_that_are_whole_numbers_read_as_such() -> None:
    decided = np.array([0, 1, 1, 1] * 10)
    found = audit(decided, None, decided, sensitive_features=np.array([0, 1] * 20), n_bootstrap=20)
    assert (
        "40 people in 2 groups (group = 0: 20, group = 1: 20). 75.0 % got the decision 1;" in found.summary()
    )
    assert (
        "50.0 % of people with group = 0 and 100.0 % of people with group = 1 got the decision 1: a difference"
    ) in found.summary()
    assert [type(group) for group in found.metrics["group"].dropna().unique()] == [int, int]


def test_groups_that_say_nothing_by_themselves_come_with_their_column() -> None:
    black, job = np.tile(["no", "yes"], 400), np.repeat(["cook", "clerk"], 400)
    decided = np.where((black == "yes") & (job == "cook"), "good", "bad")
    X = pd.DataFrame({"job": job, "black": black})
    found = audit(decided, X, decided, sensitive_features="black", pos_label="good", n_bootstrap=20).summary()
    assert "(black = no: 400, black = yes: 400). 25.0 % got 'good'; it is the true label of 25.0 %." in found
    assert "0.0 % of people with black = no and 50.0 % of people with black = yes got 'good': a" in found
    assert (
        "decided 'good' for 0.0 % of people with black = no and 100.0 % of people with black = yes." in found
    )


def test_without_labels_a_score_is_compared_with_the_threshold() -> None:
    pay, sex = np.arange(40) * 100, np.array(["f", "m"] * 20)
    found = audit(pay, None, None, sensitive_features=sex, threshold=3000, n_bootstrap=20).summary()
    assert "(f: 20, m: 20). 25.0 % have a score of 3000 or more.\n" in found
    assert "25.0 % of every group have a score of 3000 or more: a difference of 0.0 points" in found
    assert "decision" not in found.splitlines()[0]
    found = audit(pay, None, None, sensitive_features=sex, threshold=9000, n_bootstrap=20).summary()
    assert "Everybody has a score below 9000: if all decisions are the same" in found


def test_a_small_difference_is_not_told_as_none() -> None:
    decided, sex = np.repeat([1, 0, 1, 0], [4874, 5126, 4876, 5124]), np.repeat(["f", "m"], 10_000)
    found = audit(decided, None, decided, sensitive_features=sex, n_bootstrap=20)
    assert "48.7 % of f and 48.8 % of m got the decision 1: a difference of 0.02 points" in found.summary()


@pytest.mark.parametrize(
    "estimator",
    [CooperativeBandits(steps=200, random_state=0), CooperativeBoosting(rounds=2, random_state=0)],
)
@pytest.mark.parametrize("compressed", [True, False])
def test_one_policy_for_everybody_is_said_to_be_one(estimator: Any, compressed: bool) -> None:
    X, sex = pd.DataFrame({"age": np.arange(80) % 7, "job": ["a", "b"] * 40}), np.repeat(["f", "m"], 40)
    y = np.where(X["age"] > 3, "yes", "no")
    model = tabular(clone(estimator))
    model = model.fit(X, y, sensitive_features=sex).compress("f") if compressed else model.fit(X, y)
    found = audit(model, X, y, sensitive_features=sex, n_bootstrap=20)
    assert found.value("flip_rate") == 0
    assert "the model has a single policy and is not told the group" in found.summary()
    assert "one policy per group" not in found.summary()


def test_of_many_labels_the_widest_is_named_also_where_the_model_knows_more_groups() -> None:
    class Policies:
        classes_, groups_ = np.array(list("abc")), np.array(["f", "m", "x"], dtype=object)

        def predict(self, X: Any, *, sensitive_features: Any) -> Any:
            return np.where(np.asarray(sensitive_features) == "f", "b", "c")

        def predict_proba(self, X: Any, *, sensitive_features: Any) -> Any:
            return np.eye(3)[
                np.searchsorted(self.classes_, self.predict(X, sensitive_features=sensitive_features))
            ]

        def probabilities_by_group(self, X: Any) -> Any:
            return np.tile(np.eye(3)[[1, 2, 2]], (len(X), 1, 1))

    X, y = pd.DataFrame({"age": np.arange(40)}), np.tile(list("abcb"), 10)
    found = audit(Policies(), X, y, sensitive_features=np.array(["f", "m"] * 20), n_bootstrap=20)
    assert (
        "the groups differ most in 'b': 0.0 % of m and 100.0 % of f got it, a difference of 100.0 points"
        in found.summary()
    )


def test_of_more_than_two_groups_the_lowest_and_the_highest_are_named() -> None:
    decided = np.array([0, 0, 1, 0, 1, 1] * 10)
    found = audit(decided, None, decided, sensitive_features=np.array(list("abc") * 20), n_bootstrap=20)
    rates = "From 0.0 % of a to 100.0 % of c got the decision 1: a difference of 100.0 points"
    assert rates in found.summary()
    assert "of the decisions are correct: 100.0 % of every group." in found.summary()
    found = audit(decided, None, 1 - decided, sensitive_features=pd.Series([0, 1, 2] * 20, name="race"))
    assert "From 0.0 % of people with race = 0 to 100.0 % of people with race = 2 got the" in found.summary()
    said = np.array(list("aacbbcbcc") * 10)
    found = audit(said, None, said, sensitive_features=np.array(list("xyz") * 30), n_bootstrap=20).summary()
    assert "differ most in 'c': from 0.0 % of x to 100.0 % of z got it, a difference of 100.0 points" in found


@pytest.mark.parametrize("groups", ["ab", "abc"])
def test_what_is_the_same_in_every_group_is_said_to_be(groups: str) -> None:
    decided = np.repeat([0, 1], 30)
    found = audit(decided, None, decided, sensitive_features=np.array(list(groups) * 60)[:60], n_bootstrap=20)
    assert "of the decisions are correct: 100.0 % of every group." in found.summary()
    assert "50.0 % of every group got the decision 1: a difference of 0.0 points" in found.summary()


def test_a_column_that_the_model_never_takes_does_not_give_the_group_away_to_it() -> None:
    X = pd.DataFrame({"age": np.arange(40) % 7, "sex": ["f", "m"] * 20})
    y = np.where(X["age"] > 3, "yes", "no")
    model = DecisionTreeClassifier().fit(X[["age"]], y)
    found = audit(model, X, y, sensitive_features="sex", n_bootstrap=20)
    assert "no single column that it uses reveals the group" in found.summary()
    assert "column of X" not in found.summary()


@pytest.mark.parametrize("name", ["black", None])
def test_every_finding_calls_groups_alike(name: str | None) -> None:
    rng = np.random.default_rng(0)
    black = pd.Series(rng.integers(0, 2, 200), name=name)
    X = pd.DataFrame({"skill": rng.normal(size=200), "job": rng.choice(["cook", "clerk"], 200)})
    y = np.where(X["skill"] + black > 0.5, "yes", "no")
    model = tabular(CooperativeBandits(0.0, hidden=3, epochs=20, random_state=0))
    found = audit(
        model.fit(X, y, sensitive_features=black), X, y, sensitive_features=black, n_bootstrap=20,
        twins={"n_null": 19, "n_pairs": 5}, certify={"time_limit": 2}, search={"max_predictions": 2000},
    )  # fmt: skip
    assert found.twins is not None
    assert found.worst is not None
    assert found.search is not None
    called = name or "group"
    assert f"Of the counterparts of people with {called} = 0 in {called} = 1, " in found.twins.summary()
    for one in (found.worst, found.search):
        assert f" as {called} = 0" in one.summary()
        assert f" as {called} = 1" in one.summary()
    assert ("group = " in found.summary()) == (name is None)


def test_groups_that_are_too_small_to_compare_are_not_among_every_group() -> None:
    decided, group = np.array([0, 1] * 40 + [0] * 10), np.array(list("aabb") * 20 + ["c"] * 10)
    found = audit(decided, None, decided, sensitive_features=group, pos_label=1, n_bootstrap=20).summary()
    assert (
        "50.0 % of every larger group got the decision 1; with the smaller groups, the difference is" in found
    )
    assert "their own rates are 0.0 % of c (10 people)" in found


def test_with_weight_on_one_group_only_nothing_is_compared() -> None:
    decided, group = np.array([0, 1] * 40), np.array(["a"] * 40 + ["b"] * 40)
    found = audit(
        decided, None, decided, sensitive_features=group, pos_label=1, n_bootstrap=20,
        sample_weight=(group == "a").astype(float),
    )  # fmt: skip
    assert "Only one group has people who count" in found.summary()
    assert "nan" not in found.summary()


def test_a_small_certain_difference_is_not_called_0(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    sex, job = np.array(["f", "m"] * 500), rng.choice(["cook", "clerk"], 1000)
    said = np.where((job == "cook") & (sex == "m"), "yes", np.where(rng.random(1000) < 0.5, "yes", "no"))
    found = audit(said, pd.DataFrame({"job": job}), None, sensitive_features=sex, n_bootstrap=5)
    assert "Of 2 subgroups, the largest certain difference is among job = cook" in found.summary()
    found.about["subgroups_examined"] = 1
    found.subgroups.loc[0, "low"] = 0.0002
    assert "Of 1 subgroup, the largest" in found.summary()
    assert "the difference is at least 0.02 points." in found.summary()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_people_have_no_neighbours(n: int) -> None:
    X, said = pd.DataFrame({"age": np.arange(n), "job": ["cook"] * n}), np.array(["no", "yes"] * n)[:n]
    found = audit(said, X, said, sensitive_features=np.array(["f", "m"] * n)[:n], n_bootstrap=5)
    assert "consistency" not in set(found.metrics["metric"])
    assert f"Neighbours were left out: 5 are too many for {n} pe" in " ".join(found.notes)


def test_an_audit_of_decisions_that_are_drawn_says_so() -> None:
    rng = np.random.default_rng(0)
    X, sex = rng.normal(size=(200, 2)), np.repeat(["f", "m"], 100)
    y = (X[:, 0] + (sex == "m") + rng.normal(size=200) > 0.5).astype(int)
    model = ThresholdOptimizer(estimator=LogisticRegression(), predict_method="predict_proba")
    model.fit(X, y, sensitive_features=sex)
    notes = audit(model, X, y, sensitive_features=sex, n_bootstrap=5).notes
    assert "The model may draw its decisions at random; these are from one draw." in notes
    assert not any(
        "at random" in note for note in audit(y, X, y, sensitive_features=sex, n_bootstrap=5).notes
    )


def test_a_group_of_few_effective_people_is_small() -> None:
    groups, weights = np.repeat(["a", "b", "c"], [200, 200, 40]), np.ones(440)
    weights[400:404] = 30
    decided = np.arange(440) % 2
    decided[400:] = 0
    found = audit(decided, None, None, sensitive_features=groups, sample_weight=weights)
    assert found.about["compared"] == ["a", "b"]
    assert found.about["evidence"] == pytest.approx(
        {"a": 200, "b": 200, "c": 156**2 / (4 * 900 + 36)}, abs=1e-6
    )
    assert "0.0 % of c (40 people, as certain as 6.7 with equal weights)" in found.summary()
