"""Parquet that is only counted says what the same people in a small file do, and what is wrong with it."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from evenhand import auditing
from evenhand.workflow import large_file
from factories import evenhand

N = 900
RNG = np.random.default_rng(0)
PEOPLE = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, N),
        "job": RNG.choice(["cook", "clerk"], N),
        "sex": RNG.choice(["f", "m", "?"], N, p=[0.45, 0.5, 0.05]),
        "paid": RNG.choice(["yes", "no"], N),
        "decision": RNG.choice(["yes", "no"], N),
    }
)
PEOPLE.loc[:9, "paid"] = None
PEOPLE.loc[5:24, "sex"] = None  # some of them without a label too
ASKED = ("--predictions", "decision", "--label", "paid", "--sensitive", "sex", "--json")


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "people"
    folder.mkdir()
    PEOPLE.iloc[:500].to_parquet(folder / "a.parquet")
    PEOPLE.iloc[500:].to_parquet(folder / "b.parquet")
    return folder


def told(*arguments) -> dict:
    result = evenhand("audit", *arguments)
    return json.loads(result.stdout)


@pytest.mark.parametrize("more", [(), ("--unknown", "keep"), ("--positive", "no")], ids=str)
def test_a_folder_is_audited_as_one_file_with_its_people(folder, tmp_path, more):
    PEOPLE.to_parquet(tmp_path / "whole.parquet")
    whole, counted = (told(path, *ASKED, *more) for path in (tmp_path / "whole.parquet", folder))
    assert counted["metrics"] == whole["metrics"]  # of so few, everybody is drawn
    assert counted["neighbours"] == whole["neighbours"]
    assert counted["about"]["groups"] == whole["about"]["groups"]
    lacking = [note for note in whole["notes"] if "unknown 'sex'" in note or "without 'paid'" in note]
    assert len(lacking) == 2
    for note in lacking:  # how many, in the same words
        assert any(other.startswith(note.split(" (")[0]) for other in counted["notes"])


def test_twins_are_those_of_the_same_people_in_one_file(folder, tmp_path):
    PEOPLE.to_parquet(tmp_path / "whole.parquet")
    whole, counted = (told(path, *ASKED, "--twins")["twins"] for path in (tmp_path / "whole.parquet", folder))
    assert counted["flips"] == whole["flips"]


def test_scores_are_counted_at_the_threshold_and_ranked_in_a_sample(folder, tmp_path):
    people = PEOPLE.assign(score=RNG.random(N).round(3)).drop(columns="decision")
    people.to_parquet(tmp_path / "whole.parquet")
    for path in folder.iterdir():
        path.unlink()
    people.to_parquet(folder / "a.parquet")
    asked = ("--predictions", "score", "--threshold", "0.5", *ASKED[2:])
    whole, counted = (told(path, *asked) for path in (tmp_path / "whole.parquet", folder))
    one, other = (
        {(row["metric"], row["group"]): (row["value"], row["people"]) for row in found["metrics"]}
        for found in (whole, counted)
    )
    assert one == other


def test_a_file_of_many_rows_is_counted(tmp_path, monkeypatch):
    path = tmp_path / "people.parquet"
    PEOPLE.to_parquet(path)
    monkeypatch.setattr(large_file, "LARGE", 500)
    assert any("counted by DuckDB" in note for note in told(path, *ASKED)["notes"])
    assert not any("counted by DuckDB" in note for note in told(path, *ASKED, "--map", "yes=no1")["notes"])


def test_the_people_of_unknown_group_are_in_the_tables_to_file(folder):
    counted = told(folder, *ASKED, "--preset", "four-fifths")
    lacking = int((PEOPLE["sex"].isna() | (PEOPLE["sex"] == "?")).sum())
    assert any(f"{lacking}" in note for note in counted["statutory"]["notes"])


def test_says_what_is_wrong_with_a_folder(folder):
    result = evenhand("audit", folder, *ASKED, "--map", "yes=no", code=2)
    assert "which is only counted" in result.output
    result = evenhand("audit", folder, "--predictions", "decison", "--sensitive", "sex", code=2)
    assert "has no such column. Did you mean 'decision'" in " ".join(result.output.split())
    whole = (folder / "b.parquet").read_bytes()
    (folder / "b.parquet").write_bytes(whole[: len(whole) // 2])
    result = evenhand("audit", folder, *ASKED, code=2)
    assert "b.parquet is not a complete Parquet file" in " ".join(result.output.split())


@pytest.mark.parametrize(
    "other, error",
    [
        (PEOPLE.assign(age=PEOPLE["age"].astype(str)), "Got 'age' as"),
        (PEOPLE.assign(town="north"), "Got 'town' as"),
        (PEOPLE.drop(columns="job"), "Got 'job' as no column in"),
    ],
    ids=["type", "more", "fewer"],
)
def test_files_that_differ_are_an_error(folder, other, error):
    other.to_parquet(folder / "c.parquet")
    result = evenhand("audit", folder, *ASKED, code=2)
    assert error in " ".join(result.output.split())


def test_a_damaged_row_group_is_an_error(folder):
    path = folder / "b.parquet"
    whole = bytearray(path.read_bytes())
    whole[4:300] = bytes(296)  # the footer is whole, the first column's values are not
    path.write_bytes(whole)
    result = evenhand("audit", folder, *ASKED, code=2)
    assert "can't be counted as Parquet" in " ".join(result.output.split())


@pytest.mark.parametrize("change", ["rewritten", "added", "removed"])
def test_a_file_that_changes_while_it_is_counted_is_an_error(folder, monkeypatch, change):
    def audit(*given, **settings):
        found = auditing.audit(*given, **settings)
        if change == "removed":
            (folder / "b.parquet").unlink()
        else:
            PEOPLE.iloc[:400].to_parquet(folder / ("c.parquet" if change == "added" else "b.parquet"))
        return found

    monkeypatch.setattr(large_file, "audit", audit)
    result = evenhand("audit", folder, *ASKED, code=2)
    assert "was changed while it was read" in " ".join(result.output.split())


@pytest.mark.parametrize(
    "people, code, error",
    [
        (PEOPLE.iloc[:0], 2, "has no rows; expected"),
        (
            PEOPLE.assign(sex="?"),
            1,
            "Nobody in the table can be audited. .* Left out: 890 people with unknown 'sex'",
        ),
    ],
    ids=["empty", "unknown"],
)
def test_a_folder_of_nobody_is_an_error(folder, people, code, error):
    (folder / "b.parquet").unlink()
    people.to_parquet(folder / "a.parquet")
    result = evenhand("audit", folder, *ASKED, code=code)
    assert re.search(error, " ".join(result.output.split()))


def test_a_file_without_rows_is_nobody(folder):
    before = told(folder, *ASKED)
    PEOPLE.iloc[:0].astype(PEOPLE.dtypes).to_parquet(folder / "c.parquet")
    assert told(folder, *ASKED)["metrics"] == before["metrics"]


@pytest.mark.parametrize("bad", [np.inf, np.nan, -5.0, "?"], ids=str)
def test_bad_weights_of_people_who_are_left_out_count_as_nobody(folder, tmp_path, bad):
    weights = [bad if row in (5, 15) else 2.0 + row % 2 for row in range(N)]  # neither has a known group
    weights = [str(weight) for weight in weights] if bad == "?" else weights
    people = PEOPLE.assign(**{'a "weight"': weights})
    (folder / "b.parquet").unlink()
    people.to_parquet(folder / "a.parquet")
    people.to_parquet(tmp_path / "whole.parquet")
    asked = (*ASKED, "--weight", 'a "weight"', "--preset", "four-fifths")
    whole, counted = (told(path, *asked) for path in (tmp_path / "whole.parquet", folder))
    assert counted["metrics"] == whole["metrics"]
    assert counted["statutory"] == whole["statutory"]


def test_scoring_rates_need_people_in_memory(folder):
    people = PEOPLE.assign(score=RNG.random(N), race="a").drop(columns="decision")
    (folder / "b.parquet").unlink()
    people.to_parquet(folder / "a.parquet")
    asked = ("--predictions", "score", "--threshold", "0.5", "--sensitive", "sex", "--sensitive", "race")
    out = evenhand("audit", folder, *asked, "--preset", "nyc-ll144", "--rate", "scoring", code=2)
    assert "only counted, so the median of its scores is not known" in " ".join(out.output.split())
