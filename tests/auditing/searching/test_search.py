from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import evenhand
from evenhand import CooperativeBandits, audit, search_flips, tabular

RNG = np.random.default_rng(0)


def people(n: int = 400, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 66, n),
            "pay": rng.normal(30, 8, n).round(1),
            "job": pd.Categorical(rng.choice(["clerk", "cook", "smith"], n)),
            "sex": rng.choice(["f", "m"], n),
        }
    )


class Rule(ClassifierMixin, BaseEstimator):
    """A rule that somebody wrote: P('yes') by a formula, decided at a threshold."""

    classes_ = np.array(["no", "yes"])

    def __init__(self, formula: Any, threshold: float = 0.5) -> None:
        self.formula, self.threshold, self.asked = formula, threshold, []

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        yes = np.clip(np.asarray(self.formula(X), dtype=float), 0, 1)
        return np.column_stack([1 - yes, yes])

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        self.asked.append(len(X))
        return self.classes_[(self.predict_proba(X)[:, 1] >= self.threshold).astype(int)]


def trap(X: pd.DataFrame) -> Any:
    """Only smiths of 60 and more with little pay are treated differently: nobody in the table."""
    caught = (X["job"] == "smith") & (X["age"] >= 60) & (X["pay"] < 20)
    near = (X["job"] == "smith") * 0.05 + X["age"].clip(upper=60) / 600 - X["pay"] / 1000
    return 0.35 + near * (X["sex"] == "m") + 0.3 * (caught & (X["sex"] == "m"))


def test_people_are_found_whom_the_table_does_not_have() -> None:
    X = people()
    X = X[~((X["job"] == "smith") & (X["age"] > 45)) & (X["pay"] > 15)].reset_index(drop=True)
    model = Rule(trap)
    assert not audit(model, X, None, sensitive_features="sex", n_bootstrap=2).people["flips"].any()
    found = search_flips(model, X, sensitive_features="sex", max_predictions=8000)
    assert found.n_found > 100
    worst = found.people.iloc[0]
    assert (worst["job"], worst["age"] >= 60, worst["pay"] < 20) == ("smith", True, True)
    assert (worst["decided as f"], worst["decided as m"]) == ("no", "yes")
    assert worst["P(yes) as m"] - worst["P(yes) as f"] == pytest.approx(worst["gap"])
    best = 0.3 + 0.05 + 0.1 - X["pay"].min() / 1000
    assert found.gap == pytest.approx(best, abs=1e-3), "the largest that is possible"


def test_everybody_listed_is_decided_differently_by_predict_itself() -> None:
    X = people()
    y = X["age"] + X["pay"] + 12 * (X["sex"] == "m") + RNG.normal(0, 5, len(X)) > 80
    encoder = make_column_transformer(
        (OneHotEncoder(), make_column_selector(dtype_exclude="number")), remainder="passthrough"
    )
    for last in (LogisticRegression(max_iter=1000), HistGradientBoostingClassifier(max_iter=20)):
        model = make_pipeline(encoder, last).fit(X, y)
        found = search_flips(model, X, sensitive_features="sex", max_predictions=2000)
        assert len(found.people) == 20
        assert found.people["person"].is_unique
        rows = found.people[["age", "pay", "job"]]
        assert (rows.dtypes == X.dtypes[rows.columns]).all()
        as_f, as_m = (model.predict(rows.assign(sex=sex)[X.columns]) for sex in ("f", "m"))
        assert (as_f != as_m).all()
        np.testing.assert_array_equal(found.people["decided as f"], as_f)
        np.testing.assert_array_equal(found.people["decided as m"], as_m)
        assert rows["age"].between(X["age"].min(), X["age"].max()).all()
        assert found.n_predictions <= 2000


