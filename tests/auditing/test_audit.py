from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from evenhand import CooperativeBandits
from evenhand.auditing import audit
from evenhand.metrics import (
    calibration_error,
    consistency,
    delta,
    discrimination,
    metric_free_gap,
    positive_rates,
)

RNG = np.random.default_rng(0)
N = 400
X = pd.DataFrame(
    {
        "sex": RNG.choice(["f", "m"], N),
        "age": RNG.integers(18, 80, N),
        "job": RNG.choice(["cook", "clerk", "carter"], N),
    }
)
OTHERS = X[["age", "job"]]
Y = np.where(X["age"] / 40 + 0.5 * (X["sex"] == "m") + 0.4 * RNG.normal(size=N) > 1.5, "yes", "no")
QUICK: dict[str, Any] = {"n_bootstrap": 50}


def pipeline(last: Any, categories: list[str]) -> Any:
    return make_pipeline(
        make_column_transformer((OneHotEncoder(), categories), (StandardScaler(), ["age"])), last
    )


@pytest.fixture(scope="module")
def with_sex() -> Any:
    return pipeline(LogisticRegression(), ["sex", "job"]).fit(X, Y)


@pytest.fixture(scope="module")
def audited(with_sex: Any) -> Any:
    return audit(with_sex, X, Y, sensitive_features="sex", **QUICK)


def test_weights_of_columns_reach_the_neighbours(with_sex: Any, audited: Any) -> None:
    found = audit(with_sex, X, Y, sensitive_features="sex", weights={"age": 0}, **QUICK)
    assert found.value("consistency") == consistency(with_sex.predict(X), X=X[["job"]])
    assert found.value("consistency") < audited.value("consistency") - 0.05


def test_of_many_labels_scores_are_about_the_positive_one() -> None:
    grade = np.where(X["age"] > 60, "a", np.where(Y == "yes", "b", "c"))
    model = LogisticRegression(max_iter=500).fit(X[["age"]], grade)
    said = model.predict_proba(X[["age"]])
    for given, features in ((model, X[["age"]]), (said, None)):
        found = audit(given, features, grade, sensitive_features=X["sex"], pos_label="b", **QUICK)
        row = found.row("auc")
        assert row["value"] == pytest.approx(roc_auc_score(grade == "b", said[:, 1]))
        assert row["low"] < row["value"] < row["high"]
        calibrated = calibration_error(grade == "b", said[:, 1])
        assert found.value("calibration_error") == pytest.approx(calibrated)
    unnamed = audit(said, None, grade, sensitive_features=X["sex"], **QUICK)
    assert unnamed.value("auc") == pytest.approx(roc_auc_score(grade, said, multi_class="ovr"))


def test_with_one_of_the_models_groups_nothing_is_compared() -> None:
    ages, sex = OTHERS[["age"]].to_numpy() / 80, X["sex"].to_numpy()
    model = CooperativeBandits(0, epochs=5, random_state=0).fit(ages, Y, sensitive_features=sex)
    women = sex == "f"
    found = audit(model, ages[women], Y[women], sensitive_features=sex[women], **QUICK)
    for metric in ("discrimination", "delta", "equal_opportunity_difference", "equalized_odds_difference"):
        row = found.row(metric)
        assert np.isnan([row["value"], row["low"], row["high"]]).all()
        assert row["people"] == 0
    assert found.value("accuracy") == found.value("accuracy", "f") > 0
    decisions = model.probabilities_by_group(ages[women]).argmax(2)
    assert found.value("flip_rate") == (decisions[:, 0] != decisions[:, 1]).mean() > 0
    text = repr(found)
    assert text.startswith(f"<Audit of {women.sum()} people in 1 group>")
    assert f"{women.sum()} people in 1 group (f: {women.sum()}). Nobody here is in m, which the model" in text
    assert "There is only one group, so nothing can be compared between groups." in text
    assert " of m" not in text
    assert "counts for" not in text


