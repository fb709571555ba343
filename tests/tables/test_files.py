from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

from evenhand.tables.csv_format import codes_in, line_of_row
from evenhand.tables.files import read_table
from factories import growth

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(content: str | bytes, name: str = "people.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return to_file


def test_reads_csv(write: Write) -> None:
    table = read_table(write("age,job\n25,a\n,None\n"))
    frame, origin, notes = table.frame, table.origin, table.notes
    assert frame["age"].isna().tolist() == [False, True]
    assert frame["job"].tolist() == ["a", "None"]  # a category called None is no missing value
    assert origin.endswith("people.csv")
    assert notes == []


@pytest.mark.parametrize(("separator", "word"), [(";", "semicolon"), ("\t", "tab"), ("|", "bar")])
def test_other_separators_are_seen_and_said(separator: str, word: str, write: Write) -> None:
    table = read_table(write(f"age{separator}job\n25{separator}a,b\n"))
    assert table.frame["job"].tolist() == ["a,b"]
    assert table.notes == [f"Columns of people.csv are separated by a {word}."]


def test_a_spreadsheets_mark_is_no_part_of_the_first_name(write: Write) -> None:
    assert list(read_table(write("\ufeffage,job\n25,a\n")).frame) == ["age", "job"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "ascii", "cp1252"])
def test_a_byte_that_is_not_of_the_encoding_is_named_with_its_line(encoding: str, write: Write) -> None:
    path = write(b"name,age\nAnn,1\nJos\x81,2\n")
    with pytest.raises(ValueError, match=rf"line 3: the byte 0x81 at position 4 is not {encoding.upper()}"):
        read_table(path, encoding=encoding)


def test_another_encoding_on_request(write: Write) -> None:
    path = write("name\nJosé\n".encode("latin-1"))
    assert read_table(path, encoding="latin-1").frame["name"].tolist() == ["José"]


def test_reads_parquet(tmp_path: Path) -> None:
    people = pd.DataFrame({"age": [25, 31], "job": ["a", "b"]})
    people.to_parquet(tmp_path / "people.parquet")
    assert read_table(tmp_path / "people.parquet").frame.to_dict() == people.to_dict()


def test_takes_polars() -> None:
    assert read_table(pl.DataFrame({"age": [25, 31]})).frame["age"].tolist() == [25, 31]


class Speaks:
    """A table of somebody's own library, which speaks one protocol and no other."""

    def __init__(self, protocol: str) -> None:
        setattr(type(self), protocol, getattr(pd.DataFrame({"age": [25, 31]}), protocol))


@pytest.mark.parametrize("protocol", ["__arrow_c_stream__", "__dataframe__"])
@pytest.mark.filterwarnings("ignore:The Dataframe Interchange Protocol is deprecated")
def test_takes_tables_of_other_libraries(protocol: str) -> None:
    library = type("Library", (Speaks,), {})
    assert read_table(library(protocol)).frame["age"].tolist() == [25, 31]


@pytest.mark.parametrize("code", ["01", "007", "00", " 01", '"01"', "01.10", "00E5"])
def test_a_number_with_a_leading_zero_makes_its_column_text(code: str, write: Write) -> None:
    frame = read_table(write(f"age,branch,pay\n25,10,1\n31,{code},2\n,,\n")).frame
    assert frame["branch"].tolist()[:2] == ["10", code.strip('"')]
    assert frame["branch"].isna().tolist() == [False, False, True]
    assert frame["age"].tolist()[:2] == [25.0, 31.0]
    assert frame["pay"].tolist()[:2] == [1.0, 2.0]
    assert list(codes_in(frame)) == ["branch"]


@pytest.mark.parametrize("value", ["0", "0.5", "-0.5", "0.", "0e5", "10", "100", "-0"])
def test_other_zeros_are_numbers(value: str, write: Write) -> None:
    frame = read_table(write(f"branch\n7\n{value}\n")).frame
    assert frame["branch"].tolist() == [7.0, float(value)]
    assert codes_in(frame) == {}


def test_dates_and_words_are_no_codes(write: Write) -> None:
    frame = read_table(
        write("born,agent,at\n01.02.1990,007,08:30\n03.04.1990,M,09:00\n01.01.1991,Q,0\n")
    ).frame
    assert frame["agent"].tolist() == ["007", "M", "Q"]
    assert codes_in(frame) == {}


