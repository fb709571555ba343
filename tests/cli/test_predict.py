from __future__ import annotations

import csv
import hashlib
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand import CooperativeBandits, load, save
from evenhand.tables.csv_format import MISSING_MARKS
from evenhand.tables.files import read_table
from factories import FIT, evenhand, make_people


def test_every_row_gets_decision_probabilities_and_flip(fitted, tmp_path):
    out = evenhand("predict", fitted.model, fitted.people, "-o", tmp_path / "d.csv", "--chunk", "37")
    decided = pd.read_csv(tmp_path / "d.csv", dtype=str, keep_default_na=False)
    given = pd.read_csv(fitted.people, dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(decided[given.columns], given)
    own = np.where(decided["sex"] == "f", decided["probability_as_f"], decided["probability_as_m"])
    assert (decided["probability"] == own).all()
    yes = {group: decided[f"probability_as_{group}"].astype(float) > 0.5 for group in "fm"}
    assert ((decided["decision"] == "yes") == (decided["probability"].astype(float) > 0.5)).all()
    assert ((decided["would_flip"] == "True") == (yes["f"] != yes["m"])).all()
    assert "Decided about 400 people" in out.stdout


def test_chunks_do_not_change_decisions_and_parquet_says_the_same_as_csv(fitted, tmp_path):
    people = pd.read_csv(fitted.people)
    people.to_parquet(tmp_path / "p.parquet")
    for name, source, chunk in (("a.csv", fitted.people, 400), ("b.csv", fitted.people, 7)):
        evenhand("predict", fitted.model, source, "-o", tmp_path / name, "--chunk", chunk)
    evenhand("predict", fitted.model, tmp_path / "p.parquet", "--chunk", "90")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    from_csv, from_parquet = pd.read_csv(tmp_path / "a.csv"), pd.read_parquet(tmp_path / "p.decided.parquet")
    assert from_parquet["decision"].tolist() == from_csv["decision"].tolist()
    np.testing.assert_allclose(from_parquet["probability"], from_csv["probability"])


def test_rows_that_cannot_be_scored_are_rejected_with_line_and_reason(fitted, tmp_path):
    good = make_people(3)
    lines = good.to_csv(index=False).splitlines()
    lines[2:2] = [
        "abc,01.01.1980,cook,1,f,no",
        "0.1,01.01.1980,cook,1,x,no",
        "0.1,01.01.1980,cook,1,,no",
        "0.1,1980/13/45,cook,1,m,no",
        "0.1,01.01.1980,cook",
        "inf,01.01.1980,cook,1,m,no",
    ]
    path = tmp_path / "p.csv"
    path.write_bytes(("\n".join(lines) + "\n").encode() + b"0.2,01.01.1980,c\xffok,1,f,no\n")
    out = evenhand("predict", fitted.model, path)
    assert "7 rows could not be scored" in out.stderr
    rejects = pd.read_csv(tmp_path / "p.rejects.csv", keep_default_na=False)
    assert rejects["line"].tolist() == [3, 4, 5, 6, 7, 8, 11]
    for reason, wanted in zip(
        rejects["reason"],
        ("'skill': got 'abc', expected a number", "group 'x' in 'sex': training had only 'f', 'm'", "'sex' is empty",
         "expected a date like %d.%m.%Y", "3 fields, but there are 6", "got 'inf'", "not UTF-8"),
        strict=True,
    ):  # fmt: skip
        assert wanted in reason
    assert len(pd.read_csv(tmp_path / "p.decided.csv")) == 3


def test_a_file_with_columns_named_as_those_of_the_rejects(fitted, tmp_path):
    (tmp_path / "p.csv").write_text(
        "line,reason,row,skill,born,job,branch,sex\n7,8,9,x,,cook,1,f\n1,2,3,0,,cook,1,f\n"
    )
    evenhand("predict", fitted.model, tmp_path / "p.csv")
    rejected = (tmp_path / "p.rejects.csv").read_text().splitlines()[1]
    assert rejected.startswith("2,\"column 'skill'")
    assert ",7,8,9,x,,cook,1,f" in rejected


def test_a_new_category_and_a_missing_number_are_scored(fitted, tmp_path):
    (tmp_path / "p.csv").write_text("skill,born,job,branch,sex\n,01.01.1980,astronaut,9,f\n?,,cook,1.0,m\n")
    evenhand("predict", fitted.model, tmp_path / "p.csv")
    assert len(pd.read_csv(tmp_path / "p.decided.csv")) == 2


def test_a_code_is_the_same_code_written_as_another_number(fitted):
    row = {"skill": "0.1", "born": "01.01.1980", "job": "cook", "sex": "f"}
    rows = pd.DataFrame([{**row, "branch": "2"}, {**row, "branch": "2.0"}])
    said = load(fitted.model).decide(rows).probability
    assert said[0] == said[1]


def test_no_cell_starts_a_formula_in_a_spreadsheet(fitted, tmp_path):
    people = make_people(4)
    people["job"] = ["=cmd|' /C calc'!A0", "@sum", "-2+3", "\t=1"]
    people["=evil()"] = "+1"
    people.to_csv(tmp_path / "p.csv", index=False)
    evenhand("predict", fitted.model, tmp_path / "p.csv")
    with (tmp_path / "p.decided.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["job"] for row in rows] == ["'=cmd|' /C calc'!A0", "'@sum", "'-2+3", "'\t=1"]
    assert {row["'=evil()"] for row in rows} == {"+1"}  # a number stays one
    assert float(rows[0]["skill"]) == people["skill"][0]


def test_standard_output_can_be_piped(fitted):
    out = evenhand("predict", fitted.model, fitted.people, "-o", "-")
    assert out.stdout.startswith("skill,born,job,branch,sex,hired,decision,probability")
    assert len(out.stdout.splitlines()) == 401


def test_json_counts(fitted, tmp_path):
    out = evenhand("predict", fitted.model, fitted.people, "-o", tmp_path / "d.csv", "--json")
    told = json.loads(out.stdout)
    assert (told["decided"], told["rejected"], told["rejects"]) == (400, 0, None)
    assert told["output"] == str(tmp_path / "d.csv")


@pytest.mark.parametrize("rejected", [0, 2])
def test_json_names_the_file_of_rejects_if_there_is_one(fitted, tmp_path, rejected):
    people, named = make_people(5), tmp_path / "named.csv"
    people.loc[: rejected - 1, "sex"] = "x"
    people.to_csv(tmp_path / "p.csv", index=False)
    for options, path in (((), tmp_path / "p.rejects.csv"), (("--rejects", named), named)):
        out = evenhand("predict", fitted.model, tmp_path / "p.csv", *options, "--json")
        told = json.loads(out.stdout)
        assert (told["decided"], told["rejected"]) == (5 - rejected, rejected)
        assert told["rejects"] == (str(path) if path.exists() else None)
        assert path.exists() == bool(rejected or options)


def test_mistakes_are_messages(fitted, tmp_path):
    (tmp_path / "none.csv").write_text("skill,born,job,branch,sex\nx,,cook,1,f\n")
    (tmp_path / "few.csv").write_text("skil,born,job,branch,sex\n1,,cook,1,f\n")
    (tmp_path / "taken.csv").write_text("skill,born,job,branch,sex,decision\n1,,cook,1,f,no\n")
    (tmp_path / "cut.csv").write_text('skill,born,job,branch,sex\n1,,"cook,1,f\n')
    (tmp_path / "not.skops").write_text("hello")
    save(CooperativeBandits(steps=1).fit([[0.0], [1.0]], [0, 1]), tmp_path / "bare.skops")
    for arguments, code, wanted in (
        ((fitted.model, tmp_path / "none.csv"), 1, "None of 1 rows could be scored"),
        ((fitted.model, tmp_path / "few.csv"), 2, "needs the column 'skill'"),
        ((fitted.model, tmp_path / "taken.csv"), 2, "already has a column 'decision'"),
        ((fitted.model, tmp_path / "cut.csv"), 1, "None of 1 rows could be scored"),
        ((fitted.model, tmp_path / "nothing.csv"), 2, "There is no file"),
        ((tmp_path / "not.skops", fitted.people), 2, "is not a model file"),
        ((tmp_path / "bare.skops", fitted.people), 2, "expected a model of `evenhand fit`"),
        ((fitted.model, fitted.people, "-o", fitted.people), 2, "which is an input"),
        ((fitted.model, fitted.people, "--rejects", fitted.people), 2, "which is an input"),
        ((fitted.model, fitted.people, "--rejects", tmp_path / "r.parquet"), 2, "expected a CSV file"),
        ((fitted.model, fitted.people, "-o", "-", "--json"), 2, "only one of them"),
        (
            (fitted.model, fitted.people, "-o", tmp_path / "d.ods"),
            2,
            "expected one of '.csv', '.csv.gz', '.parquet'",
        ),
        ((fitted.model, tmp_path), 2, "is a folder without Parquet files"),
    ):
        out = evenhand("predict", *arguments, code=code)
        assert wanted in out.stderr.replace("\n", " ")
        assert "Traceback" not in out.output
    assert not list(tmp_path.glob("*.partial"))


def test_where_nobody_can_be_scored_only_the_rejects_are_written(fitted, tmp_path):
    make_people(3).assign(sex="x").to_csv(tmp_path / "p.csv", index=False)
    evenhand("predict", fitted.model, tmp_path / "p.csv", code=1)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["p.csv", "p.rejects.csv"]
    assert len(pd.read_csv(tmp_path / "p.rejects.csv")) == 3


def test_decisions_and_rejects_never_share_a_file(fitted, tmp_path):
    held = tmp_path / "out.csv"
    held.write_text("mine\n")
    (tmp_path / "link.csv").symlink_to(held)
    for rejects in (held, tmp_path / "." / "out.csv", tmp_path / "link.csv"):
        out = evenhand("predict", fitted.model, fitted.people, "-o", held, "--rejects", rejects, code=2)
        assert "which another output goes to" in out.stderr.replace("\n", " ")
        assert held.read_text() == "mine\n"


def test_rejects_are_a_header_alone_if_all_are_scored(fitted, tmp_path):
    people, named = tmp_path / "p.csv", tmp_path / "named.csv"
    make_people(5).to_csv(people, index=False)
    evenhand("predict", fitted.model, people)
    assert not (tmp_path / "p.rejects.csv").exists()
    (tmp_path / "p.rejects.csv").write_text("of an earlier run\n")
    for options, path in (((), tmp_path / "p.rejects.csv"), (("--rejects", named), named)):
        evenhand("predict", fitted.model, people, *options, "--chunk", "2")
        assert path.read_text() == "line,reason,skill,born,job,branch,sex,hired,row\n"


def test_damaged_lines_are_rejected_and_the_rest_go_on(fitted, tmp_path):
    lines = make_people(4).to_csv(index=False).splitlines()
    lines[2:2] = ['0.1,01.01.1980,"co"ok,1,f,no', f"0.1,01.01.1980,{'x' * 200_000},1,f,no"]
    lines[5:5] = ['0.1,01.01.1980,"cook,1,f,no']
    (tmp_path / "p.csv").write_text("\n".join(lines) + "\n")
    evenhand("predict", fitted.model, tmp_path / "p.csv", "--chunk", "2")
    rejects = pd.read_csv(tmp_path / "p.rejects.csv")
    assert rejects["line"].tolist() == [3, 4, 6]
    assert rejects["reason"].str.contains("quote").all()
    assert rejects["row"].str.len().max() < 2000
    decided = pd.read_csv(tmp_path / "p.decided.csv")
    pd.testing.assert_series_equal(decided["skill"], make_people(4)["skill"])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_nobody_makes_an_empty_table_with_all_columns(fitted, tmp_path, kind):
    people, path = make_people(3), tmp_path / f"p.{kind}"
    for name, rows in (("some", people), ("none", people.head(0))):
        rows.to_csv(path, index=False) if kind == "csv" else rows.to_parquet(path, index=False)
        evenhand("predict", fitted.model, path, "-o", tmp_path / f"{name}.{kind}")
    read = pd.read_csv if kind == "csv" else pd.read_parquet
    some, none = read(tmp_path / f"some.{kind}"), read(tmp_path / f"none.{kind}")
    assert len(none) == 0
    assert list(none.columns) == list(some.columns)
    if kind == "parquet":
        assert none.dtypes.tolist() == some.dtypes.tolist()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_memory_does_not_grow_with_the_file(fitted, tmp_path, kind):
    peaks = []
    for copies in (3, 15):
        people = pd.concat([make_people(400)] * copies)
        path = tmp_path / f"{copies}.{kind}"
        people.to_csv(path, index=False) if kind == "csv" else people.to_parquet(path, index=False)
        evenhand("predict", fitted.model, path, "--chunk", "500")
        tracemalloc.start()
        evenhand("predict", fitted.model, path, "--chunk", "500")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_marks_of_no_value_mean_in_a_csv_what_they_meant_in_training(tmp_path):
    people = make_people(400, seed=1)
    marks = [*MISSING_MARKS, "None", "na", "?"]
    people["job"] = [marks[at % 20] if at % 20 < len(marks) else job for at, job in enumerate(people["job"])]
    people["branch"] = [
        marks[at % 20] if at % 20 < len(MISSING_MARKS) else code for at, code in enumerate(people["branch"])
    ]
    people["hired"] = np.where(people["job"].isin(MISSING_MARKS), "yes", people["hired"])
    path = tmp_path / "p.csv"
    people.to_csv(path, index=False)
    evenhand("fit", path, "--label", "hired", "--sensitive", "sex", "-o", tmp_path / "m.skops", *FIT)
    evenhand("predict", tmp_path / "m.skops", path)
    told = pd.read_csv(tmp_path / "p.decided.csv")["probability"]
    rows = read_table(path).frame
    said = load(tmp_path / "m.skops").predict_proba(rows, sensitive_features=rows["sex"])[:, 1]
    np.testing.assert_allclose(told, said, atol=1e-6)
    by_mark = load(tmp_path / "m.skops").decide(
        pd.DataFrame({"skill": "0.1", "born": "", "job": [*MISSING_MARKS], "branch": "1", "sex": "f"})
    )
    assert len(set(by_mark.probability)) == 1


def _of_codes(tmp_path, codes):
    """A model of people whose label hangs on a code, and not on its size as a number."""
    people = make_people(400, seed=2)
    people["code"] = [codes[at % len(codes)] for at in range(len(people))]
    hired = people["code"].isin([codes[0], codes[2]])
    people["hired"] = np.where(hired, "yes", "no")
    people[["skill", "code", "sex", "hired"]].to_csv(tmp_path / "p.csv", index=False)
    roles = (
        "--label",
        "hired",
        "--sensitive",
        "sex",
        "--weights",
        "0",
        "--epochs",
        "40",
        "--criterion",
        "accuracy",
    )
    out = evenhand("fit", tmp_path / "p.csv", *roles, "-o", tmp_path / "m.skops", "--jobs", "1", "--json")
    return people, json.loads(out.stdout)


@pytest.mark.parametrize("codes", [("01", "02", "10"), ("01", "02", "10", "?"), ("010", "10", "1")])
def test_codes_with_leading_zeros_are_categories_in_fit_predict_and_audit(tmp_path, codes):
    people, told = _of_codes(tmp_path, codes)
    assert f"'code' has leading zeros, as in {codes[0]!r}: codes, not amounts." in told["notes"]
    assert told["test"]["accuracy"]["value"] > 0.95
    for chunk, some in ((1, people[:60]), (400, people)):  # most chunks of one row hold no leading zero
        some[["skill", "code", "sex", "hired"]].to_csv(tmp_path / "some.csv", index=False)
        evenhand("predict", tmp_path / "m.skops", tmp_path / "some.csv", "--chunk", chunk)
        decided = pd.read_csv(tmp_path / "some.decided.csv", dtype=str)
        assert decided["code"].tolist() == some["code"].tolist()
        assert (decided["decision"] == some["hired"]).mean() > 0.95
    ten = people[people["code"] == "10"]  # a whole file without a leading zero
    ten[["skill", "code", "sex", "hired"]].to_csv(tmp_path / "ten.csv", index=False)
    for name in ("p", "ten"):
        out = evenhand("audit", tmp_path / f"{name}.csv", "--model", tmp_path / "m.skops", "--json")
        found = {row["metric"]: row for row in json.loads(out.stdout)["metrics"] if row["group"] is None}
        assert found["accuracy"]["value"] > 0.95


def test_a_leading_zero_is_a_number_where_the_model_learned_numbers(fitted, tmp_path):
    rows = ["skill,born,job,branch,sex,hired", *["1,,cook,1,f,no", "01,,cook,1,m,yes"] * 5]
    (tmp_path / "p.csv").write_text("\n".join(rows))
    evenhand("predict", fitted.model, tmp_path / "p.csv", "--chunk", "1")
    decided = pd.read_csv(tmp_path / "p.decided.csv")
    assert decided["probability_as_f"].nunique() == 1
    out = evenhand("audit", tmp_path / "p.csv", "--model", fitted.model, "--json")
    assert json.loads(out.stdout)["about"]["people"] == 10, out.output


def test_groups_and_labels_may_have_leading_zeros(tmp_path):
    people = make_people(400, seed=3)
    people["sex"] = np.where(people["sex"] == "f", "01", "10")
    people["hired"] = np.where(people["hired"] == "yes", "01", "00")
    people.to_csv(tmp_path / "p.csv", index=False)
    evenhand("fit", tmp_path / "p.csv", "--label", "hired", "--sensitive", "sex", "-o", tmp_path / "m.skops",
             "--positive", "01", *FIT)  # fmt: skip
    people[:60].to_csv(tmp_path / "p.csv", index=False)
    evenhand("predict", tmp_path / "m.skops", tmp_path / "p.csv", "--chunk", "1")
    decided = pd.read_csv(tmp_path / "p.decided.csv", dtype=str)
    assert len(decided) == 60
    assert set(decided["decision"]) == {"00", "01"}
    assert "probability_as_01" in decided
    out = evenhand("audit", tmp_path / "p.csv", "--model", tmp_path / "m.skops")
    assert "60 people in 2 groups (sex = 01:" in out.stdout
    out = evenhand(
        "audit", tmp_path / "p.csv", "--label", "hired", "--sensitive", "sex", "--predictions", "hired"
    )
    assert "100.0 %" in out.stdout


def test_categories_that_training_never_met_are_told_over_all_chunks(fitted, tmp_path):
    people = make_people(30)
    people.loc[:6, "job"] = [f"new{i}" for i in range(7)]
    people.loc[20, "job"] = "new0"
    people.to_csv(tmp_path / "p.csv", index=False)
    out = evenhand("predict", fitted.model, tmp_path / "p.csv", "--chunk", "3")
    wanted = (
        "8 people with a value of 'job' that was never seen in training, such as 'new0', 'new1', 'new2', "
    )
    assert wanted + "'new3', 'new4': it counts" in out.stderr
    told = json.loads(evenhand("predict", fitted.model, tmp_path / "p.csv", "--json").stdout)
    assert told["unseen"] == {"job": 8}
    assert wanted in told["notes"][0]


def test_a_record_has_the_hashes_of_what_was_read_and_written(fitted, tmp_path):
    evenhand(
        "predict", fitted.model, fitted.people, "-o", tmp_path / "d.csv", "--record", tmp_path / "r.json"
    )
    record = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    paths = {"model": fitted.model, "input": fitted.people, "output": tmp_path / "d.csv"}
    for what, path in paths.items():
        assert record["files"][what]["sha256"] == hashlib.sha256(Path(path).read_bytes()).hexdigest()
    assert record["files"]["rejects"] is None
    assert record["decided"] == len(pd.read_csv(tmp_path / "d.csv"))
    assert record["began"] <= record["ended"]
    # It would replace the input.
    evenhand("predict", fitted.model, fitted.people, "-o", "-", "--record", fitted.people, code=2)