def test_a_model_with_the_sensitive_column(with_sex: Any, audited: Any) -> None:
    found = audited
    decided = with_sex.predict(X)
    flipped = with_sex.predict(X.assign(sex=np.where(X["sex"] == "f", "m", "f")))
    assert found.about["how"] == "column"
    assert found.value("flip_rate") == (decided != flipped).mean() > 0.05
    assert found.value("discrimination") == discrimination(Y, decided, sensitive_features=X["sex"])
    assert found.value("delta") == delta(Y, decided, sensitive_features=X["sex"])
    rates = positive_rates(Y, decided, sensitive_features=X["sex"])
    assert {group: found.value("positive_rate", group) for group in "fm"} == pytest.approx(rates)
    # Neighbours by the other features alone: sex itself makes nobody different.
    assert found.value("consistency") == pytest.approx(consistency(decided, X=OTHERS))
    row = found.row("flip_rate", "f")
    assert row["people"] == (X["sex"] == "f").sum()
    assert row["low"] <= row["value"] <= row["high"]


def test_people_with_the_largest_gap_come_with_what_every_group_says(with_sex: Any) -> None:
    found = audit(with_sex, X, Y, sensitive_features="sex", n_listed=7, **QUICK)
    people = found.people
    assert len(people) == 7
    assert (people["gap"].diff().dropna() <= 0).all()
    assert people["gap"].iloc[0] == pytest.approx(found.value("gap_maximum_kl"))
    at = people.index[0]
    for group in "fm":
        as_group = X.iloc[[at]].assign(sex=group)
        assert people[f"P(yes) as {group}"].iloc[0] == pytest.approx(with_sex.predict_proba(as_group)[0, 1])
        assert people[f"decided as {group}"].iloc[0] == with_sex.predict(as_group)[0]
    assert people[["age", "job"]].iloc[0].tolist() == X[["age", "job"]].iloc[at].tolist()
    assert people["label"].iloc[0] == Y[at]


def test_neighbours_treated_differently(with_sex: Any) -> None:
    found = audit(with_sex, X, Y, sensitive_features="sex", n_listed=1000, **QUICK)
    pairs = found.neighbours
    assert (pairs["decision"] != pairs["neighbour_decision"]).all()
    assert (pairs["similarity"].diff().dropna() <= 0).all()
    assert not pd.DataFrame(np.sort(pairs[["person", "neighbour"]], axis=1)).duplicated().any()
    decided = with_sex.predict(X)
    for _, pair in pairs.iterrows():
        i, j = pair["person"], pair["neighbour"]
        assert [decided[i], decided[j]] == [pair["decision"], pair["neighbour_decision"]]
        apart = [name for name in OTHERS if X[name][i] != X[name][j]]
        assert all(f"{name} {X[name][i]} | {X[name][j]}" in pair["differ_in"] for name in apart)
        assert (pair["differ_in"] == "nothing") == (not apart)


def test_a_model_that_does_not_see_the_group() -> None:
    model = pipeline(LogisticRegression(), ["job"]).fit(OTHERS, Y)
    for given in (OTHERS, X):
        found = audit(model, given, Y, sensitive_features=X["sex"], **QUICK)
        assert found.about["how"] == "blind"
        assert found.value("flip_rate") == found.value("gap_maximum_kl") == 0
        assert found.people.empty
        assert "no single column that it uses reveals the group" in found.summary()


def test_a_feature_with_few_of_the_other_group_is_compared() -> None:
    # 4 % of the mechanics are women, and 4 % of the nurses men.
    usual = np.arange(N) % 25 != 0
    job = np.where((X["sex"] == "f") == usual, "nurse", "mechanic")
    rows, decided = X.assign(job=job), np.where(job == "nurse", "no", "yes")
    found = audit(decided, rows, Y, sensitive_features=rows["sex"], pos_label="yes", min_count=5, **QUICK)
    alone = audit(decided, rows[["sex", "age"]], Y, sensitive_features="sex", pos_label="yes", **QUICK)
    assert found.about["subgroups_examined"] > alone.about["subgroups_examined"]
    assert found.value("consistency") > 0.9 > alone.value("consistency")


