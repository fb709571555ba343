from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from evenhand.tables import load_table

PEOPLE = pd.DataFrame(
    {
        "id": range(40),
        "age": [20 + number % 30 for number in range(40)],
        "gender": ["f", "m"] * 20,
        "race": ["x", "x", "y", "y"] * 10,
        "hired": ["no", "no", "yes", "no"] * 10,
    }
)


def test_given_roles() -> None:
    table = load_table(PEOPLE, label="hired", sensitive=["race", "gender"], drop="age", categorical=["id"])
    assert list(table.contexts) == ["id"]
    assert table.sensitive_columns == ["race", "gender"]
    assert table.sensitive_features.name == "race & gender"
    assert table.sensitive_features.unique().tolist() == [
        "race=x, gender=f",
        "race=x, gender=m",
        "race=y, gender=f",
        "race=y, gender=m",
    ]
    assert table.pos_label == "yes"


def test_guessed_roles_are_said_and_nothing_is_warned() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = load_table(PEOPLE)
    assert (table.label.name, table.sensitive_features.name) == ("hired", "gender")
    assert table.notes == [
        "Guessed that 'hired' is the label.",
        "Guessed that 'gender' is the sensitive column.",
        "'id' has 40 different numbers for 40 people (an identifier) and is left out. Name it in "
        "`categorical` to use it.",
        "The positive label is 'yes'.",
    ]
    assert list(table.contexts) == ["age", "race"]


def test_whole_numbers_are_whole_also_where_people_without_one_were_left_out(tmp_path: Path) -> None:
    people = PEOPLE.assign(gender=[0, 1] * 20, hired=[0, 0, 1, 0] * 10)
    people.loc[0, ["gender", "hired"]] = np.nan
    people.to_csv(tmp_path / "people.csv", index=False)
    for source in (people, tmp_path / "people.csv"):
        table = load_table(source, label="hired", sensitive="gender")
        assert table.sensitive_features.map(str).unique().tolist() == ["1", "0"]
        assert str(table.pos_label) == "1"
    halves = load_table(people.assign(gender=people["gender"] / 2), label="hired", sensitive="gender")
    assert sorted(halves.sensitive_features.unique()) == [0, 0.5]


def test_the_same_from_csv_parquet_and_polars(tmp_path: Path) -> None:
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    PEOPLE.to_parquet(tmp_path / "people.parquet")
    sources: list[Any] = [
        tmp_path / "people.csv",
        str(tmp_path / "people.parquet"),
        pl.from_pandas(PEOPLE),
        PEOPLE,
    ]
    tables = [load_table(source, label="hired", sensitive="gender") for source in sources]
    assert len({table.fingerprint for table in tables}) == 1
    assert [table.name for table in tables] == ["people", "people", "table", "table"]


@pytest.mark.parametrize(
    ("values", "positive"),
    [
        ([0, 1], 1),
        ([True, False], True),
        (["bad", "good"], "good"),
        (["a", "b"], "b"),
        ([2, 1], 1),
        (["N", "Yes"], "Yes"),
        (["accepted", "rejected"], "accepted"),
        (["default", "paid"], "paid"),
        (["Admitted", "refused"], "Admitted"),
    ],
)
def test_the_positive_label(values: list[Any], positive: Any) -> None:
    table = load_table(PEOPLE.assign(hired=values * 20), label="hired", sensitive="gender")
    assert table.pos_label == positive
    other = next(value for value in values if str(value) != str(positive))
    for given in (other, str(other)):
        named = load_table(
            PEOPLE.assign(hired=values * 20), label="hired", sensitive="gender", pos_label=given
        )
        assert named.pos_label == other
        assert type(named.pos_label) is type(other)


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        (pd.array([True, False] * 20, dtype="boolean"), [True, False]),
        (np.array([True, False] * 20), [True, False]),
        (np.array([True, False] * 20, dtype=object), [True, False]),
        (pd.Categorical([True, False] * 20), [True, False]),
        (pd.Categorical([1, 0] * 20), [1, 0]),
        (pd.Categorical(["a", "b"] * 20), ["a", "b"]),
        (pd.Series([1, "b"] * 20), ["1", "b"]),
    ],
)
def test_labels_keep_their_own_type_without_categories(labels: Any, wanted: list[Any]) -> None:
    label = load_table(PEOPLE.assign(hired=labels), label="hired", sensitive="gender").label
    assert label.unique().tolist() == wanted
    assert [type(value) for value in label.unique().tolist()] == [type(value) for value in wanted]


