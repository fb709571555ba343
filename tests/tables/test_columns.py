from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand.tables import load_table
from evenhand.tables.columns import tidy_columns
from evenhand.tables.files import Table


def tidy(column: Any, **options: Any) -> tuple[pd.DataFrame, list[str]]:
    notes: list[str] = []
    frame, _ = tidy_columns(pd.DataFrame({"c": column}), notes, **options)
    return frame, notes


def test_numbers_stay_and_text_becomes_categories() -> None:
    frame, notes = tidy([1, 2, 3])
    assert frame["c"].tolist() == [1, 2, 3]
    frame, notes = tidy(["a", "b", "a"])
    assert frame["c"].cat.categories.tolist() == ["a", "b"]
    assert notes == []


def test_missing_values_are_said() -> None:
    frame, notes = tidy([1.0, np.nan, 3.0])
    assert frame["c"].isna().tolist() == [False, True, False]
    assert len(notes) == 1
    assert notes[0].startswith("Values are missing in 'c' (1). A missing number is replaced by the mean")
    frame, notes = tidy(["a", None, "b"])
    assert frame["c"].tolist() == ["a", "missing", "b"]
    assert notes[0].startswith("Values are missing in 'c' (1).")
    many = pd.DataFrame({f"c{at}": [1.0, 2.0, None] for at in range(18)})
    notes = []
    tidy_columns(many, notes)
    assert len(notes) == 1
    assert "'c4' (1) and 13 more columns" in notes[0]


def test_a_sign_for_no_value_among_numbers_is_missing_but_among_text_a_category() -> None:
    frame, notes = tidy(["1", "?", "3", "n/a"])
    assert frame["c"].fillna(-1).tolist() == [1, -1, 3, -1]
    assert notes[0] == "'c' is a column of numbers, in which '?', 'n/a' counts as missing."
    frame, _ = tidy(["a", "?", "b"])
    assert set(frame["c"]) == {"a", "?", "b"}
    frame, _ = tidy(["?", "-", "?"])
    assert set(frame["c"]) == {"?", "-"}


def test_a_column_with_one_value_is_left_out_but_not_if_some_are_missing() -> None:
    frame, notes = tidy(["a", "a"])
    assert frame.shape[1] == 0
    assert notes == ["'c' is always 'a' and is left out."]
    frame, notes = tidy([None, None])
    assert notes == ["'c' is empty and is left out."]
    frame, _ = tidy(["a", None])
    assert frame.shape[1] == 1


def test_large_numbers_of_values_are_written_alike() -> None:
    texts = [f"t{number}" for number in range(3000)]
    assert tidy(texts)[1] == ["'c' has 3,000 different texts for 3,000 people and is left out."]
    assert tidy([text[:4] for text in texts] * 2, codes=["c"])[1][0].startswith("'c' has 1,000 categories;")


def test_identifiers_are_left_out() -> None:
    frame, notes = tidy([f"person {number}" for number in range(30)])
    assert frame.shape[1] == 0
    assert notes == ["'c' has 30 different texts for 30 people and is left out."]
    notes = []
    frame, _ = tidy_columns(pd.DataFrame({"member_id": range(30), "age": range(30)}), notes)
    assert list(frame) == ["age"]
    assert "an identifier" in notes[0]


@pytest.mark.parametrize("name", ["id", "patient_nbr", "customerID", "Unnamed: 0", "encounter.id"])
@pytest.mark.parametrize("kind", ["unique", "gaps", "repeated", "text"])
def test_identifiers_are_known_also_with_gaps_and_repeats(name: str, kind: str) -> None:
    numbers: Any = np.arange(600) * 7 + 10_000
    if kind == "gaps":
        numbers = np.where(np.arange(600) % 50, numbers, np.nan)
    elif kind == "repeated":
        numbers = np.repeat(numbers[:200], 3)
    elif kind == "text":
        numbers = [f"P-{number}" for number in np.repeat(numbers[:200], 3)]
    notes: list[str] = []
    frame, _ = tidy_columns(pd.DataFrame({name: numbers, "age": np.arange(600) % 70}), notes)
    assert list(frame) == ["age"]
    assert repr(name) in notes[0]
    frame, _ = tidy_columns(pd.DataFrame({name: numbers}), [], codes=[name])
    assert list(frame) == [name]


