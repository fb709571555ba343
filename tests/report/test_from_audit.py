from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from evenhand.auditing import audit
from evenhand.code_version import made
from evenhand.report.from_audit import summary_of_audit, write_audit
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
    skills = {1 + at: round(skill, 4) for at, skill in X["skill"].items()}
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
    assert f"the share of “{widest}” differs between groups by up to" in study["sentence"]
    assert study["pos_label"] == ""
    table = study["tables"][0]
    assert (table["title"], table["columns"]) == (
        "What was decided in each group",
        ["group", "people", "A", "B", "C"],
    )
    for group, row in zip((0, 1), table["rows"], strict=True):
        here = grade[X["man"] == group]
        assert row[:2] == [str(group), str(len(here))]
        told = found.row("rate_of_A", group)
        assert (
            row[2]
            == f"{100 * (here == 'A').mean():.1f} % ({100 * told['low']:.1f} to {100 * told['high']:.1f})"
        )
    assert table["title"] in render(_summary(found))
    with_positive = audit(grade, X, grade, sensitive_features=X["man"], pos_label="A", n_bootstrap=50)
    named = _summary(with_positive)["studies"][0]
    assert "the share of “A” differs" in named["sentence"]
    assert not any("A" in table["columns"] for table in named["tables"])