def test_true_and_false_are_the_same_people_as_in_text() -> None:
    hired = np.array([True, False] * 20)
    found = [
        load_table(PEOPLE.assign(hired=labels), label="hired", sensitive="gender")
        for labels in (hired, hired.astype(str))
    ]
    assert found[0].fingerprint == found[1].fingerprint


def test_people_without_label_or_group_are_left_out_and_said() -> None:
    people = PEOPLE.copy()
    people["hired"] = people["hired"].where(people["id"] > 1)
    people["gender"] = people["gender"].where(people["id"] != 7)
    table = load_table(people, label="hired", sensitive="gender")
    assert len(table) == 37
    assert table.notes[0].startswith("Left out: 2 people without 'hired'.")
    assert table.notes[1].startswith("Left out: 1 person with unknown 'gender' (empty cells).")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "hird"}, r"Got label='hird', but the DataFrame has no such column. Did you mean 'hired'"),
        ({"sensitive": "gendre"}, r"Got sensitive='gendre'.*Did you mean 'gender'"),
        ({"sensitive": ["race", "sex"]}, r"Got sensitive='sex'"),
        ({"sensitive": []}, "Got no sensitive column"),
        ({"label": "zzz"}, r"Its columns: 'id', 'age', 'gender', 'race', 'hired'"),
        ({"drop": ["agee"]}, r"Got drop='agee'.*Did you mean 'age'"),
        ({"categorical": "idd"}, r"Got categorical='idd'"),
        ({"label": "gender"}, "'gender' both as label and as sensitive"),
        ({"label": "age"}, "'age' of the DataFrame has 30 values; expected classes, at most 20"),
        ({"pos_label": "maybe"}, "Got the positive label 'maybe'"),
        ({"drop": ["id", "age", "race"]}, "no column left to learn from"),
        ({"drop": ["gender"]}, "Got 'gender' both as sensitive and to drop; expected one of the two"),
        ({"drop": "hired"}, "Got 'hired' both as label and to drop"),
        ({"weight": "gender"}, "Got 'gender' both as sensitive and as weight; expected one of the two"),
        ({"sensitive": ["race", "gender", "race"]}, "Got the sensitive column 'race' more than once"),
        ({"label": PEOPLE["hired"]}, "Got a Series as label, but expected the name of a column"),
        ({"sensitive": [PEOPLE["race"]]}, "Got a Series as sensitive, but expected the name of a column"),
        ({"drop": 3}, "Got 3 as drop, but expected the name of a column"),
        ({"weight": [1]}, "Got 1 as weight, but expected .* a column. The λ to try are `weights`"),
    ],
)
def test_bad_roles(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_table(PEOPLE, **({"label": "hired", "sensitive": "gender"} | options))


def test_a_sensitive_column_of_numbers_asks_for_bands() -> None:
    people = pd.DataFrame({"pay": np.arange(60.0), "x": np.arange(60), "y": [0, 1] * 30})
    with pytest.raises(
        ValueError, match=r"sensitive column 'pay' .* has 60 values.*Put the values into bands"
    ):
        load_table(people, label="y", sensitive="pay")


@pytest.mark.parametrize(
    ("column", "message"), [("hired", "is always 'no'"), ("gender", "has one value only")]
)
def test_columns_with_one_value(column: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_table(PEOPLE.assign(**{column: "no"}), label="hired", sensitive="gender")


def test_nothing_to_guess() -> None:
    with pytest.raises(ValueError, match="Could not guess the label of the DataFrame; name one of a, b"):
        load_table(pd.DataFrame({"a": [1, 2, 3], "b": [4, 5, 6]}))
    with pytest.raises(ValueError, match="Could not guess the sensitive column of the DataFrame"):
        load_table(pd.DataFrame({"a": [1, 2, 3], "b": [4, 4, 6]}))


def test_mixed_types_in_a_file_name_line_and_column(tmp_path: Path) -> None:
    people = PEOPLE.astype({"age": object})
    people.loc[30, "age"] = "thirty"
    people.to_csv(tmp_path / "people.csv", index=False)
    with pytest.raises(
        ValueError, match=r"people.csv, line 32, column 'age': got 'thirty' in a column of numbers"
    ):
        load_table(tmp_path / "people.csv", label="hired", sensitive="gender")


def test_an_index_with_a_name_twice_does_no_harm() -> None:
    twice = pd.concat([PEOPLE, PEOPLE]).assign(age=["1", "?"] * 40)
    table = load_table(twice, label="hired", sensitive="gender")
    assert len(table) == 80
    assert table.contexts["age"].isna().sum() == 40


def test_a_guess_of_the_positive_label_is_told_as_one() -> None:
    def notes(values: list[Any]) -> list[str]:
        return load_table(PEOPLE.assign(hired=values * 20), label="hired", sensitive="gender").notes

    assert "The positive label is 'paid'." in notes(["paid", "owed"])
    guessed = "Guessed that the positive label is 'b', the second in order. If it is 'a', name that one as positive."
    assert guessed in notes(["a", "b"])


def test_of_more_than_two_labels_none_is_guessed() -> None:
    people = PEOPLE.assign(hired=["no", "yes", "later", "no"] * 10)
    table = load_table(people, label="hired", sensitive="gender")
    assert table.pos_label is None
    assert any(note.startswith("'hired' has 3 labels, and none was named") for note in table.notes)
    assert "label 'hired': no 50.0 %, yes 25.0 %, later 25.0 %" in repr(table)
    named = load_table(people, label="hired", sensitive="gender", pos_label="later")
    assert named.pos_label == "later"
    assert not any("none was named" in note for note in named.notes)


def test_amounts_are_no_guess_of_the_label() -> None:
    people = PEOPLE.rename(columns={"hired": "approved"})
    people.insert(0, "income", range(len(people)))
    table = load_table(people, sensitive="gender")
    assert table.label.name == "approved"
    assert "Guessed that 'approved' is the label." in table.notes


@pytest.mark.parametrize("kind", [object, "category"])
def test_blanks_around_labels_and_groups_are_no_part_of_them(kind: Any) -> None:
    people = PEOPLE.assign(
        gender=["f", "m", " f", "m\t"] * 10, hired=["no", "no ", "yes", " "] * 9 + ["no", "no", "yes", "no"]
    ).astype({"gender": kind, "hired": kind})
    table = load_table(people, label="hired", sensitive="gender", pos_label=" yes")
    assert table.label.value_counts().to_dict() == {"no": 21, "yes": 10}
    assert table.sensitive_features.value_counts().to_dict() == {"f": 20, "m": 11}
    assert table.pos_label == "yes"
    assert table.notes[:3] == [
        "'hired' has blanks around the values of 18 people, such as 'no '; these were removed.",
        "'gender' has blanks around the values of 20 people, such as ' f'; these were removed.",
        "Left out: 9 people without 'hired'.",
    ]


def test_labels_and_groups_that_differ_in_case_are_told() -> None:
    people = PEOPLE.assign(gender=["f", "m", "F", "m"] * 10, hired=["no", "No", "yes", "NO"] * 10)
    table = load_table(people, label="hired", sensitive="gender")
    assert "'gender' has 'F' and 'f', which differ only in case: they stay separate." in table.notes
    assert "'hired' has 'NO' and 'No' and 'no', which differ only in case: they stay separate." in table.notes
    assert table.sensitive_features.nunique() == 3


def test_a_label_of_many_numbers_may_be_an_amount() -> None:
    people = PEOPLE.assign(grade=[number % 17 for number in range(40)])
    table = load_table(people, label="grade", sensitive="gender")
    assert any("The 17 values of 'grade' are numbers" in note for note in table.notes)
    few = load_table(people.assign(grade=people["grade"] % 3), label="grade", sensitive="gender")
    assert not any("are numbers" in note for note in few.notes)


def test_several_columns_may_be_named_in_one_text() -> None:
    table = load_table(PEOPLE, label="hired", sensitive="gender", drop="age,race", categorical="id")
    assert list(table.contexts) == ["id"]
    odd = PEOPLE.assign(**{"age,race": PEOPLE["age"] % 3})
    assert set(load_table(odd, label="hired", sensitive="gender", drop="age,race").contexts) == {
        "age",
        "race",
    }
    with pytest.raises(ValueError, match="Got drop='age,rase', but"):
        load_table(PEOPLE, label="hired", sensitive="gender", drop="age,rase")
