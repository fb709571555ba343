from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from evenhand.auditing import audit
from evenhand.auditing.predictions import check_known


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
    with pytest.raises(ValueError, match="among the decisions, but the labels are 0, 1"):
        audit(model, X, np.array([0, 1] * 20), sensitive_features=sex)
    with pytest.raises(ValueError, match="Got a model of 40 different answers and no labels"):
        audit(model, X, None, sensitive_features=sex)


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
