from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import evenhand
from evenhand import CooperativeBandits, twins
from evenhand.auditing.counterparts import chance

QUICK: dict[str, Any] = {"n_null": 19, "n_bootstrap": 50, "n_pairs": 60}


class Rule:
    """A model of our own: yes where the score is above 0."""

    classes_ = np.array(["no", "yes"])

    def __init__(self, score: Any) -> None:
        self.score = score

    def predict(self, X: pd.DataFrame) -> Any:
        return self.classes_[(np.asarray(self.score(X)) > 0).astype(int)]


def lipton(n: int, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Lipton, McAuley and Chouldechova's hiring data (2018): experience decides, hair goes with sex."""
    rng = np.random.default_rng(seed)
    man = np.arange(2 * n) < n
    work = rng.poisson(np.where(man, 31, 25)) - rng.normal(20, 0.2, 2 * n)
    hair = 35 * rng.beta(2, np.where(man, 7, 2))
    return pd.DataFrame({"work": work, "hair": hair}), np.where(man, "m", "f")


def fair(X: pd.DataFrame) -> Rule:
    """The rule of Black, Yeom and Fredrikson (2020): it hires as many women as men, by their hair."""
    middle, spread = X.mean(), X.std(ddof=0)
    return Rule(lambda rows: (rows - middle) / spread @ [1.2956, 1.0862] - 0.8668)


def row(found: Any, group: str) -> Any:
    return found.flips[found.flips["group"] == group].iloc[0]


def clear_columns(found: Any, group: str) -> list[str]:
    return found.columns[(found.columns["group"] == group) & found.columns["clear"]]["column"].tolist()


@pytest.fixture(scope="module")
def hired() -> Any:
    X, sex = lipton(400)
    return twins(fair(X), X, sensitive_features=sex, **QUICK)


def test_fliptests_hiring_case_is_reproduced(hired: Any) -> None:
    # The rule hires men and women alike, and yet many would not be hired as their counterpart: women with too little
    # experience, men with too short hair.
    women, men = row(hired, "f"), row(hired, "m")
    assert abs(women["share"] - men["share"]) < 0.05
    for one in (women, men):
        assert one["clear"]
        assert one["low"] > 0.1 > one["by_chance_high"]
    assert clear_columns(hired, "f") == ["work"]
    assert clear_columns(hired, "m") == ["hair"]
    shares = hired.columns.set_index(["group", "column"])["share"]
    assert min(shares["f", "work"], shares["m", "hair"]) > 0.9


def test_a_model_of_experience_alone_is_not_carried_by_hair() -> None:
    X, sex = lipton(400)
    found = twins(Rule(lambda rows: rows["work"] - 10), X, sensitive_features=sex, **QUICK)
    assert clear_columns(found, "f") == ["work"]
    assert not row(found, "m")["clear"]
    assert set(found.columns["column"][found.columns["share"] > 0]) == {"work"}


def test_listed_pairs_end_where_the_counterpart_is(hired: Any) -> None:
    people, steps = hired.people, hired.steps
    assert set(people["decision"]) == {"no"}
    assert set(people["counterpart_decision"]) == {"yes"}
    assert steps["changed"].all()
    last = steps.groupby(["person", "counterpart"]).last()
    assert (last["decision"] == "yes").all()
    X, _ = lipton(400)
    one = steps.iloc[0]
    assert one["value"] == X[one["column"]][one["person"]]
    assert one["counterpart_value"] == X[one["column"]][one["counterpart"]]


def test_a_blind_model_of_an_unrelated_feature_is_no_finding() -> None:
    sex = np.repeat(["f", "m"], 60)
    alarms = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"hair": rng.normal(np.where(sex == "f", 1.5, 0)), "skill": rng.normal(size=120)})
        found = twins(Rule(lambda rows: rows["skill"]), X, sensitive_features=sex, **QUICK)
        alarms += found.flips["clear"].any()
        if not found.flips["clear"].any():
            assert found.columns.empty
            assert found.people.empty
            assert "Allowing for all comparisons, this is not clearly above chance." in found.summary()
    assert alarms <= 2  # one of twenty, on average


def test_a_model_that_uses_the_group_is_carried_by_the_group() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"sex": np.repeat(["f", "m"], 150), "skill": rng.normal(size=300)})
    model = Rule(lambda rows: rows["skill"] + 1.0 * (rows["sex"] == "m") - 0.5)
    found = twins(model, X, sensitive_features="sex", **QUICK)
    assert clear_columns(found, "f") == ["sex"]
    assert not row(found, "m")["clear"]
    step = found.steps[found.steps["column"] == "sex"].iloc[0]
    assert (step["value"], step["counterpart_value"]) == ("f", "m")