def test_a_model_that_is_told_the_group_is_told_every_group() -> None:
    X = people()
    sex = X.pop("sex")
    y = np.where(X["age"] + X["pay"] + 15 * (sex == "m") > 80, "yes", "no")
    model = tabular(CooperativeBandits(0.0, epochs=5, random_state=0)).fit(X, y, sensitive_features=sex)
    found = search_flips(model, X, sensitive_features=sex, max_predictions=2000)
    one = found.people.iloc[:1][["age", "pay", "job"]]
    assert model.predict(one, sensitive_features=["f"])[0] == found.people["decided as f"][0]
    assert model.predict(one, sensitive_features=["m"])[0] == found.people["decided as m"][0] != "no"
    certified = evenhand.certify(model, X, time_limit=2)
    assert found.gap <= certified.worst.bound


def test_the_same_seed_finds_the_same_people_within_the_budget() -> None:
    X, model = people(), Rule(trap)
    one, other, third = (
        search_flips(model, X, sensitive_features="sex", max_predictions=3000, random_state=seed)
        for seed in (0, 0, 1)
    )
    pd.testing.assert_frame_equal(one.people, other.people)
    assert not one.people.equals(third.people)
    assert one.n_predictions == 3000
    model.asked.clear()
    stopped = search_flips(model, X, sensitive_features="sex", time_limit=0)
    assert stopped.n_predictions == 2 * 256, "one batch, and no more"


def test_a_threshold_of_the_model_is_where_decisions_change() -> None:
    X = people()
    model = Rule(lambda rows: rows["age"] / 100 + 0.02 * (rows["sex"] == "m"), threshold=0.3)
    found = search_flips(model, X, sensitive_features="sex", max_predictions=2000)
    assert set(found.people["age"]) == {28, 29}
    assert found.n_found > 200


def test_decisions_alone_are_enough() -> None:
    class Bare(Rule):
        predict_proba = property()  # type: ignore[assignment]

        def predict(self, X: pd.DataFrame) -> np.ndarray:
            return np.where(np.asarray(self.formula(X)), "yes", "no")

    X = people()
    model = Bare(lambda rows: (rows["age"] + 2 * (rows["sex"] == "m")) > 40)
    found = search_flips(model, X, sensitive_features="sex", max_predictions=2000)
    assert set(found.people["age"]) == {39, 40}
    assert set(found.people["gap"]) == {1.0}
    assert not any(str(name).startswith("P(") for name in found.people)


def test_three_labels_and_three_groups() -> None:
    X = people(300).assign(sex=RNG.choice(["f", "m", "x"], 300))
    y = np.digitize(X["age"] + 6 * (X["sex"] == "x"), [35, 50])
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["sex", "job"]), remainder="passthrough"),
        HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=5),
    ).fit(X, y)
    found = search_flips(model, X, sensitive_features="sex", pos_label=0, max_predictions=6000)
    assert found.groups == ["f", "m", "x"]
    assert {"P(0) as f", "P(0) as m", "P(0) as x"} <= set(found.people)
    decided = found.people[[f"decided as {group}" for group in "fmx"]]
    assert (decided.nunique(axis=1) > 1).all()
    with pytest.raises(ValueError, match="Got pos_label=7, but the model's labels are 0, 1, 2"):
        search_flips(model, X, sensitive_features="sex", pos_label=7, max_predictions=6)