def test_an_apostrophe_before_a_sign_is_dropped_in_codes_and_beside_gaps(write: Write) -> None:
    frame = read_table(write("a,b\n'+,'tis\n,'@x\n007,o'=k\n")).frame
    assert frame["a"].tolist()[::2] == ["+", "007"]
    assert frame["a"].isna().tolist() == [False, True, False]
    assert frame["b"].tolist() == ["'tis", "@x", "o'=k"]


def test_lines_are_counted_past_quoted_breaks_and_empty_lines(write: Write) -> None:
    path = write('name,age\n"a\nb",1\n\nc,2\nd,3\n')
    assert [line_of_row(path, row) for row in range(3)] == [2, 5, 6]


BAD = {
    "empty": (b"", "is empty; expected a table"),
    "only names": (b"age,job\n", "has 2 columns and 0 rows"),
    "cut off": (b"age,job,sex\n25,a,f\n31,b", r"line 3 has 2 fields, but there are 3 column names"),
    "cut off in quotes": (b'age,job\n25,a\n31,"b', r"line 3: the file ends inside a quoted field"),
    "too many fields": (b"age,job\n25,a\n31,b,c\n", r"line 3 has 3 fields, but there are 2 column names"),
    "a nameless column": (b"age,,job\n1,2,3\n", "line 1: column 2 has no name"),
    "too many fields after sep=": (
        b"sep=;\na;b\n\n1;2;3\n",
        "line 4 has 3 fields, but there are 2 column names",
    ),
    "a name twice": (b"age,job,age\n1,2,3\n", "line 1: the column name 'age' appears twice"),
    "not UTF-8": (b"name,age\nAnn,1\nJos\xe9,2\n", r"line 3: the byte 0xe9 at position 4 is not UTF-8"),
    "not UTF-8 in line 1": (b"n\xe9,age\nAnn,1\n", r"line 1: the byte 0xe9 at position 2 is not UTF-8"),
    "10 MB in one line": (b"x" * 10_000_000, r"line 1 is longer than 1,000,000 characters"),
    "10 MB in one field": (
        b"age,job\n1," + b"x" * 10_000_000 + b"\n",
        r"line 2: a field is longer than 131,072",
    ),
    "10 MB of commas": (b"age,job\n" + b"1," * 5_000_000, r"line 2 has 5000001 fields"),
    "a stray quote": (b'age,job\n1,"a"b\n', "line 2: this is not CSV"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_files_are_named_with_their_line(kind: str, write: Write) -> None:
    content, message = BAD[kind]
    path = write(content)
    with pytest.raises(ValueError, match=message) as error:
        read_table(path)
    assert str(path) in str(error.value)


def test_a_cut_off_parquet_file(write: Write, tmp_path: Path) -> None:
    whole = tmp_path / "whole.parquet"
    pd.DataFrame({"age": range(1_000)}).to_parquet(whole)
    with pytest.raises(ValueError, match=r"cut.parquet is not a complete Parquet file"):
        read_table(write(whole.read_bytes()[:500], "cut.parquet"))


def test_a_missing_file_gets_the_nearest_name(write: Write, tmp_path: Path) -> None:
    write("a\n1\n")
    with pytest.raises(FileNotFoundError, match=r"no file .*peple.csv. Did you mean 'people.csv'"):
        read_table(tmp_path / "peple.csv")


def test_an_unknown_kind_of_file(write: Write) -> None:
    with pytest.raises(ValueError, match=r"the ending of people.ods='.ods', but expected one of '.csv'"):
        read_table(write("a", "people.ods"))


@pytest.mark.parametrize("source", [42, [1, 2], None])
def test_what_is_no_table(source: object) -> None:
    with pytest.raises(TypeError, match="expected the path of a CSV, Parquet or Excel file, or a frame"):
        read_table(source)


def test_a_frame_with_a_name_twice() -> None:
    with pytest.raises(ValueError, match="the DataFrame has the column 'a' more than once"):
        read_table(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_a_field_of_empty_lines_is_searched_in_linear_time(tmp_path):
    """From each of them the search went on to the last: 131,000, the most that a field holds, took minutes."""
    path = tmp_path / "p.csv"

    def read(lines):
        path.write_text('x,y\n1,"' + "\n" * lines + '"\n2,"a\n\n  07"\n')
        assert read_table(path).frame["x"].tolist() == [1, 2]

    assert growth(read, 5_000) < 60


def test_a_code_after_empty_lines_is_still_a_code(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text('x,y\n1,"\n\n 07"\n2,8\n')
    assert read_table(path).frame["y"].tolist() == ["\n\n 07", "8"]
