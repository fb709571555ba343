from __future__ import annotations

import json

import numpy as np
import pandas as pd

from evenhand.tables import load_table
from evenhand.tables.splits import split
from evenhand.workflow.notes import on_columns, on_groups
from factories import FIT, evenhand, make_people


def test_a_copy_of_the_group_is_named_with_the_remedy(tmp_path):
    people = make_people(400)
    people.insert(0, "her & his", np.where(people["sex"] == "f", "she", "he"))
    people.to_csv(tmp_path / "p.csv", index=False)
    out = evenhand("fit", tmp_path / "p.csv", "--label", "hired", "--sensitive", "sex", "-o", tmp_path / "m.skops",
                   *FIT, "--json")  # fmt: skip
    assert out.exit_code == 0, out.output
    told = [note for note in json.loads(out.stdout)["notes"] if "reveals 'sex'" in note]
    assert len(told) == 1
    assert told[0].startswith("'her & his' reveals 'sex', or a part of it")
    assert told[0].endswith("--drop 'her & his'.")
    assert "reveals 'sex'" in (tmp_path / "m.card.md").read_text(encoding="utf-8")


def test_columns_that_do_not_tell_the_group_are_not_named():
    assert on_columns(load_table(make_people(400), label="hired", sensitive="sex")) == []


def test_small_groups_are_named_with_the_part_they_are_small_in():
    people = make_people(1000)
    people.loc[:99, "sex"] = "x"
    dataset = load_table(people, label="hired", sensitive="sex")
    rows = split(dataset, seed=0, stratify="both")
    counts = [(dataset.sensitive_features.iloc[part] == "x").sum() for part in (rows.validation, rows.test)]
    assert on_groups(dataset, rows) == [
        f"The group 'x' has {counts[0]} people in the validation part and {counts[1]} in the test part: "
        "measures of fewer than 30 people say little."
    ]
    assert on_groups(dataset, split(len(people), seed=0, fractions=(0.02, 0.49, 0.49))) == []
    assert pd.Series(counts).between(10, 20).all()
