"""`evenhand audit --preset`: a rule's tables in the terminal, as JSON and on the page."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from evenhand import audit
from evenhand.report import read_summary
from factories import evenhand


@pytest.fixture(scope="module")
def selected(tmp_path_factory):
    """A file of an auditor's: sex, race and who was selected, nothing else."""
    rng = np.random.default_rng(0)
    n = 600
    people = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "race": rng.choice(["a", "b", "c"], n)})
    people["selected"] = np.where(rng.random(n) < np.where(people["sex"] == "m", 0.6, 0.4), "yes", "no")
    people.loc[:9, "race"] = ["?", None, "unknown", "N/A", "", "a", "a", "a", "a", "a"]
    people.loc[5:6, "sex"] = None
    path = tmp_path_factory.mktemp("selected") / "selected.csv"
    people.to_csv(path, index=False)
    return path, people


def test_a_preset_fills_a_rule_s_tables(selected, tmp_path):
    path, people = selected
    options = ("audit", path, "--sensitive", "sex", "--sensitive", "race", "--predictions", "selected")
    out = evenhand(*options, "--preset", "nyc-ll144", "--report", tmp_path / "a.html", "--summary",
                   tmp_path / "a.json")  # fmt: skip
    assert "Intersectional Categories" in out.stdout
    assert "Note: 7 people with unknown sex or race/ethnicity are in no table." in out.stdout
    assert "Tables to file" in (tmp_path / "a.html").read_text(encoding="utf-8")
    assert read_summary(tmp_path / "a.json")["studies"][0]["sheet"]["tables"][0]["title"] == "Sex Categories"
    out = evenhand(*options, "--preset", "nyc-ll144", "--json")
    found = json.loads(out.stdout)["statutory"]
    known = people.iloc[7:].query("selected == 'yes'").groupby("sex").size()
    rows = {row["sex"]: row for row in found["tables"]["Sex Categories"]}
    assert {sex: row["# Selected"] for sex, row in rows.items()} == known.to_dict()
    kept = json.loads(evenhand(*options, "--preset", "nyc-ll144", "--unknown", "keep", "--json").stdout)
    assert kept["statutory"]["tables"] == found["tables"]
    assert kept["statutory"]["notes"][0] == found["notes"][0]


def test_codes_are_written_as_in_the_file(selected, tmp_path):
    """A gap makes floats of whole numbers; but what is 1 in the file is not to be called 1.0."""
    _, people = selected
    people.assign(sex=people["sex"].map({"f": "1", "m": "2"})).to_csv(tmp_path / "p.csv", index=False)
    options = (
        "--sensitive",
        "sex",
        "--sensitive",
        "race",
        "--predictions",
        "selected",
        "--preset",
        "nyc-ll144",
    )
    found = json.loads(evenhand("audit", tmp_path / "p.csv", *options, "--json").stdout)["statutory"]
    assert [row["sex"] for row in found["tables"]["Sex Categories"]] == ["1", "2"]


def test_how_small_a_category_may_be_can_be_said(selected):
    path, _ = selected
    options = ("audit", path, "--sensitive", "sex", "--sensitive", "race", "--predictions", "selected")
    for small, left in (("0", 0), ("0.4", 3)):
        out = evenhand(*options, "--preset", "nyc-ll144", "--small", small, "--json")
        rows = json.loads(out.stdout)["statutory"]["tables"]["Race/Ethnicity Categories"]
        assert sum(row["Impact Ratio"] is None for row in rows) == left


def test_which_column_is_the_sex_can_be_said(selected, tmp_path):
    _, people = selected
    people.rename(columns={"sex": "x", "race": "y"}).to_csv(tmp_path / "p.csv", index=False)
    options = (
        "audit",
        tmp_path / "p.csv",
        "--sensitive",
        "x",
        "--sensitive",
        "y",
        "--predictions",
        "selected",
    )
    out = evenhand(*options, "--preset", "nyc-ll144", code=2)
    assert "expected one that is the sex" in out.stderr
    out = evenhand(*options, "--preset", "nyc-ll144", "--sex", "x", "--race", "y", "--json")
    assert set(json.loads(out.stdout)["statutory"]["tables"]["Sex Categories"][0]) >= {"x", "Impact Ratio"}
    out = evenhand(*options, "--sex", "x", code=2)
    assert "no effect without --preset" in out.stderr
    out = evenhand(*options, "--preset", "nyc", "--json", code=2)
    assert "expected one of 'nyc-ll144', 'four-fifths'" in out.stderr


def test_a_saved_model_s_people_of_unknown_group_are_counted(fitted, tmp_path):
    people = pd.read_csv(fitted.people)
    people.loc[:4, "sex"] = ["?", None, "unknown", "N/A", "?"]
    people.to_csv(tmp_path / "p.csv", index=False)
    out = evenhand("audit", tmp_path / "p.csv", "--model", fitted.model, "--preset", "four-fifths", "--json")
    found = json.loads(out.stdout)["statutory"]
    assert "5 people with unknown sex are in no table." in found["notes"][0]
    assert sum(row["People"] for row in found["tables"]["sex"]) == 395