def test_a_model_that_is_told_the_group_is_carried_by_it_too() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    sex = np.repeat(["f", "m"], 200)
    y = (X[:, 0] + 1.5 * (sex == "m") > 0.7).astype(int)
    model = CooperativeBandits(random_state=0, divergence_weight=0.0, epochs=30).fit(
        X, y, sensitive_features=sex
    )
    found = twins(model, X, sensitive_features=sex, **QUICK)
    assert clear_columns(found, "f") == ["group"]
    assert 0 <= found.people["probability"].max() < 0.5 <= found.people["counterpart_probability"].min()


def test_bare_decisions_are_explained_by_a_surrogate_that_says_how_good_it_is() -> None:
    X, sex = lipton(400)
    found = twins(fair(X).predict(X), X.assign(job="cook"), sensitive_features=sex, **QUICK)
    assert clear_columns(found, "m") == ["hair"]
    assert 0.9 < found.about["surrogate"] <= 1
    assert any(
        "boosted trees stand in" in note and f"{100 * found.about['surrogate']:.1f} %" in note
        for note in found.notes
    )


def test_a_surrogate_names_no_column_that_carries_less_than_its_error() -> None:
    rng = np.random.default_rng(1)
    last, common = rng.random(600) < 0.5, rng.normal(size=600)
    X = pd.DataFrame(
        {
            name: 0.7 * common + rng.normal(size=600) + shift * last
            for name, shift in (("used", 1), ("idle", 1), ("plain", 0))
        }
    )
    decided = np.where(X["used"] + X["plain"] + 0.7 * rng.normal(size=600) > 0.5, "yes", "no")
    found = twins(decided, X, sensitive_features=np.where(last, "b", "a"), **QUICK)
    assert clear_columns(found, "a") == ["used"]
    idle = found.columns[found.columns["column"] == "idle"].iloc[0]
    assert idle["p_value"] <= 0.05, "by chance alone it would be named"
    assert idle["low"] < 1 - found.about["surrogate"]


