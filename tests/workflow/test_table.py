from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from evenhand.workflow.table import check_written, kinds_of, open_table, with_dates

NOTHING = {"positive": None, "drop": None, "categorical": None, "encoding": "utf-8"}


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
    dataset, columns = open_table(path, label="y", sensitive=["sex", "race"], **NOTHING)
    assert columns == ["sex", "race"]
    assert dataset.sensitive_features.unique().tolist() == ["f & a", "m & a", "f & b", "m & b"]
    assert "race" not in dataset.contexts


def test_the_positive_label_is_found_by_its_text(path):
    dataset, _ = open_table(path, label="y", sensitive=["sex"], **(NOTHING | {"positive": "0"}))
    assert dataset.pos_label == 0
    assert not any("positive label" in note for note in dataset.notes)
    with pytest.raises(ValueError, match="Got --positive '2', but the label has 0, 1"):
        open_table(path, label="y", sensitive=["sex"], **(NOTHING | {"positive": "2"}))


def test_kinds_tell_numbers_categories_and_how_dates_are_written(path):
    dataset, _ = open_table(path, label="y", sensitive=["sex"], **NOTHING)
    assert kinds_of(dataset) == {"age": "number", "joined": "%d/%m/%Y", "race": "category"}


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
    dataset, _ = open_table(tmp_path / "p.csv", label="y", sensitive=["sex"], **NOTHING)
    assert kinds_of(dataset) == {"when": "%m/%d/%Y"}
    shown = with_dates(dataset.contexts, dataset.dates)["when"]
    assert shown.tolist() == pd.to_datetime(people["when"], format="%m/%d/%Y").tolist()


def test_true_and_false_in_parquet_are_labels(tmp_path):
    people = pd.DataFrame({"age": [20, 30, 40, 20], "sex": ["f", "m"] * 2, "y": [True, False, True, True]})
    people.to_parquet(tmp_path / "p.parquet")
    dataset, _ = open_table(tmp_path / "p.parquet", label="y", sensitive=["sex"], **NOTHING)
    assert dataset.pos_label == "True"


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
