from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from evenhand.auditing import audit
from evenhand.auditing.predictions import check_known, read_predictions

SEX = ["f", "m", "m"]
LABELS = ["no", "yes", "yes"]


def test_decisions_are_taken_as_they_are() -> None:
    assert read_predictions(["yes", "no", "no"], LABELS, sensitive_features=SEX).decisions.tolist() == [
        "yes",
        "no",
        "no",
    ]
    ones = read_predictions([1.0, 0.0, 1.0], [0, 1, 1], sensitive_features=SEX)
    assert ones.scores is None


def test_scores_are_decided_at_the_threshold() -> None:
    said = read_predictions([0.2, 0.5, 0.7], LABELS, sensitive_features=SEX)
    assert said.decisions.tolist() == ["no", "yes", "yes"]
    np.testing.assert_allclose(said.scores, [[0.8, 0.2], [0.5, 0.5], [0.3, 0.7]])
    other = read_predictions([0.2, 0.5, 0.7], LABELS, sensitive_features=SEX, pos_label="no", threshold=0.6)
    assert other.decisions.tolist() == ["yes", "yes", "no"]
    np.testing.assert_allclose(other.scores, [[0.2, 0.8], [0.5, 0.5], [0.7, 0.3]])
    # With a threshold, numbers that could be labels are scores.
    zero_one = read_predictions([0, 1, 1], [0, 1, 1], sensitive_features=SEX, threshold=0.5)
    assert zero_one.scores is not None


@pytest.mark.parametrize("said", [[1, 0, 0], [1.0, 0.0, 1.0], [[1], [0], [1]]])
def test_0_and_1_beside_other_labels_need_a_threshold(said: Any) -> None:
    with pytest.raises(ValueError, match="Got predictions of 0 and 1 only, but the labels are 'bad', 'good'"):
        read_predictions(said, ["bad", "good", "good"], sensitive_features=SEX)
    with pytest.raises(ValueError, match="the positive label, 'bad', give the threshold 0.5"):
        read_predictions(said, ["bad", "good", "good"], sensitive_features=SEX, pos_label="bad")
    read = read_predictions(
        said, ["bad", "good", "good"], sensitive_features=SEX, pos_label="bad", threshold=0.5
    )
    assert (read.decisions == "bad").tolist() == np.ravel(said).astype(bool).tolist()


def test_probabilities_decide_by_the_largest() -> None:
    said = read_predictions(
        [[0.2, 0.3, 0.5], [0.6, 0.2, 0.2], [0, 1, 0]], list("abc"), sensitive_features=SEX
    )
    assert said.decisions.tolist() == ["c", "a", "b"]


@pytest.mark.parametrize("labels", [["no", "yes", "yes"], [0, 1, 1], [False, True, True]])
@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame])
def test_columns_named_by_the_labels_may_come_in_any_order(labels: list[Any], table: Any) -> None:
    first, second = labels[:2]
    said = table({str(second): [0.1, 0.7, 0.8], str(first): [0.9, 0.3, 0.2]})
    read = read_predictions(said, labels, sensitive_features=SEX)
    assert read.decisions.tolist() == labels
    np.testing.assert_array_equal(read.scores, [[0.9, 0.1], [0.3, 0.7], [0.2, 0.8]])


def test_columns_may_be_named_by_another_kind_of_number() -> None:
    said = pd.DataFrame({1: [0.1, 0.7, 0.8], 0: [0.9, 0.3, 0.2]})
    assert read_predictions(said, [0.0, 1.0, 1.0], sensitive_features=SEX).decisions.tolist() == [0, 1, 1]


def test_columns_of_other_names_are_in_the_labels_order() -> None:
    said = pd.DataFrame({"P(no)": [0.9, 0.3, 0.2], "yes": [0.1, 0.7, 0.8]})
    assert read_predictions(said, LABELS, sensitive_features=SEX).decisions.tolist() == LABELS


def test_bad_input_says_what_came_and_what_was_wanted() -> None:
    for given, labels, message in [
        ([0.2, 0.3], LABELS, r"predictions of shape \(2,\), but"),
        ([[0.2, 0.9]] * 3, LABELS, "sum to one"),
        (
            [[0.2, 0.2, 0.6]] * 3,
            LABELS,
            r"Got 3 probabilities per person, but y has the labels \['no', 'yes'\]",
        ),
        ([3.0, 7, 9], LABELS, "Got predictions from 3 to 9, which are neither labels"),
        ([0.2, np.nan, 0.4], LABELS, "missing, infinite or non-numeric"),
        ([0.2, 0.3, 0.4], list("abc"), "one score per person for the labels"),
    ]:
        with pytest.raises(ValueError, match=message):
            read_predictions(given, labels, sensitive_features=SEX)
    with pytest.raises(ValueError, match="non-numeric scores"):
        read_predictions(LABELS, LABELS, sensitive_features=SEX, threshold=0.5)