def test_a_column_that_tells_the_group_and_more_is_no_blindness() -> None:
    cooks = np.where(X["job"] == "cook", "cooks", "others")
    rows = X.assign(job=X["job"].map({"cook": 0, "clerk": 1, "carter": 2}))[["job", "age"]]
    model = DecisionTreeClassifier(max_depth=1).fit(rows, cooks == "cooks")
    found = audit(model, rows, cooks == "cooks", sensitive_features=cooks, **QUICK)
    assert (found.about["how"], found.about["sensitive_columns"]) == ("values", ["job"])
    assert found.value("flip_rate") == 1
    assert "100.0 % (" in found.summary()
    assert "set to every value that they take in another group" in found.summary()


def test_what_could_not_be_measured_is_not_zero(tmp_path: Any) -> None:
    income = RNG.normal(size=N)
    rows, rich = pd.DataFrame({"income": income, "age": X["age"]}), income > 0
    model = DecisionTreeClassifier(max_depth=1).fit(rows, rich)
    found = audit(model, rows, rich, sensitive_features=np.where(rich, "rich", "poor"), **QUICK)
    assert found.about["how"] == "unmeasured"
    assert np.isnan(found.value("flip_rate"))
    assert np.isnan(found.value("flip_rate", "rich"))
    assert found.people.empty
    assert "Whether decisions depend on the group was not measured" in found.summary()
    assert any("can be told from column 'income', which has too many" in note for note in found.notes)
    assert found.to_html(tmp_path / "page.html").exists()
    assert '"metric": "flip_rate",\n   "group": null,\n   "value": null' in found.to_json()


@pytest.mark.parametrize("in_pipeline", [False, True])
def test_our_policies(in_pipeline: bool) -> None:
    rows = OTHERS[["age"]] / 40
    bandits = CooperativeBandits(divergence_weight=0.1, epochs=2, random_state=0)
    if in_pipeline:
        scaled = StandardScaler().fit(rows)
        bandits.fit(scaled.transform(rows), Y, sensitive_features=X["sex"])
        model: Any = make_pipeline(scaled, bandits)
        by_group = bandits.probabilities_by_group(scaled.transform(rows))
    else:
        model = bandits.fit(rows, Y, sensitive_features=X["sex"])
        by_group = bandits.probabilities_by_group(rows)
    found = audit(model, rows, Y, sensitive_features=X["sex"], epsilon=0.01, divergence="hellinger", **QUICK)
    own = (X["sex"] == "m").to_numpy().astype(int)
    want = metric_free_gap(by_group, own, divergence="hellinger", epsilon=0.01)
    assert found.about["how"] == "policies"
    got = [found.value(f"gap_{part}_hellinger") for part in ("mean", "p95", "maximum", "share")]
    assert got == pytest.approx(list(want))
    assert found.value("flip_rate") == (by_group.argmax(2)[:, 0] != by_group.argmax(2)[:, 1]).mean()
    with pytest.raises(ValueError, match="Got group 'x' in sensitive_features"):
        audit(model, rows, Y, sensitive_features=X["sex"].replace("f", "x"), **QUICK)


def test_fairlearns_threshold_optimizer_is_told_the_group() -> None:
    rows, truth = OTHERS[["age"]] / 40, (Y == "yes").astype(int)
    model = ThresholdOptimizer(
        estimator=LogisticRegression(), constraints="demographic_parity", predict_method="predict_proba"
    ).fit(rows, truth, sensitive_features=X["sex"])
    found = audit(model, rows, truth, sensitive_features=X["sex"], **QUICK)
    assert found.about["how"] == "told"
    assert found.value("flip_rate") > 0.02
    assert found.value("discrimination") < 0.15
    as_women = model._pmf_predict(rows, sensitive_features=["f"] * N)[:, 1]
    at = found.people.index[0]
    assert found.people["P(1) as f"].iloc[0] == pytest.approx(as_women[at])