def test_codes_are_known_by_their_names() -> None:
    people = pd.DataFrame(
        {"admission_type_id": [1, 2, 3] * 40, "zip": [10115, 80331, None] * 40, "paid": [1, 2, 3] * 40}
    )
    notes: list[str] = []
    frame, _ = tidy_columns(people, notes)
    assert [str(frame[name].dtype) for name in people] == ["category", "category", "int64"]
    assert set(frame["zip"]) == {"10115", "80331", "missing"}
    assert "'zip' holds codes, judging by its name, not amounts: each is a category." in notes


def test_a_constant_with_gaps_says_only_whether_it_is_known() -> None:
    frame, notes = tidy([7.0, None] * 10)
    assert str(frame["c"].dtype) == "category"
    assert notes[0] == "'c' is always 7.0 or missing: only whether it is missing is used."


def test_many_categories_are_kept_and_said() -> None:
    frame, notes = tidy([f"town {number % 150}" for number in range(1_000)])
    assert frame["c"].nunique() == 150
    assert notes == ["'c' has 150 categories; those that are rare in the training part share one column."]


def test_a_missing_date_is_said() -> None:
    frame, notes = tidy(["1970-01-02", None, "1970-01-04"])
    assert frame["c"].isna().tolist() == [False, True, False]
    assert notes[1].startswith("Values are missing in 'c' (1). A missing number is replaced by the mean")


@pytest.mark.parametrize("texts", [["1.2.3.4", "5.6.7.8"], ["2013", "spring"], ["99-99-99", "12-13-14"]])
def test_what_only_looks_like_a_date_is_text(texts: list[str]) -> None:
    frame, _ = tidy(texts)
    assert frame["c"].tolist() == texts


def test_codes_are_categories_on_request_and_so_are_true_and_false() -> None:
    frame, _ = tidy([10115, 20095, 10115], codes=["c"])
    assert frame["c"].cat.categories.tolist() == ["10115", "20095"]
    frame, _ = tidy([True, False, True])
    assert frame["c"].cat.categories.tolist() == ["False", "True"]


def test_text_among_numbers_names_file_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["age", *map(str, range(25, 45)), "old", *map(str, range(50, 70)), ""]))
    with pytest.raises(
        ValueError, match=r"people.csv, line 22, column 'age': got 'old' in a column of numbers"
    ):
        tidy_columns(pd.read_csv(path), [], place=Table(pd.DataFrame(), str(path), path=path).place)
    with pytest.raises(ValueError, match=r"the DataFrame, row 2, column 'c': got 'old' .*\(1 such value\)"):
        tidy([1, 2, "old", *range(20)])