@pytest.mark.parametrize(
    ("values", "known", "message"),
    [
        (
            ["Approved", "Denied"],
            ["no", "yes"],
            "Got 'Approved', 'Denied' among the decisions, but the labels",
        ),
        (
            ["No", "Yes"],
            ["no", "yes"],
            r"the labels are 'no', 'yes'; expected the same names\. Did you mean 'no'\?",
        ),
        (["no", "review", "yes"], ["no", "yes"], "Got 'review' among the decisions"),
        (["yes"], ["no"], "Got 'yes' among"),
        (["no", "No "], ["no"], "Did you mean 'no'"),
        (["a", "b", "C"], ["a", "b", "c"], "Got 'C' among the decisions, .* Did you mean 'c'"),
        ([np.float64(0.5)], [0, 1], "Got 0.5 among the decisions"),
        ([f"x{i}" for i in range(12)], ["a", "b"], "'x5' and 6 more among"),
    ],
)
def test_values_that_are_no_labels_are_named(values: list[str], known: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_known(values, known, "decisions", "the labels")


def test_labels_that_nobody_happens_to_have_pass_with_a_note() -> None:
    assert check_known(["no"], ["no", "yes"], "decisions", "the labels") == ""
    assert "'yes' is among" in check_known(["no", "yes"], ["no"], "decisions", "the labels")
    assert "'d', 'e' are among" in check_known(list("abde"), list("abc"), "decisions", "the labels")


def test_an_audit_of_other_names_than_the_labels_is_refused() -> None:
    y, sex = np.array(["no", "yes"] * 20), np.repeat(["f", "m"], 20)
    for decided in (np.where(y == "yes", "Approved", "Denied"), np.where(y == "yes", "Yes", "No")):
        with pytest.raises(ValueError, match="among the decisions, but the labels are 'no', 'yes'"):
            audit(decided, None, y, sensitive_features=sex)
    X = pd.DataFrame({"age": np.arange(40)})
    model = DecisionTreeClassifier(max_depth=2).fit(X, np.where(y == "yes", "Approved", "Denied"))
    with pytest.raises(ValueError, match="Got 'no', 'yes' among the labels, but the model's decisions are"):
        audit(model, X, y, sensitive_features=sex)


@pytest.mark.parametrize(("one", "other"), [("no", "yes"), (0, 1)])
def test_a_truth_of_one_label_lacks_the_other(one: object, other: object) -> None:
    decided, sex = np.array([one, other] * 20), np.repeat(["f", "m"], 20)
    found = audit(decided, None, np.array([one] * 40), sensitive_features=sex, n_bootstrap=20)
    assert found.about["positive"] == other
    assert found.value("accuracy") == 0.5
    assert any(f"{other!r} is among the decisions" in note for note in found.notes)
    # Nobody's decision is a label: only a named positive label tells that they are of one kind.
    everybody = np.array([other] * 40)
    found = audit(
        everybody, None, np.array([one] * 40), sensitive_features=sex, pos_label=other, n_bootstrap=20
    )
    assert found.value("positive_rate") == 1.0


def test_a_regressor_decides_nothing() -> None:
    X, sex = pd.DataFrame({"age": np.arange(40.0)}), np.repeat(["f", "m"], 20)
    model = LinearRegression().fit(X, X["age"] / 40)
    for threshold in (None, 0.5):
        with pytest.raises(
            TypeError, match=r"a regressor, .* audit\(model.predict\(X\), X, y, threshold=…\)"
        ):
            audit(model, X, np.array([0, 1] * 20), sensitive_features=sex, threshold=threshold)


class Scores(BaseEstimator):  # neither a classifier nor a regressor, as far as scikit-learn knows
    def predict(self, X: Any) -> Any:
        return np.asarray(X["age"]) / 40


def test_a_model_of_scores_decides_nothing() -> None:
    X, sex = pd.DataFrame({"age": np.arange(40.0)}), np.repeat(["f", "m"], 20)
    with pytest.raises(ValueError, match="among the decisions, but the labels are 0, 1"):
        audit(Scores(), X, np.array([0, 1] * 20), sensitive_features=sex)
    with pytest.raises(ValueError, match="Got a model that gives 40 different answers and no labels"):
        audit(Scores(), X, None, sensitive_features=sex)


@pytest.mark.parametrize(("labels", "said"), [([0, 1], ["0", "1"]), (["True", "False"], [True, False])])
def test_text_and_numbers_of_one_spelling_are_told_apart(labels: Any, said: Any) -> None:
    # With text on one side and numbers on the other, no label can be what was meant.
    with pytest.raises(
        ValueError, match="text in one, numbers or truth values in the other; expected one type"
    ):
        audit(np.array(said * 10), None, np.array(labels * 10), sensitive_features=["f", "m"] * 10)


def test_missing_values_are_said_to_be_where_they_are() -> None:
    whole, gap = ["no", "yes"] * 5, ["no", "yes"] * 4 + ["no", None]
    with pytest.raises(ValueError, match="Got 1 missing labels in the predictions"):
        audit(gap, None, whole, sensitive_features=["f", "m"] * 5)
    with pytest.raises(ValueError, match="Got 1 missing labels in y, but"):
        audit(whole, None, gap, sensitive_features=["f", "m"] * 5)


def test_labels_that_a_model_cant_give_leave_its_scores_unmeasured():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300)})
    s = rng.choice(["f", "m"], 300)
    y = np.where(X["a"] > 0.5, "high", np.where(X["a"] > -0.5, "middle", "low"))
    model = LogisticRegression().fit(X, y)
    y[:20] = "none"
    found = audit(model, X, y, sensitive_features=s)
    assert any("AUC and calibration were left out" in note for note in found.notes)
    assert "auc" not in set(found.metrics["metric"])
    assert 0.5 < found.value("accuracy") < 0.95