def test_one_hot_columns_stay_one_feature_and_ranges_hold() -> None:
    X = people()
    table = pd.get_dummies(X.drop(columns="sex"), columns=["job"], dtype=int).assign(sex=X["sex"])
    table.loc[::7, "pay"] = np.nan
    table["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(X["age"], unit="D")
    model = Rule(lambda rows: rows["age"] / 80 + 0.1 * (rows["sex"] == "m") * (1 + rows["job_cook"]))
    asked = []
    model.formula, formula = (lambda rows: (asked.append(rows), formula(rows))[1]), model.formula
    ranges = {"age": (30, 40), "job_smith": [0]}
    search_flips(model, table, sensitive_features="sex", max_predictions=3000, ranges=ranges)
    every = pd.concat(asked)
    assert (every[["job_clerk", "job_cook", "job_smith"]].sum(axis=1) == 1).all()
    assert (every["job_smith"] == 0).all()
    assert (every["age"].min(), every["age"].max()) == (30, 40)
    assert every["pay"].isna().any()
    assert set(every["since"]) <= set(table["since"])
    asked.clear()
    search_flips(model, table, sensitive_features="sex", max_predictions=3000, together=[["age", "since"]])
    met = set(zip(table["age"], table["since"], strict=True))
    assert {pair for rows in asked for pair in zip(rows["age"], rows["since"], strict=True)} <= met


def test_a_model_without_the_group_has_nothing_to_search() -> None:
    X = people()
    model = Rule(lambda rows: rows["age"] / 80)
    found = search_flips(model, X.drop(columns="sex"), sensitive_features=X["sex"])
    assert (found.n_found, found.n_predictions, found.gap) == (0, 0, 0.0)
    assert "There was nothing to search" in found.summary()
    assert "needs a model that uses the group" in found.summary()
    only = search_flips(model, X[["sex"]].assign(sex=1 * (X["sex"] == "m")), sensitive_features="sex")
    assert only.n_predictions == 0
    unused = search_flips(model, X, sensitive_features="sex", max_predictions=2000)
    assert (unused.n_found, unused.n_predictions) == (0, 2000)
    assert "0 get different decisions" in unused.summary()
    assert "nothing is proven" in unused.summary()


def test_a_few_possible_people_are_all_asked_about_once() -> None:
    X = pd.DataFrame({"sex": ["f", "m"] * 30, "job": ["cook", "clerk", "cook"] * 20})
    model = Rule(lambda rows: 0.9 * ((rows["sex"] == "m") & (rows["job"] == "cook")))
    found = search_flips(model, X, sensitive_features="sex")
    assert found.n_predictions == 4
    assert found.n_found == 1


def test_errors_say_what_was_expected() -> None:
    X, model = people(50), Rule(trap)
    with pytest.raises(ValueError, match="Got 'aeg' in ranges, but the model takes no such column. Did you"):
        search_flips(model, X, sensitive_features="sex", ranges={"aeg": (1, 2)})
    with pytest.raises(ValueError, match="Got 'baker' among the categories of 'job', but expected some of"):
        search_flips(model, X, sensitive_features="sex", ranges={"job": ["baker"]})
    with pytest.raises(ValueError, match="Got 3 as the range of 'age', but expected two values"):
        search_flips(model, X, sensitive_features="sex", ranges={"age": 3})
    with pytest.raises(ValueError, match="Got .* as the range of 'age', but expected two values, the lower"):
        search_flips(model, X, sensitive_features="sex", ranges={"age": (60, 20)})
    with pytest.raises(ValueError, match="Got ranges that exclude everybody in X"):
        search_flips(model, X, sensitive_features="sex", ranges={"age": (200, 300)})
    with pytest.raises(ValueError, match="Got 'aeg' in together"):
        search_flips(model, X, sensitive_features="sex", together=[["aeg"]])
    with pytest.raises(ValueError, match="Got max_predictions=0"):
        search_flips(model, X, sensitive_features="sex", max_predictions=0)
    with pytest.raises(TypeError, match="Got predictions, but a search needs the model itself: it asks"):
        search_flips(model.predict(X), X, sensitive_features="sex")


def test_an_audit_has_it_if_asked() -> None:
    X, model = people(), Rule(trap)
    y = model.predict(X)
    found = audit(model, X, y, sensitive_features="sex", n_bootstrap=2, search={"max_predictions": 2000})
    assert found.search is not None
    assert found.search.summary() in found.summary()
    told = found.to_dict()["search"]
    assert told["n_found"] == found.search.n_found
    assert told["people"][0]["person"] == found.search.people["person"][0] + 1
    assert found.search.numbered(1000 + np.arange(400)).people["person"].min() >= 1000
    without = audit(model, X, y, sensitive_features="sex", n_bootstrap=2)
    assert without.search is None
    assert without.to_dict()["search"] is None
    pd.testing.assert_frame_equal(found.metrics, without.metrics)
