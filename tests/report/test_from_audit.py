from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from evenhand.auditing import audit
from evenhand.code_version import made
from evenhand.report.from_audit import summary_of_audit, write_audit
from evenhand.report.persons import shown
from evenhand.report.render import render


def _summary(found):
    how = made("python", seeds=[0], data=[])
    return summary_of_audit(found, name="people", label="hired", sensitive="man", how=how)


@pytest.mark.parametrize("positive", ["yes", "no"])
def test_a_model_that_sees_the_group(people, positive):
    X, y = people
    model = LogisticRegression().fit(X, y)
    found = audit(model, X, y, sensitive_features="man", pos_label=positive, n_bootstrap=50)
    summary = _summary(found)
    study = summary["studies"][0]
    metrics = study["models"][0]["metrics"]
    assert metrics["flip_rate"]["value"] == found.value("flip_rate")
    assert metrics["gap"]["value"] == found.value("gap_mean_kl")
    assert [row["positive_rate"]["value"] for row in study["groups"]] == [
        found.value("positive_rate", group) for group in (0, 1)
    ]
    assert study["persons"]["flips"] == round(found.value("flip_rate") * 400)
    at = study["persons"]["rows"][0]["person"] - 1
    for group in (0, 1):
        said = model.predict_proba(X.iloc[[at]].assign(man=group))[0]
        told = study["persons"]["rows"][0]["probabilities"][group]
        assert told == pytest.approx(said[["no", "yes"].index(positive)])
    table = next(table for table in study["tables"] if table["columns"][:2] == ["person", "neighbour"])
    decided = model.predict(X)
    for person, neighbour, _, _, _, *decisions, _ in table["rows"]:
        assert decisions == [decided[int(person) - 1], decided[int(neighbour) - 1]]
    assert len(render(summary)) > 4_000_000


def test_groups_may_be_floats(people):
    X, y = people
    found = audit(y, X, y, sensitive_features=X["man"].astype(float), n_bootstrap=50)
    rows = _summary(found)["studies"][0]["groups"]
    assert [row["group"] for row in rows] == ["0.0", "1.0"]
    assert [row["positive_rate"]["value"] for row in rows] == [
        found.value("positive_rate", group) for group in (0.0, 1.0)
    ]


def test_people_are_in_the_order_of_every_report_whoever_flips_first(people):
    X, y = people
    model = LogisticRegression().fit(X, y)
    found = audit(model, X, y, sensitive_features="man", n_bootstrap=50, n_listed=400)
    rows = _summary(found)["studies"][0]["persons"]["rows"]
    keys = [(not row["flips"], -row["gap"]) for row in rows]
    assert keys == sorted(keys)
    assert 0 < sum(row["flips"] for row in rows) < len(rows)
    skills = {1 + at: shown(skill) for at, skill in X["skill"].items()}
    assert [row["features"][-1] for row in rows] == [skills[row["person"]] for row in rows]


def test_dates_of_an_audit_are_shown_as_dates_and_whole_numbers_without_a_point(people):
    X, y = people
    found = audit(LogisticRegression().fit(X, y), X, y, sensitive_features="man", n_bootstrap=50)
    dated = found.people.assign(applied=pd.Timestamp("2024-03-02", tz="UTC"), branch=11.0)
    persons = _summary(replace(found, people=dated))["studies"][0]["persons"]
    assert persons["columns"][-2:] == ["applied", "branch"]
    assert persons["rows"][0]["features"][-2:] == ["2024-03-02", 11]


def test_an_audit_is_a_file_in_one_call(people, tmp_path):
    X, y = people
    path = write_audit(audit(y, X, y, sensitive_features=X["man"], n_bootstrap=50), tmp_path / "a.html")
    assert "In words" in path.read_text(encoding="utf-8")


def test_bare_predictions_have_nobody_to_show(people):
    X, y = people
    study = _summary(audit(y, X, y, sensitive_features=X["man"], n_bootstrap=50))["studies"][0]
    assert study["persons"] is None
    assert "flip_rate" not in study["models"][0]["metrics"]