def test_scores_without_labels_have_scoring_rates(selected, tmp_path):
    _, people = selected
    people = people.iloc[7:].assign(score=np.random.default_rng(0).integers(0, 100, 593))
    people.drop(columns="selected").to_csv(tmp_path / "p.csv", index=False)
    options = (
        "audit",
        tmp_path / "p.csv",
        "--sensitive",
        "sex",
        "--sensitive",
        "race",
        "--predictions",
        "score",
    )
    out = evenhand(*options, "--threshold", 70, "--preset", "nyc-ll144", "--rate", "scoring", "--json")
    found = json.loads(out.stdout)
    high = people["score"] > people["score"].median()
    rates = {row["sex"]: row["Scoring Rate"] for row in found["statutory"]["tables"]["Sex Categories"]}
    assert rates == pytest.approx(high.groupby(people["sex"]).mean().to_dict())
    assert found["about"]["positive"] == "70 or more"
    rows = evenhand(*options, "--threshold", 70, "--preset", "nyc-ll144", "--json")
    tables = json.loads(rows.stdout)["statutory"]["tables"]
    assert sum(row["# Selected"] for row in tables["Sex Categories"]) == (people["score"] >= 70).sum()
    out = evenhand(*options, code=2)
    assert "Give a threshold" in out.stderr


@pytest.mark.parametrize("weight", [None, "times"])
def test_the_median_is_that_of_everybody_who_was_scored(tmp_path, weight):
    """Also of people of unknown sex, who are in no table; the command and the library agree."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"sex": rng.choice(["f", "m"], 400), "race": rng.choice(["a", "b"], 400)})
    people["score"], people["times"] = rng.integers(0, 100, 400), rng.choice([1, 2, 5], 400)
    people.loc[people["score"] > 80, "sex"] = "unknown"
    people.to_csv(tmp_path / "p.csv", index=False)
    weighted = () if weight is None else ("--weight", weight)
    out = evenhand("audit", tmp_path / "p.csv", "--sensitive", "sex", "--sensitive", "race", "--predictions",
                   "score", "--threshold", 70, "--preset", "nyc-ll144", "--rate", "scoring", "--json",
                   *weighted)  # fmt: skip
    found = json.loads(out.stdout)["statutory"]
    whole = audit(
        people["score"], None, None, sensitive_features=people[["sex", "race"]], threshold=70,
        sample_weight=None if weight is None else people[weight],
    ).statutory("nyc-ll144", rate="scoring")  # fmt: skip
    assert found == json.loads(json.dumps(whole.to_dict()))
    scored = 400 if weight is None else people[weight].sum()
    assert f"of all {scored:,} people who were scored" in " ".join(found["notes"])


@pytest.mark.parametrize("kind", ["csv", "folder"])
def test_people_in_no_table_are_weighted_like_those_in_the_tables(selected, tmp_path, kind):
    people = selected[1].assign(times=np.arange(600) % 4)
    lacking = people.loc[people["sex"].isna() | people["race"].isin(["?", None, "unknown", "N/A", ""])]
    path = tmp_path / ("people" if kind == "folder" else "p.csv")
    if kind == "folder":
        path.mkdir()
        people.to_parquet(path / "a.parquet")
    else:
        people.to_csv(path, index=False)
    out = evenhand("audit", path, "--sensitive", "sex", "--sensitive", "race", "--predictions", "selected",
                   "--weight", "times", "--preset", "four-fifths", "--small", 0, "--json")  # fmt: skip
    found = json.loads(out.stdout)["statutory"]
    assert f"{lacking['times'].sum()} people with unknown sex or race are in no table" in found["notes"][0]
    assert "fewer than" not in " ".join(found["notes"])


def test_merged_groups_count_by_their_own_values(selected, tmp_path):
    """Small groups that are merged for the audit are categories of their own in a rule's tables."""
    people = selected[1].copy()
    people.loc[100:109, "race"] = "d"
    people.to_csv(tmp_path / "p.csv", index=False)
    options = ("audit", tmp_path / "p.csv", "--sensitive", "sex", "--sensitive", "race", "--predictions",
               "selected", "--preset", "nyc-ll144", "--json")  # fmt: skip
    apart, merged = (json.loads(evenhand(*options, *more).stdout) for more in ((), ("--merge-small", "rest")))
    assert "rest" in merged["about"]["groups"]
    assert merged["statutory"]["tables"] == apart["statutory"]["tables"]
    assert {row["race"] for row in merged["statutory"]["tables"]["Race/Ethnicity Categories"]} == {*"abcd"}
