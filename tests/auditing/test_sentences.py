from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

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


@pytest.mark.parametrize(("epsilon", "wanted"), [(0.05, "100.0"), (0.11, "0.0")])
def test_a_gap_in_words_is_a_difference_of_probabilities(epsilon: float, wanted: str) -> None:
    X, sex = pd.DataFrame({"age": np.arange(40)}), np.array(["f", "m"] * 20)
    y = np.where(np.arange(40) < 20, "no", "yes")
    found = audit(_Told(), X, y, sensitive_features=sex, epsilon=epsilon, n_bootstrap=20)
    assert (
        f"For {wanted} %, the probabilities of the decisions differ from those in another group by "
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
    assert "1 is the decision for 50.0 % of 0 and 100.0 % of 1: a difference" in found.summary()
    assert [type(group) for group in found.metrics["group"].dropna().unique()] == [int, int]


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
    assert "the groups differ most in 'b', the decision for 0.0 % of m and 100.0 % of f: a" in found.summary()


def test_of_more_than_two_groups_the_lowest_and_the_highest_are_called_so() -> None:
    decided = np.array([0, 0, 1, 0, 1, 1] * 10)
    found = audit(decided, None, decided, sensitive_features=np.array(list("abc") * 20), n_bootstrap=20)
    assert "1 is the decision for 0.0 % of a (the lowest) to 100.0 % of c (the highest): a" in found.summary()


@pytest.mark.parametrize("groups", ["ab", "abc"])
def test_what_is_the_same_in_every_group_is_said_to_be(groups: str) -> None:
    decided = np.repeat([0, 1], 30)
    found = audit(decided, None, decided, sensitive_features=np.array(list(groups) * 60)[:60], n_bootstrap=20)
    assert "of the decisions are correct: 100.0 % of every group." in found.summary()
    assert "1 is the decision for 50.0 % of every group: a difference of 0.0 points" in found.summary()


def test_a_column_that_the_model_never_takes_does_not_give_the_group_away_to_it() -> None:
    X = pd.DataFrame({"age": np.arange(40) % 7, "sex": ["f", "m"] * 20})
    y = np.where(X["age"] > 3, "yes", "no")
    model = DecisionTreeClassifier().fit(X[["age"]], y)
    found = audit(model, X, y, sensitive_features="sex", n_bootstrap=20)
    assert "no column that the model uses reveals the group by itself" in found.summary()
    assert "column of X" not in found.summary()
