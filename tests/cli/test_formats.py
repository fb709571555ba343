"""Packed files, workbooks, decimal commas, mapped values and the test part, through every command."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from evenhand import load
from evenhand.tables import load_table
from factories import FIT, evenhand


@pytest.fixture(scope="module")
def decided(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("decided") / "d.csv"
    evenhand("predict", fitted.model, fitted.people, "-o", path)
    return pd.read_csv(path)


def test_a_packed_file_is_decided_to_a_packed_file(fitted, decided, tmp_path):
    path = tmp_path / "people.csv.gz"
    path.write_bytes(gzip.compress(fitted.people.read_bytes()))
    evenhand("predict", fitted.model, path, "--chunk", "90")
    found = tmp_path / "people.decided.csv.gz"
    pd.testing.assert_frame_equal(pd.read_csv(found), decided)
    once = found.read_bytes()
    evenhand("predict", fitted.model, path)
    assert found.read_bytes() == once
    told = json.loads(evenhand("audit", path, "--model", fitted.model, "--json").stdout)
    assert "trained_on" in told["about"]  # the people are known again


def test_a_workbook_is_decided_to_a_workbook(fitted, decided, tmp_path):
    people = pd.read_csv(fitted.people)
    with pd.ExcelWriter(tmp_path / "people.xlsx") as book:
        pd.DataFrame({"read": ["me"]}).to_excel(book, sheet_name="first", index=False)
        people.to_excel(book, sheet_name="data", index=False)
    evenhand("predict", fitted.model, tmp_path / "people.xlsx", "--sheet", "data", "--chunk", "150")
    found = pd.read_excel(tmp_path / "people.decided.xlsx")
    pd.testing.assert_frame_equal(found, decided)
    told = json.loads(
        evenhand(
            "audit", tmp_path / "people.xlsx", "--sheet", "data", "--model", fitted.model, "--json"
        ).stdout
    )
    assert told["about"]["people"] == 400


def test_decimal_commas_are_decided_and_written_as_they_were(fitted, decided, tmp_path):
    path = tmp_path / "people.csv"
    pd.read_csv(fitted.people).to_csv(path, sep=";", decimal=",", index=False)
    for more in ((), ("--decimal", ","), ("--chunk", "7")):
        evenhand("predict", fitted.model, path, "-o", tmp_path / "d.csv", *more)
        found = pd.read_csv(tmp_path / "d.csv", sep=";", dtype=str)
        assert found["decision"].tolist() == decided["decision"].tolist()
        assert found["skill"].dropna().str.contains(",").mean() > 0.9
    evenhand("predict", fitted.model, path, "--decimal", ".")  # but for the gaps
    assert len(pd.read_csv(tmp_path / "people.rejects.csv", sep=";")) > 300
    told = json.loads(evenhand("audit", path, "--model", fitted.model, "--json").stdout)
    assert "trained_on" in told["about"]
    ours, theirs = (
        load_table(source, label="hired", sensitive="sex", categorical="branch")
        for source in (fitted.people, path)
    )
    assert ours.fingerprint == theirs.fingerprint


def test_what_is_written_with_decimal_commas_is_read_with_them(fitted, decided, tmp_path):
    path, out = tmp_path / "people.csv", tmp_path / "people.decided.csv"
    pd.read_csv(fitted.people).to_csv(path, sep=";", decimal=",", index=False)
    decided.to_csv(tmp_path / "d.csv", index=False)
    told = json.loads(evenhand("predict", fitted.model, path, "--json").stdout)
    assert told["decided"] == len(decided)
    found = pd.read_csv(out, sep=";", decimal=",")
    pd.testing.assert_frame_equal(found[decided.columns[-5:]], decided[decided.columns[-5:]])
    columns = ("--label", "hired", "--sensitive", "sex")
    for said in ("decision", "probability"):
        audited = evenhand("audit", out, *columns, "--predictions", said, "--json")
        plain = evenhand("audit", tmp_path / "d.csv", *columns, "--predictions", said, "--json")
        assert json.loads(audited.stdout)["metrics"] == json.loads(plain.stdout)["metrics"]


def test_mapped_values_are_decided_and_audited(fitted, decided, tmp_path):
    path = tmp_path / "coded.csv"
    people = pd.read_csv(fitted.people)
    people["sex"] = people["sex"].map({"f": 0, "m": 1})
    people["hired"] = people["hired"].map({"yes": 1, "no": 0})
    people.to_csv(path, index=False)
    sexes, labels = ("--map", "sex:0=f", "--map", "sex:1=m"), ("--map", "1=yes", "--map", "0=no")
    evenhand("predict", fitted.model, path, "-o", tmp_path / "d.csv", *sexes)
    found = pd.read_csv(tmp_path / "d.csv")
    assert found["decision"].tolist() == decided["decision"].tolist()
    assert found["sex"].tolist() == people["sex"].tolist()
    told = json.loads(evenhand("audit", path, "--model", fitted.model, *sexes, *labels, "--json").stdout)
    ours = json.loads(evenhand("audit", fitted.people, "--model", fitted.model, "--json").stdout)
    assert told["about"] == ours["about"]
    alone = (
        "--sensitive",
        "sex",
        "--label",
        "hired",
        "--predictions",
        "decision",
        "--map",
        "yes=1",
        "--map",
        "no=0",
    )
    found.to_csv(path, index=False)
    told = json.loads(evenhand("audit", path, *alone, "--json").stdout)
    assert told["about"]["labels"] == [0, 1]
    out = evenhand("predict", fitted.model, path, "--map", "yes", code=2)
    assert "expected VALUE=NEW" in out.stderr


def test_fit_maps_labels_of_a_packed_file(fitted, tmp_path):
    path = tmp_path / "people.csv.gz"
    path.write_bytes(gzip.compress(fitted.people.read_bytes()))
    evenhand(
        "fit", path, "-o", tmp_path / "m.skops", "--map", "yes=1", "--map", "no=0", "--label", "hired", *FIT
    )
    model = load(tmp_path / "m.skops")
    assert model.classes_.tolist() == [0, 1]
    assert model.pos_label == 1
    assert model.card["title"] == "A model that predicts hired (people)"
    evenhand("predict", tmp_path / "m.skops", path)
    assert set(pd.read_csv(tmp_path / "people.decided.csv.gz")["decision"]) <= {0, 1}


def test_only_the_test_part_is_decided(fitted, decided, tmp_path):
    path = tmp_path / "d.csv"
    for more in ((), ("--chunk", "37")):
        out = evenhand("predict", fitted.model, fitted.people, "--part", "test", "-o", path, "--json", *more)
        assert json.loads(out.stdout)["decided"] == 60
        found = pd.read_csv(path)
        same = decided.merge(found, how="inner")
        assert len(same) == len(found) == 60
    audited = evenhand("audit", fitted.people, "--model", fitted.model, "--part", "test", "--json").stdout
    alone = evenhand(
        "audit", path, "--label", "hired", "--sensitive", "sex", "--predictions", "decision", "--json"
    ).stdout
    of = {row["metric"]: row["value"] for row in json.loads(audited)["metrics"]}
    again = {row["metric"]: row["value"] for row in json.loads(alone)["metrics"]}
    assert (of["accuracy"], of["discrimination"]) == (again["accuracy"], again["discrimination"])
    decided.head(300).to_csv(tmp_path / "few.csv", index=False)
    out = evenhand("predict", fitted.model, tmp_path / "few.csv", "--part", "test", "--prefix", "x", code=2)
    assert "does not hold the people that the model was made with" in out.stderr.replace("\n", " ")


def test_negative_numbers_with_decimal_commas_stay_numbers(fitted, tmp_path):
    people = pd.read_csv(fitted.people).assign(score=lambda rows: -1.5 * (1 + rows.index), pay="-1.234,5")
    people.to_csv(tmp_path / "p.csv", sep=";", decimal=",", index=False)
    evenhand("predict", fitted.model, tmp_path / "p.csv", "-o", tmp_path / "d.csv")
    found = pd.read_csv(tmp_path / "d.csv", sep=";", decimal=",", thousands=".")
    assert found["score"].tolist() == people["score"].tolist()
    assert (found["pay"] == -1234.5).all()


def test_a_model_remembers_decimal_commas_for_files_that_do_not_show_them(tmp_path):
    rng, n = np.random.default_rng(0), 400
    pay, sex = rng.integers(1000, 90_000, n), rng.choice(["f", "m"], n)
    hired = np.where(pay + rng.normal(0, 5000, n) > 45_000, "yes", "no")
    people = pd.DataFrame({"skill": rng.normal(size=n).round(3), "pay": pay, "sex": sex, "hired": hired})
    written = people.assign(pay=[f"{each:,}".replace(",", ".") for each in pay])  # 73.223 is 73223
    written.to_csv(tmp_path / "train.csv", sep=";", decimal=",", index=False)
    new = tmp_path / "new.csv"
    written.assign(skill=0).to_csv(new, sep=";", index=False)
    model = tmp_path / "m.skops"
    evenhand(
        "fit", tmp_path / "train.csv", "--label", "hired", "--sensitive", "sex", "-o", model, "--weights", 1
    )
    for more in ((), ("--decimal", ",")):
        evenhand("predict", model, new, "-o", tmp_path / "d.csv", *more)
        decided = pd.read_csv(tmp_path / "d.csv", sep=";", decimal=",")["decision"]
        assert (decided == hired).mean() > 0.9
        audited = json.loads(evenhand("audit", new, "--model", model, "--json", *more).stdout)
        (accuracy,) = [
            row["value"] for row in audited["metrics"] if row["metric"] == "accuracy" and row["group"] is None
        ]
        assert accuracy > 0.9
    evenhand("predict", model, new, "-o", tmp_path / "d.csv", "--decimal", ".")
    assert (pd.read_csv(tmp_path / "d.csv", sep=";")["decision"] == hired).mean() < 0.7