@pytest.mark.parametrize(
    ("text", "hinted"),
    [("2433,67", True), ("2.433,67", True), ("2,433", True), ("2,433.67", False), ("1,234,567", False)],
)
def test_a_decimal_comma_is_suggested_only_where_it_may_be_one(text: str, hinted: bool) -> None:
    with pytest.raises(ValueError, match="written with ','") as raised:
        tidy([text, "7"] * 20)
    assert ("decimal=','" in str(raised.value)) is hinted


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (
            ["2433,67", "12,5", "7"],
            "row 0, .*got '2433,67', written with ',' .expected numbers like 2433.67. in",
        ),
        (["€ 2,433.67", "€ 5"], "got '€ 2,433.67', written with '€', ' ' and ',' "),
        (["2 433 EUR", "5 EUR"], "got '2 433 EUR', written with ' ' and 'EUR' "),
        (["15,0 %", "7,5 %"], "got '15,0 %', written with ',', ' ' and '%' "),
        (["1.234.567", "2.345.678"], r"got '1.234.567', written with '\.' "),
        (["2'433.67", "-5.1"], r"written with \"'\" .*20 such values"),
        (
            [*(str(age) for age in range(20, 45)), "old"],
            r"row 25, column 'c': got 'old' in a column of numbers \(20 such values\)",
        ),
    ],
)
def test_numbers_as_spreadsheets_write_them_are_to_be_mended(texts: list[str], wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        tidy(texts * 20)
    frame, _ = tidy(texts * 20, codes=["c"])
    assert set(frame["c"]) == set(texts)


def test_a_column_that_counts_people_is_left_out_whatever_its_name() -> None:
    rng = np.random.default_rng(0)
    counting = rng.permutation(np.delete(np.arange(500, 720), [3, 77, 150]))
    frame, notes = tidy(counting)
    assert "c" not in frame
    assert notes == ["'c' numbers the people from 500 on and is left out."]
    for amounts in (counting[:99], counting + 0.5, np.r_[counting, counting[:1]], counting * 3):
        assert "c" in tidy(amounts)[0]
    assert "c" in tidy(counting, codes=["c"])[0]


def test_words_beside_a_few_numbers_are_answers() -> None:
    frame, notes = tidy(["1", "2", "5", "some"] * 20)
    assert frame["c"].cat.categories.tolist() == ["1", "2", "5", "some"]
    assert notes == ["'c' has 'some' beside a few numbers: each value is a category."]
    assert len(tidy([*["9", "10", "11", "12"] * 20, "other", "<5"])[0]["c"].cat.categories) == 6
    with pytest.raises(ValueError, match="got 'some' in a column of numbers"):
        tidy([*map(str, range(30)), "some"])
    with pytest.raises(ValueError, match="written with"):
        tidy(["1", "2", "1.234.567"] * 20)


@pytest.mark.parametrize(
    "texts", [["10-20", "20-30"], ["3 rooms", "1", "two"], ["12:30", "14:00"], ["1,5,7", "2,3,5"]]
)
def test_text_with_digits_is_text(texts: list[str]) -> None:
    assert tidy(texts)[0]["c"].tolist() == texts


@pytest.mark.parametrize("mark", ["#N/A", "#NULL!", "#DIV/0!", "n.a.", "-", "unknown"])
def test_marks_of_spreadsheets_are_missing_among_numbers_and_dates(tmp_path: Path, mark: str) -> None:
    people = pd.DataFrame(
        {
            "age": ["25", mark, "31", "47"] * 5,
            "born": ["1970-01-02", "1970-02-01", mark, mark] * 5,
            "y": ["a", "b"] * 10,
            "s": ["f", "m"] * 10,
        }
    )
    people.to_csv(tmp_path / "p.csv", index=False)
    for source in (people, tmp_path / "p.csv"):
        loaded = load_table(source, label="y", sensitive="s")
        assert loaded.contexts["age"].fillna(-1).tolist() == [25, -1, 31, 47] * 5
        assert loaded.contexts["born"].fillna(-1).tolist() == [1, 31, -1, -1] * 5
        assert loaded.dates == {"born": "ISO8601"}


def test_an_infinite_number_is_refused() -> None:
    with pytest.raises(ValueError, match="row 1, column 'c': got an infinite number"):
        tidy([1.0, np.inf])


def test_a_number_too_large_for_a_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("age\n25\n31\n-1e300\n")
    with pytest.raises(
        ValueError, match=r"line 4, column 'age': got -1e\+300; expected numbers up to 3.4e\+38"
    ):
        tidy_columns(pd.read_csv(path), [], place=Table(pd.DataFrame(), str(path), path=path).place)
    assert tidy([1.0, 3e38])[1] == []


def test_lines_are_right_after_people_were_left_out(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["age", *map(str, range(25, 45)), "old", *map(str, range(50, 70)), ""]))
    with pytest.raises(ValueError, match="line 22, column 'age'"):
        tidy_columns(pd.read_csv(path).iloc[5:], [], place=Table(pd.DataFrame(), str(path), path=path).place)


def test_numbers_with_leading_zeros_are_codes() -> None:
    frame = pd.DataFrame(
        {
            "ward": ["01", "02", "10", "01"] * 5,
            "age": ["30", "0", "41", "-0.5"] * 5,
            "y": ["a", "b"] * 10,
            "s": ["f", "m"] * 10,
        }
    )
    loaded = load_table(frame, label="y", sensitive="s")
    assert set(loaded.contexts["ward"]) == {"01", "02", "10"}
    assert loaded.contexts["age"].dtype.kind == "f"


@pytest.mark.parametrize("odd", ["2022-02-30", "yesterday"])
def test_what_is_no_date_among_dates_is_named_with_its_line(tmp_path: Path, odd: str) -> None:
    days = pd.date_range("2020-01-01", periods=40).strftime("%Y-%m-%d").to_list()
    days[7] = odd
    pd.DataFrame({"day": days, "sex": ["f", "m"] * 20, "hired": ["no", "no", "yes", "yes"] * 10}).to_csv(
        tmp_path / "people.csv", index=False
    )
    given = {"label": "hired", "sensitive": "sex"}
    with pytest.raises(
        ValueError, match=rf"people.csv, line 9, column 'day': got '{odd}' in a column of dates"
    ):
        load_table(tmp_path / "people.csv", **given)
    found = load_table(tmp_path / "people.csv", map={f"day:{odd}": None}, **given)
    assert found.dates == {"day": "ISO8601"}
    assert "day" in load_table(tmp_path / "people.csv", categorical="day", **given).contexts