def test_fairlearns_randomised_classifier_gives_the_same_answer_twice() -> None:
    rows = X.assign(sex=(X["sex"] == "m").astype(int))[["sex", "age"]] / 40
    truth = (Y == "yes").astype(int)
    model = ExponentiatedGradient(LogisticRegression(), DemographicParity(difference_bound=0.02), max_iter=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairlearn sets items in ways that pandas 3 deprecates
        model.fit(rows, truth, sensitive_features=X["sex"])
    one, two = (audit(model, rows, truth, sensitive_features=X["sex"], **QUICK) for _ in range(2))
    assert one.to_json() == two.to_json()
    assert one.about["how"] == "column"
    assert one.value("flip_rate") > 0


@pytest.mark.parametrize("kind", ["decisions", "scores", "probabilities", "deciles"])
def test_bare_predictions(with_sex: Any, audited: Any, kind: str) -> None:
    probabilities = with_sex.predict_proba(X)
    given, threshold = {
        "decisions": (with_sex.predict(X), None),
        "scores": (pd.Series(probabilities[:, 1]), None),
        "probabilities": (probabilities, None),
        "deciles": (np.ceil(10 * probabilities[:, 1]), 6),
    }[kind]
    found = audit(given, X, Y, sensitive_features="sex", threshold=threshold, **QUICK)
    assert found.about["how"] == "given"
    assert "flip_rate" not in set(found.metrics["metric"])
    assert found.people.empty
    for metric in ("accuracy", "discrimination", "consistency"):
        assert found.value(metric) == audited.value(metric)
    measured = set(found.metrics["metric"])
    assert ("auc" in measured) == (kind != "decisions")
    assert ("calibration_error" in measured) == (kind in ("scores", "probabilities"))


def test_predictions_need_no_features() -> None:
    found = audit(Y, None, Y, sensitive_features=X["sex"], **QUICK)
    assert found.value("accuracy") == 1
    assert "consistency" not in set(found.metrics["metric"])
    assert any("no features" in note for note in found.notes)


def test_more_labels_and_crossed_groups() -> None:
    truth = np.array(["a", "b", "c"])[np.clip(X["age"] // 25, 0, 2)]
    model = pipeline(LogisticRegression(), ["sex", "job"]).fit(X, truth)
    found = audit(model, X, truth, sensitive_features=["sex", "job"], min_count=5, **QUICK)
    assert len(found.about["groups"]) == 6
    assert found.about["positive"] is None
    assert "positive_rate" not in set(found.metrics["metric"])
    decided = model.predict(X)
    assert found.value("discrimination") == discrimination(
        truth, decided, sensitive_features=X[["sex", "job"]]
    )
    groups = list(found.about["groups"])
    rates = {label: [found.value(f"rate_of_{label}", group) for group in groups] for label in "abc"}
    widest = max(rates, key=lambda label: max(rates[label]) - min(rates[label]))
    assert max(rates[widest]) - min(rates[widest]) == pytest.approx(found.value("discrimination"))
    assert f"Of the 3 labels, the groups differ most in {widest!r}: " in found.summary()
    named = audit(model, X, truth, sensitive_features=["sex", "job"], pos_label="c", **QUICK)
    assert named.value("positive_rate") == pytest.approx((decided == "c").mean())


def test_neighbours_are_sampled_above_a_size_and_it_is_said(with_sex: Any, audited: Any) -> None:
    found = audit(with_sex, X, Y, sensitive_features="sex", neighbour_people=150, **QUICK)
    assert found.row("consistency")["people"] == 150
    assert any("150 people drawn at random" in note for note in found.notes)
    assert found.value("consistency") == pytest.approx(audited.value("consistency"), abs=0.1)


def test_same_seed_same_audit(with_sex: Any) -> None:
    one, two, other = (
        audit(with_sex, X, Y, sensitive_features="sex", random_state=seed, **QUICK) for seed in (1, 1, 2)
    )
    assert one.to_json() == two.to_json() != other.to_json()


def test_a_group_without_positives_is_named() -> None:
    truth = np.where((X["job"] == "cook") & (Y == "yes"), "no", Y)
    found = audit(Y, OTHERS, truth, sensitive_features=X["job"], **QUICK)
    assert np.isnan(found.value("true_positive_rate", "cook"))
    assert any(note.startswith("Nobody in cook counts for the true positive rate") for note in found.notes)


def test_bad_input_says_what_came_and_what_was_wanted(with_sex: Any) -> None:
    for arguments, message in [
        ({"sensitive_features": "sexx"}, "Got sensitive_features='sexx'.*Did you mean 'sex'"),
        ({"sensitive_features": ["sex", "jobs"]}, "Got sensitive_features='jobs'.*Did you mean 'job'"),
        ({"sensitive_features": None}, "an audit needs the groups"),
        ({"sensitive_features": X["sex"][:9]}, "sensitive_features for 9 people"),
        ({"y": Y[:9]}, "Got X of 400 people and 9 labels in y"),
        ({"k": N}, "Got k=400, but expected less than the number of people, 400"),
        ({"X": None, "sensitive_features": X["sex"]}, "Got a model and X=None"),
        ({"divergence": "k_l"}, "Did you mean 'kl'"),
        ({"epsilon": -1}, "Got epsilon=-1"),
        ({"threshold": 0.5}, "Got threshold=0.5 with a model, but a model decides by itself"),
        ({"confidence": 95}, "Got confidence=95"),
        ({"pos_label": "maybe"}, "pos_label='maybe', but the labels are 'no', 'yes'"),
        (
            {"y": (Y == "yes").astype(int)},
            "Got 0, 1 among the labels, but the model's decisions are 'no', 'yes'",
        ),
    ]:
        given = {"X": X, "y": Y, "sensitive_features": "sex", **QUICK, **arguments}
        with pytest.raises(ValueError, match=message):
            audit(with_sex, given.pop("X"), given.pop("y"), **given)
    with pytest.raises(ValueError, match="but no X with such a column"):
        audit(Y, None, Y, sensitive_features="sex")
    dummy = DummyClassifier(strategy="prior").fit(X, Y)
    found = audit(dummy, X, Y, sensitive_features="sex", **QUICK)
    assert "Everybody got the decision 'no'" in found.summary()


def test_decisions_without_labels_are_compared_between_groups(with_sex: Any, tmp_path: Any) -> None:
    decided = with_sex.predict(X)
    for asked in (with_sex, decided, (decided == "yes").astype(int)):
        with_labels = audit(decided, X, Y, sensitive_features="sex", **QUICK)
        found = audit(asked, X, None, sensitive_features="sex", **QUICK)
        for metric in ("discrimination", "positive_rate", "consistency"):
            assert found.value(metric) == with_labels.value(metric)
        for metric in ("accuracy", "delta", "equalized_odds_difference", "balanced_accuracy"):
            assert np.isnan(found.value(metric))
        for metric in ("accuracy", "true_positive_rate", "false_positive_rate"):
            assert np.isnan(found.value(metric, "f"))
        assert "Accuracy was not measured: no labels were given" in found.summary()
        assert "the true label of" not in found.summary()
        assert "counts for the" not in found.summary()
        assert len(found.subgroups) == len(with_labels.subgroups)
        assert found.to_dict()["about"]["label_rate"] is None
        found.to_html(tmp_path / "a.html")
    found = audit(with_sex, X, None, sensitive_features="sex", **QUICK)
    assert found.value("flip_rate") > 0
    assert found.people["label"].isna().all()
    three = audit(list("abc") * 4, X[:12], None, sensitive_features=X["sex"][:12], **QUICK)
    assert any("subgroups were left out" in note for note in three.notes)


def test_scores_need_labels_or_a_threshold() -> None:
    for scores in (np.linspace(0, 1, N), np.arange(N), np.full((N, 2), 0.5)):
        with pytest.raises(ValueError, match=r"no labels \(y=None\).* or a threshold for one score"):
            audit(scores, X, None, sensitive_features="sex", **QUICK)
    found = audit(np.arange(N), X, None, sensitive_features="sex", threshold=300, **QUICK)
    assert found.about["decisions"] == {"below 300": 300, "300 or more": N - 300}
    assert found.about["positive"] == "300 or more"
    assert found.value("positive_rate") == (N - 300) / N
    assert found.thresholds.columns.tolist() == ["threshold", "positive_rate", "discrimination"]
    with pytest.raises(ValueError, match="non-numeric scores"):
        audit(Y, X, None, sensitive_features="sex", threshold=0.5, **QUICK)
    with pytest.raises(ValueError, match="Got X of 400 people and 2 predictions"):
        audit(Y[:2], X, None, sensitive_features=X["sex"][:2], **QUICK)