def test_of_many_labels_the_share_of_each_is_told_by_group_and_the_widest_is_named(people):
    X, _ = people
    grade = np.where(X["skill"] > 1, "A", np.where((X["skill"] > 0) & (X["man"] == 1), "B", "C"))
    found = audit(grade, X, grade, sensitive_features=X["man"], n_bootstrap=50)
    study = _summary(found)["studies"][0]
    shares = pd.crosstab(X["man"], grade, normalize="index")
    widest = (shares.max() - shares.min()).idxmax()
    least, most = shares[widest].idxmin(), shares[widest].idxmax()
    assert f"the share of “{widest}” differs between man = {least} and man = {most} by" in study["sentence"]
    assert study["pos_label"] == ""
    for group, row in zip((0, 1), study["groups"], strict=True):
        told = found.row("rate_of_A", group)
        assert row["decided"]["A"] == {"value": told["value"], "low": told["low"], "high": told["high"]}
        assert told["value"] == (grade[X["man"] == group] == "A").mean()
    assert "Share of each label among the decisions, by group" in render(_summary(found))
    with_positive = audit(grade, X, grade, sensitive_features=X["man"], pos_label="A", n_bootstrap=50)
    named = _summary(with_positive)["studies"][0]
    assert "the share of “A” differs" in named["sentence"]
    assert "decided" not in named["groups"][0]


def test_what_limits_a_finding_stands_beside_it_and_the_words_come_first(people):
    X, y = people
    found = audit(y, X, y, sensitive_features=X["man"], n_bootstrap=50)
    found = replace(found, about={**found.about, "trained_on": 280})
    study = _summary(found)["studies"][0]
    assert "of these people, of whom it was trained on 280" in study["sentence"]
    accuracy = next(line for line in found.summary().splitlines() if "of the decisions are correct" in line)
    assert "trained on 280 of the 400" in accuracy
    page = render(_summary(found))
    assert page.index(">In words<") < page.index(">The groups<")


def test_the_threshold_is_told_and_what_others_would_do(people):
    X, y = people
    score = 1 / (1 + np.exp(-X["skill"]))
    found = audit(score, X, y, sensitive_features=X["man"], n_bootstrap=50)
    assert "A score of 0.5 or more is the decision 'yes'." in found.summary()
    assert found.to_dict()["about"]["threshold"] == 0.5
    rows = found.thresholds.set_index("threshold")
    for bar in (0.5, rows.index[3]):
        again = audit(score, X, y, sensitive_features=X["man"], threshold=bar, n_bootstrap=50)
        for name in ("accuracy", "discrimination", "positive_rate"):
            assert rows.loc[bar, name] == pytest.approx(again.value(name))
    assert rows["positive_rate"].is_monotonic_decreasing
    study = _summary(found)["studies"][0]
    assert any("with the threshold" in table["title"] for table in study["tables"])
    assert audit(y, X, y, sensitive_features=X["man"], n_bootstrap=50).thresholds.empty


def test_groups_too_small_to_compare_are_named_where_the_difference_is(people):
    X, y = people
    group = np.where(X.index < 4, "tiny", X["man"].astype(str))
    decided = np.where(X.index < 4, "yes", "no")
    decided[::3] = "yes"
    found = audit(decided, X, y, sensitive_features=group, n_bootstrap=50)
    rates = [np.mean(decided[group == name] == "yes") for name in ("0", "1")]
    tiny = (4 + 16 * np.mean(decided == "yes")) / 20
    assert found.value("discrimination") == pytest.approx(max(*rates, tiny) - min(*rates, tiny))
    assert found.row("discrimination")["high"] < 0.5
    line = next(
        line for line in found.summary().splitlines() if "with the smaller groups, the difference is" in line
    )
    assert "groups of fewer than 20 people are filled up to this number" in line
    assert "their own rates are 100.0 % of tiny (4 people)." in line
    assert (
        ", with groups of fewer than 20 people filled up to as many"
        in _summary(found)["studies"][0]["sentence"]
    )
    everybody = audit(decided, X, y, sensitive_features=group, min_group=1, n_bootstrap=50)
    assert "filled up" not in _summary(everybody)["studies"][0]["sentence"]
    assert everybody.value("discrimination") == pytest.approx(1 - min(rates))


def test_subgroups_have_headings_in_words(people):
    X, _ = people
    decided = np.where((X["man"] == 1) & (X["skill"] > 0), "yes", "no")
    study = _summary(audit(decided, X, None, sensitive_features="man", n_bootstrap=20))["studies"][0]
    table = next(table for table in study["tables"] if table["columns"][0] == "subgroup")
    assert table["columns"][3:9] == [
        "lowest group",
        "its people",
        "its rate",
        "highest group",
        "its people",
        "its rate",
    ]


def test_the_page_of_an_audit_names_the_sensitive_column(people, tmp_path):
    X, y = people
    for groups, wanted in ((X["man"], "man"), (X["man"].to_numpy(), "group")):
        found = audit(y, X, y, sensitive_features=groups, n_bootstrap=50)
        page = found.to_html(tmp_path / "audit.html").read_text(encoding="utf-8")
        assert f"groups by <bdi>{wanted}</bdi>" in page
        assert f"differs between {wanted} = 0 and {wanted} = 1 by" in page