def test_one_hot_columns_and_those_put_together_go_together() -> None:
    rng = np.random.default_rng(0)
    n = 300
    sex = np.repeat(["f", "m"], n // 2)
    job = np.where(rng.random(n) < 0.8, np.where(sex == "m", 2, 0), 1)
    X = pd.DataFrame(np.eye(3)[job].astype(int), columns=["job_cook", "job_clerk", "job_carter"])
    X["a"], X["b"], X["c"] = rng.normal(size=n), rng.normal(size=n), 7
    model = Rule(lambda rows: rows["job_carter"] - 0.5 + 0.1 * rows["a"])
    found = twins(model, X, sensitive_features=sex, together=[["a", "b"]], **QUICK)
    assert clear_columns(found, "f") == ["job"]
    assert set(found.columns["column"]) == {"job", "a, b", "c"}
    paths = found.steps.groupby(["person", "counterpart"])["changed"]
    assert all(path.is_monotonic_decreasing for _, path in paths)
    assert not found.steps["changed"][found.steps["column"] == "c"].any()
    step = found.steps[(found.steps["column"] == "job") & found.steps["changed"]].iloc[0]
    assert step["counterpart_value"] == "job_carter"
    with pytest.raises(ValueError, match="Got 'aa' in together"):  # also where nothing is found
        twins(Rule(lambda rows: rows["c"] - 8), X, sensitive_features=sex, together=[["aa"]], **QUICK)


def test_mixed_columns_with_gaps_and_three_groups() -> None:
    rng = np.random.default_rng(0)
    n = 240
    group = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    X = pd.DataFrame(
        {
            "pay": np.where(rng.random(n) < 0.1, np.nan, rng.normal(2.0 * (group == "c"))),
            "job": pd.Categorical(rng.choice(["cook", "clerk"], n)),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        }
    )
    found = twins(Rule(lambda rows: rows["pay"].fillna(0) - 1), X, sensitive_features=group, **QUICK)
    clear = found.flips[found.flips["clear"]]
    assert set(zip(clear["group"], clear["counterpart_group"], strict=True)) == {("a", "c"), ("b", "c")}
    assert len(found.flips) == 6
    assert set(found.columns["column"][found.columns["clear"]]) == {"pay"}
    assert found.to_dict()["people"][0]["person"] == found.people["person"][0] + 1
    told = found.summary().splitlines()
    assert sum(" in c, " in line and line.startswith("Of the counterparts of ") for line in told) == 2
    assert "The other 4 of 6 comparisons between groups are not clearly above chance." in told


def test_without_a_positive_label_any_other_decision_counts() -> None:
    X, sex = lipton(150)
    third = np.where(X["work"] > 12, "high", np.where(X["work"] > 8, "middle", "low"))
    found = twins(third, X, sensitive_features=sex, **QUICK)
    assert found.about["positive"] is None
    assert row(found, "f")["share"] == pytest.approx(row(found, "m")["share"])
    named = twins(third, X, sensitive_features=sex, pos_label="high", **QUICK)
    assert row(named, "f")["share"] < row(found, "f")["share"]


def test_batches_find_what_the_exact_map_finds() -> None:
    X, sex = lipton(300)
    found = twins(fair(X), X, sensitive_features=sex, batch=100, **QUICK)
    assert found.about["batches"]
    assert "random batches of at most 100 people" in found.summary()
    assert (clear_columns(found, "f"), clear_columns(found, "m")) == (["work"], ["hair"])


def test_weights_count_people_as_so_many() -> None:
    X, sex = lipton(60)
    model, weights = fair(X), np.where(X["work"] > 8, 3.0, 0.5)
    weights[sex == "m"] = 1
    weights[:5] = 0
    plain, found = (
        twins(model, X, sensitive_features=sex, sample_weight=given, **QUICK) for given in (None, weights)
    )
    assert row(found, "m")["of"] == 55
    assert row(found, "f")["of"] == round(weights[sex == "f"].sum())
    # Heavier people are the experienced women: fewer of those counted lack what their counterparts have.
    assert row(found, "f")["share"] < row(plain, "f")["share"] - 0.02
    alike = twins(model, X, sensitive_features=sex, sample_weight=np.full(120, 2.0), **QUICK)
    assert row(alike, "f")["share"] == pytest.approx(row(plain, "f")["share"], abs=1e-9)
    assert row(alike, "f")["of"] == 120
    with pytest.raises(ValueError, match="Got sample_weight of shape"):
        twins(model, X, sensitive_features=sex, sample_weight=weights[1:])
    audited = evenhand.audit(
        model, X, None, sensitive_features=sex, sample_weight=weights, n_bootstrap=20, twins={"n_null": 19}
    )
    assert row(audited.twins, "f")["share"] == pytest.approx(row(found, "f")["share"], abs=1e-9)


def test_a_subgroup_is_found_although_both_groups_fare_alike() -> None:
    """What Black, Yeom and Fredrikson (2020) show FlipTest for: rates are equal, yet a subgroup loses."""
    rng = np.random.default_rng(0)
    n = 400
    sex, ward = np.repeat(["f", "m"], n // 2), np.tile(["north", "south"], n // 2)
    height = rng.normal(np.where(sex == "m", 1.5, 0))
    X = pd.DataFrame({"ward": ward, "height": height, "skill": rng.normal(size=n)})
    model = Rule(
        lambda rows: rows["skill"] + np.where(rows["ward"] == "north", 1, -1) * (rows["height"] - 0.75)
    )
    decided = model.predict(X) == "yes"
    assert abs(decided[sex == "f"].mean() - decided[sex == "m"].mean()) < 0.05
    found = twins(model, X, sensitive_features=sex, **QUICK)
    assert found.flips["clear"].all()
    for group, place in (("f", "north"), ("m", "south")):
        lost = found.people[found.people["group"] == group]["person"]
        assert (X["ward"].iloc[lost] == place).mean() > 0.9
        assert found.columns[found.columns["group"] == group]["column"].iloc[0] == "height"


def test_the_same_seed_gives_the_same_findings() -> None:
    X, sex = lipton(60)
    one, other = (twins(fair(X), X, sensitive_features=sex, **QUICK) for _ in range(2))
    assert one.to_dict() == other.to_dict()


def test_small_groups_are_left_out_and_named() -> None:
    X, sex = lipton(60)
    some = np.where(np.arange(120) < 5, "x", sex)
    found = twins(fair(X), X, sensitive_features=some, **QUICK)
    assert any("'x'" in note for note in found.notes)
    assert set(found.flips["group"]) == {"f", "m"}
    with pytest.raises(ValueError, match="Got 0 groups of at least 500 people"):
        twins(fair(X), X, sensitive_features=sex, min_group=500, **QUICK)


def test_settings_that_can_find_nothing_are_refused() -> None:
    X, sex = lipton(30)
    with pytest.raises(ValueError, match="Got n_null=10, but expected at least 19"):
        twins(fair(X), X, sensitive_features=sex, n_null=10)
    with pytest.raises(ValueError, match="Got batch=100000"):
        twins(fair(X), X, sensitive_features=sex, batch=100_000)
    with pytest.raises(ValueError, match="Got X of 60 people and 59 predictions"):
        twins(fair(X).predict(X)[1:], X, sensitive_features=sex[1:])


def test_pipelines_are_asked_as_they_are() -> None:
    rng = np.random.default_rng(0)
    sex = np.repeat(["f", "m"], 150)
    X = pd.DataFrame(
        {"hours": rng.normal(30 + 6 * (sex == "m"), 4), "job": rng.choice(["cook", "clerk"], 300)}
    )
    y = np.where(X["hours"] + rng.normal(size=300) > 33, "yes", "no")
    columns = make_column_transformer((StandardScaler(), ["hours"]), (OneHotEncoder(), ["job"]))
    found = twins(make_pipeline(columns, LogisticRegression()).fit(X, y), X, sensitive_features=sex, **QUICK)
    assert clear_columns(found, "f") == ["hours"]
    assert found.steps["probability"].between(0, 1).all()


def test_chance_allows_for_all_values_at_once() -> None:
    rng = np.random.default_rng(0)
    alarms = sum((chance(rng.normal(size=30), rng.normal(size=(39, 30))) <= 0.05).any() for _ in range(400))
    assert alarms / 400 < 0.09  # each by itself, one of thirty would be below 0.05 nearly always
    assert chance(np.array([5.0, 0.0]), rng.normal(size=(39, 2)))[0] == 1 / 40


def test_an_audit_has_them_if_asked() -> None:
    X, sex = lipton(60)
    y = fair(X).predict(X)
    without = evenhand.audit(y, X, y, sensitive_features=sex, n_bootstrap=20)
    found = evenhand.audit(y, X, y, sensitive_features=sex, n_bootstrap=20, twins={"n_null": 19})
    assert without.twins is None
    assert without.to_dict()["twins"] is None
    assert found.twins.about["n_null"] == 19
    assert found.twins.summary() in found.summary()
    assert found.to_dict()["twins"] == found.twins.to_dict()
    pd.testing.assert_frame_equal(found.metrics, without.metrics)
    with pytest.raises(ValueError, match="Got the options of twins='edge'.*Did you mean 'edges'"):
        evenhand.audit(y, X, y, sensitive_features=sex, twins={"edge": []})
    with pytest.raises(ValueError, match="Got X=None"):
        evenhand.audit(y, None, y, sensitive_features=sex, twins=True)


def test_people_can_be_numbered_by_their_rows(hired: Any) -> None:
    rows = 1000 + np.arange(800)
    there = hired.numbered(rows)
    np.testing.assert_array_equal(there.people["counterpart"], hired.people["counterpart"] + 1000)
    np.testing.assert_array_equal(there.steps["person"], hired.steps["person"] + 1000)


def test_it_is_a_name_of_the_library() -> None:
    assert {"twins", "Twins"} <= set(evenhand.__all__)


def test_flips_stay_when_no_tree_can_say_which_column_carries_them():
    rng, sex = np.random.default_rng(0), np.repeat(["f", "m"], [20, 40])
    X = pd.DataFrame({"age": rng.integers(20, 60, 60), "job": rng.choice(list("ab"), 60)})
    found = twins(np.where(sex == "m", "yes", "no"), X, sensitive_features=pd.Series(sex, name="sex"))
    assert found.flips["share"].tolist() == [1, 0]
    assert found.columns.empty
    assert "No column is named: the trees that stand in" in found.summary()


def test_everybody_with_a_flip_is_a_whole_share_with_a_width():
    rng = np.random.default_rng(0)
    sex, X = rng.choice(["f", "m"], 400), {"a": rng.normal(size=400), "b": rng.integers(0, 3, 400)}
    found = twins(np.where(sex == "m", "yes", "no"), pd.DataFrame(X), sensitive_features=pd.Series(sex))
    assert found.flips["share"].tolist() == pytest.approx([1, 0])
    assert 0.97 < found.flips["low"][0] < 0.99
