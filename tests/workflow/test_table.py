from __future__ import annotations

import hashlib
import json
import os
import sys

import numpy as np
import pandas as pd
import pytest

from evenhand.tables import load_table
from evenhand.tables.columns import kinds_of_columns
from evenhand.tables.splits import split
from evenhand.workflow.table import check_written, on_columns, on_groups, on_labels, source_of, with_dates
from factories import FIT, evenhand, make_people

NOTHING = {"pos_label": None, "encoding": "utf-8"}


@pytest.fixture
def path(tmp_path):
    n = 40
    people = pd.DataFrame(
        {
            "id": np.arange(n) + 1000,
            "age": np.arange(n) % 7,
            "joined": [f"{1 + i % 28:02d}/{1 + i % 12:02d}/2020" for i in range(n)],
            "sex": ["f", "m"] * (n // 2),
            "race": ["a", "a", "b", "b"] * (n // 4),
            "y": [0, 1, 1, 0] * (n // 4),
        }
    )
    people.to_csv(tmp_path / "p.csv", index=False)
    return tmp_path / "p.csv"


def test_several_sensitive_columns_become_one(path):
    dataset = load_table(path, label="y", sensitive=["sex", "race"], **NOTHING)
    assert dataset.sensitive_columns == ["sex", "race"]
    assert dataset.sensitive_features.unique().tolist() == [
        "sex=f, race=a",
        "sex=m, race=a",
        "sex=f, race=b",
        "sex=m, race=b",
    ]
    assert "race" not in dataset.contexts


def test_the_positive_label_is_found_by_its_text(path):
    dataset = load_table(path, label="y", sensitive=["sex"], **(NOTHING | {"pos_label": "0"}))
    assert dataset.pos_label == 0
    assert not any("positive label" in note for note in dataset.notes)
    with pytest.raises(ValueError, match="Got the positive label '2', but 'y' has the values 0, 1"):
        load_table(path, label="y", sensitive=["sex"], **(NOTHING | {"pos_label": "2"}))


def test_kinds_tell_numbers_categories_and_how_dates_are_written(path):
    dataset = load_table(path, label="y", sensitive=["sex"], **NOTHING)
    assert kinds_of_columns(dataset.contexts, dataset.dates) == {
        "age": "number",
        "joined": "%d/%m/%Y",
        "race": "category",
    }


@pytest.mark.parametrize("when", ["25/12/2020", "soon"])
def test_dates_are_read_as_they_were_learned_whatever_people_left_out_have(tmp_path, when):
    n = 40
    people = pd.DataFrame(
        {
            "when": [f"{1 + i % 12:02d}/{1 + i // 12:02d}/2020" for i in range(n)],
            "sex": ["f", "m"] * (n // 2),
            "y": [0, 1, 1, 0] * (n // 4),
        }
    )
    pd.concat([people, pd.DataFrame({"when": [when], "sex": ["f"]})]).to_csv(tmp_path / "p.csv", index=False)
    dataset = load_table(tmp_path / "p.csv", label="y", sensitive=["sex"], **NOTHING)
    assert kinds_of_columns(dataset.contexts, dataset.dates) == {"when": "%m/%d/%Y"}
    shown = with_dates(dataset.contexts, dataset.dates)["when"]
    assert shown.tolist() == pd.to_datetime(people["when"], format="%m/%d/%Y").tolist()


@pytest.fixture
def opened():
    """Count how often each file is opened, from Python, while the list is read."""
    seen: list[str] = []
    watching = True

    def hook(event, arguments):
        if watching and event == "open" and isinstance(arguments[0], (str, os.PathLike)):
            seen.append(os.fspath(arguments[0]))

    sys.addaudithook(hook)  # which can't be removed: it stops listening
    yield seen
    watching = False


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_is_opened_once_for_all_that_is_known_of_it(path, opened, ending):
    frame = pd.read_csv(path)
    frame.loc[[3, 7], "sex"] = None
    data = path.with_name(f"gaps.{ending}")
    frame.to_csv(data, index=False) if ending == "csv" else frame.to_parquet(data)
    digest = hashlib.sha256(data.read_bytes()).hexdigest()
    opened.clear()
    dataset = load_table(data, label="y", sensitive=["sex", "race"])
    source = source_of(dataset)
    assert opened.count(str(data)) == 1
    assert source["sha256"] == digest
    assert source["source"] == str(data)
    assert dataset.row_numbers.tolist() == [row for row in range(40) if row not in (3, 7)]
    assert frame["age"].iloc[dataset.row_numbers].tolist() == dataset.contexts["age"].tolist()


def test_each_command_opens_a_users_file_once(fitted, opened, tmp_path):
    data = tmp_path / "mine.csv"
    data.write_bytes(fitted.people.read_bytes())
    roles = ("--label", "hired", "--sensitive", "sex")
    commands = {
        "fit": ("fit", data, *roles, "-o", tmp_path / "m.skops", *FIT, "--report", tmp_path / "m.html"),
        "predict": ("predict", fitted.model, data),
        "audit with a model": ("audit", data, "--model", fitted.model, "--json"),
        "audit with decisions": ("audit", data, *roles, "--predictions", "hired", "--json"),
    }
    for name, command in commands.items():
        opened.clear()
        evenhand(*command)
        assert (name, opened.count(str(data))) == (name, 1)


def test_a_frame_has_rows_but_no_file(path):
    frame = pd.read_csv(path).set_index("id")
    frame.iloc[0, frame.columns.get_loc("y")] = np.nan
    dataset = load_table(frame, label="y", sensitive="sex")
    assert dataset.row_numbers.tolist() == list(range(1, 40))
    assert source_of(dataset)["sha256"] == ""
    assert dataset.sensitive_columns == ["sex"]


def test_true_and_false_in_parquet_are_labels(tmp_path):
    people = pd.DataFrame({"age": [20, 30, 40, 20], "sex": ["f", "m"] * 2, "y": [True, False, True, True]})
    people.to_parquet(tmp_path / "p.parquet")
    dataset = load_table(tmp_path / "p.parquet", label="y", sensitive=["sex"], **NOTHING)
    assert dataset.pos_label is True


def test_an_output_is_no_input_and_no_other_output(tmp_path):
    data, new = tmp_path / "p.csv", tmp_path / "new.html"
    data.write_text("mine\n")
    (tmp_path / "soft.csv").symlink_to(data)
    (tmp_path / "hard.csv").hardlink_to(data)
    check_written(new, None, tmp_path / "other.json", inputs=[data, None])
    for output in (data, tmp_path / "." / "p.csv", tmp_path / "soft.csv", tmp_path / "hard.csv"):
        with pytest.raises(ValueError, match="as output, which is an input; expected another file"):
            check_written(new, output, inputs=[data])
    with pytest.raises(ValueError, match="as output, which another output goes to; expected another file"):
        check_written(new, tmp_path / "." / "new.html", inputs=[data])


def test_a_copy_of_the_group_is_named_with_the_remedy(tmp_path):
    people = make_people(400)
    people.insert(0, "her & his", np.where(people["sex"] == "f", "she", "he"))
    people.to_csv(tmp_path / "p.csv", index=False)
    out = evenhand("fit", tmp_path / "p.csv", "--label", "hired", "--sensitive", "sex", "-o", tmp_path / "m.skops",
                   *FIT, "--json")  # fmt: skip
    told = [note for note in json.loads(out.stdout)["notes"] if "reveals 'sex'" in note]
    assert len(told) == 1
    assert told[0].startswith("'her & his' reveals 'sex', or a part of it")
    assert told[0].endswith("--drop 'her & his'.")
    assert "reveals 'sex'" in (tmp_path / "m.card.md").read_text(encoding="utf-8")


def test_a_copy_of_the_group_with_a_wrong_cell_is_named_too():
    people = make_people(400).assign(gender=lambda people: people["sex"])
    people.loc[5, "gender"] = "m" if people.loc[5, "sex"] == "f" else "f"
    told = on_columns(load_table(people, label="hired", sensitive="sex"))
    assert len(told) == 1
    assert told[0].startswith("'gender' (for 99.7 % of the people) reveals 'sex', or a part of it")


def test_columns_that_do_not_tell_the_group_are_not_named():
    assert on_columns(load_table(make_people(400), label="hired", sensitive="sex")) == []


def test_small_groups_are_named_with_the_part_they_are_small_in():
    people = make_people(1000)
    people.loc[:99, "sex"] = "x"
    dataset = load_table(people, label="hired", sensitive="sex")
    rows = split(dataset, seed=0, stratify="both")
    counts = [(dataset.sensitive_features.iloc[part] == "x").sum() for part in (rows.validation, rows.test)]
    assert on_groups(dataset, rows) == [
        "Groups with fewer than 20 people in the validation or test part, too few to say much: 'x' "
        f"({counts[0]} and {counts[1]}). Where groups are compared, these are filled up to that number with "
        "average people. merge_small='other' (--merge-small other) merges small groups into one; min_group "
        "(--min-group) sets the limit."
    ]
    assert on_groups(dataset, split(len(people), seed=0, fractions=(0.02, 0.49, 0.49))) == []
    assert pd.Series(counts).between(10, 20).all()
    assert on_groups(dataset, rows, min_group=min(counts)) == []  # exactly as many are enough


@pytest.mark.parametrize(("rare", "called"), [("yes", "'yes'"), (True, "True"), (1, "1")])
def test_labels_of_few_people_are_named(rare, called):
    people = make_people(1000)
    assert on_labels(*in_parts(people)) == []
    people["hired"] = np.where(people.index < 20, rare, "no" if rare == "yes" else False)
    if called == "1":  # the numbers of such columns are NumPy's
        people["hired"] = people["hired"].astype("Int64")
    dataset, rows = in_parts(people)
    counts = [int((dataset.label.iloc[part] == rare).sum()) for part in (rows.validation, rows.test)]
    assert on_labels(dataset, rows) == [
        f"Labels with fewer than 20 people in the validation or test part: {called} ({counts[0]} and "
        f"{counts[1]}). The choice of a model and its measures rest on these few people."
    ]


def in_parts(people):
    dataset = load_table(people, label="hired", sensitive="sex")
    return dataset, split(dataset, seed=0, stratify="both")
