"""Packed files, workbooks, decimal commas and mapped values; hostile files are refused."""

from __future__ import annotations

import bz2
import gzip
import lzma
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest

from evenhand.tables import load_table, paths, workbook
from evenhand.tables.files import read_table
from evenhand.tables.mapping import mapped
from evenhand.tables.streaming import read_chunks
from evenhand.tables.writing import writing

TEXT = "age,job,hired\n25,cook,yes\n31,clerk,no\n,cook,no\n"
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}


@pytest.fixture
def plain(tmp_path: Path) -> pd.DataFrame:
    (tmp_path / "people.csv").write_text(TEXT)
    return read_table(tmp_path / "people.csv").frame


@pytest.mark.parametrize("kind", PACK)
def test_packed_files_are_read_as_they_are(kind: str, tmp_path: Path, plain: pd.DataFrame) -> None:
    path = tmp_path / f"people.csv.{kind}"
    path.write_bytes(PACK[kind](TEXT.encode()))
    table = read_table(path)
    pd.testing.assert_frame_equal(table.frame, plain)
    assert table.place(1) == f"{path}, line 3"
    assert [chunk.rows["job"].tolist() for chunk in read_chunks(path, size=2)] == [
        ["cook", "clerk"],
        ["cook"],
    ]


@pytest.mark.parametrize("kind", PACK)
def test_a_packed_file_that_is_cut_off_is_an_error(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"people.csv.{kind}"
    whole = PACK[kind]((TEXT * 100).encode())
    for damaged in (whole[: len(whole) // 2], b"not packed at all" * 9):
        path.write_bytes(damaged)
        for read in (read_table, lambda path: list(read_chunks(path))):
            with pytest.raises(ValueError, match="people.csv.* is damaged or cut off"):
                read(path)


def test_a_small_file_that_holds_too_much_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(paths, "MOST_UNPACKED", 1 << 20)
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"a\n" + b"1\n" * (1 << 20)))
    with pytest.raises(ValueError, match=r"when it is unpacked, though the file has only [\d,]+ bytes"):
        read_table(path)


def test_what_is_packed_must_be_text(tmp_path: Path) -> None:
    (tmp_path / "people.parquet.gz").write_bytes(b"")
    with pytest.raises(ValueError, match=r"'.parquet.gz', but expected one of '.csv.gz'"):
        read_table(tmp_path / "people.parquet.gz")


def write_book(path: Path, rows: list[list[Any]], **more: list[list[Any]]) -> Path:
    book = openpyxl.Workbook()
    for title, content in {"people": rows, **more}.items():
        page = book.create_sheet(title)
        for row in content:
            page.append(row)
    book.remove(book["Sheet"])
    book.save(path)
    return path


def test_workbooks(tmp_path: Path) -> None:
    day = pd.Timestamp("2020-02-29")
    rows: list[list[Any]] = [
        ["age", "job", "since", "code"],
        [25, "cook", day.to_pydatetime(), "01"],
        [],
        [None, "#N/A", None, "02"],
    ]
    path = write_book(tmp_path / "people.xlsx", rows, other=[["a"], [1]])
    table = read_table(path)
    assert table.frame["age"].tolist()[0] == 25
    assert table.frame.isna().sum().tolist() == [1, 1, 1, 0]
    assert table.frame["since"].iloc[0] == day
    assert table.frame["code"].tolist() == ["01", "02"]
    assert table.notes == ["people.xlsx has the sheets 'people', 'other'; the first was read."]
    assert table.place(1) == f"{path}, row 4"
    assert read_table(path, sheet="other").frame["a"].tolist() == [1]
    (chunk, rest) = read_chunks(path, size=1)
    assert (chunk.lines, rest.lines) == ([2], [4])
    for read in (read_table, lambda path, **more: list(read_chunks(path, **more))):
        with pytest.raises(
            ValueError, match="Got sheet='othr', but .* has no such sheet. Did you mean 'other'"
        ):
            read(path, sheet="othr")
        (tmp_path / "people.csv").write_text(TEXT)
        with pytest.raises(ValueError, match="only an Excel file"):
            read(tmp_path / "people.csv", sheet="other")


def test_a_column_that_is_in_another_sheet(tmp_path: Path) -> None:
    book = write_book(tmp_path / "w.xlsx", [["about"], ["notes"]], data=[["hired", "sex"], [1, "f"]])
    sheets = "w.xlsx has the sheets 'people', 'data'; the first was read. Name another with sheet= (--sheet)."
    for roles in ({"label": "hired"}, {}):
        with pytest.raises(ValueError, match=r"w\.xlsx") as raised:
            load_table(book, **roles)
        assert str(raised.value).endswith(sheets)
    with pytest.raises(ValueError, match=r"Its columns: 'about'\.$"):
        load_table(book, sheet="people", label="hired")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "is empty; expected a table with column names"),
        ([["a", "a"], [1, 2]], "row 1: the column name 'a' appears twice"),
        ([["a", None, "b"], [1, 2, 3]], "row 1: column 2 has no name"),
        ([["a", "b"], [1, 2, 3]], "row 2 has 3 cells, but there are 2 column names"),
    ],
)
def test_sheets_that_are_no_table(rows: list[list[Any]], said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=said):
        read_table(write_book(tmp_path / "people.xlsx", rows))


def test_a_sheet_of_names_alone_has_one_empty_piece(tmp_path: Path) -> None:
    (chunk,) = read_chunks(write_book(tmp_path / "people.xlsx", [["a", "b"]]))
    assert (list(chunk.rows.columns), chunk.lines) == (["a", "b"], [])


def test_a_row_with_more_cells_is_rejected_alone(tmp_path: Path) -> None:
    path = write_book(tmp_path / "people.xlsx", [["a"], [1], [2, 3]])
    (chunk,) = read_chunks(path)
    assert chunk.rows["a"].tolist() == [1]
    assert chunk.rejects == [(3, "2 cells, but there is 1 column name", ["2", "3"])]


def test_hostile_workbooks_are_refused(tmp_path: Path, monkeypatch: Any) -> None:
    good = write_book(tmp_path / "good.xlsx", [["a"], [1]])
    path = tmp_path / "people.xlsx"
    path.write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(ValueError, match="people.xlsx is not a readable Excel workbook"):
        read_table(path)
    laughs = '<!DOCTYPE a [<!ENTITY l0 "ha">' + "".join(
        f'<!ENTITY l{at} "{f"&l{at - 1};" * 20}">' for at in range(1, 9)
    )
    for part, content in (
        ("xl/styles.xml", "<x>" + " " * (17 << 20) + "</x>"),  # is read at once
        ("xl/workbook.xml", laughs + "]><a>&l8;</a>"),
        ("xl/worksheets/sheet1.xml", laughs + "]><worksheet>&l8;</worksheet>"),
        ("xl/worksheets/sheet1.xml", "<worksheet><sheetData><row><c r='??'/>"),
    ):
        with zipfile.ZipFile(good) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                new.writestr(name, content if name == part else old.read(name))
        with pytest.raises(ValueError, match="people.xlsx"):
            read_table(path)
        with pytest.raises(ValueError, match="people.xlsx"):
            list(read_chunks(path))
    monkeypatch.setattr(workbook, "_MOST_CELLS", 5)
    with pytest.raises(ValueError, match="more than 5 cells; save so large a table as CSV"):
        read_table(write_book(path, [["a", "b"], [1], [1], [1]]))
    monkeypatch.setattr(paths, "MOST_UNPACKED", 1000)
    with pytest.raises(ValueError, match="when it is unpacked"):
        read_table(good)


def test_formulas_are_neither_run_nor_written(tmp_path: Path) -> None:
    path = tmp_path / "d.xlsx"
    with writing(path) as out:
        out.write(pd.DataFrame({"a": ["=1+1", "\x07bell"], "b": [1.5, None], "=c": [True, False]}))
    page = openpyxl.load_workbook(path).worksheets[0]
    cells = [[(cell.value, cell.data_type) for cell in row] for row in page.iter_rows()]
    assert cells[0][2] == ("=c", "s")
    assert cells[1] == [("=1+1", "s"), (1.5, "n"), (True, "b")]
    assert cells[2][:2] == [(" bell", "s"), (None, "n")]


def test_a_workbook_without_openpyxl_names_the_extra(tmp_path: Path) -> None:
    script = (
        "import sys\nsys.modules['openpyxl'] = None\n"
        "from evenhand.tables.files import read_table\nread_table(sys.argv[1])"
    )
    path = write_book(tmp_path / "people.xlsx", [["a"], [1]])
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True)
    assert "people.xlsx needs openpyxl: pip install 'evenhand[excel]'." in done.stderr


EUROPEAN = "pay;born;size\n1.234,5;31.12.2020;1\n7;01.02.2020;2\n2.000;;3\n"


def test_decimal_commas_are_recognised(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(EUROPEAN)
    table = read_table(path)
    assert table.frame["pay"].tolist() == [1234.5, 7.0, 2000.0]
    assert table.frame["size"].dtype == "int64"
    assert table.frame["born"].tolist()[:2] == ["31.12.2020", "01.02.2020"]
    assert "decimal comma" in table.notes[1]
    assert read_table(path, decimal=",").notes == table.notes[:1]
    assert read_table(path, decimal=".").frame["pay"].tolist() == ["1.234,5", "7", "2.000"]
    assert [chunk.decimal for chunk in read_chunks(path, size=1)] == [","] * 3
    with pytest.raises(ValueError, match=r"Got decimal=';', but expected one of '.', ','"):
        read_table(path, decimal=";")


@pytest.mark.parametrize(
    "text",
    [
        "a;b\n1,5;2.5\n",  # somebody's text and a number
        "a;b\n1,234;2\n",  # a thousand, or more than one
        "a,b\n1,5\n",
        "a;b\n1.234;2\n",
    ],
)
def test_decimal_commas_are_not_guessed_without_a_reason(text: str, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(text)
    assert not any("decimal" in note for note in read_table(tmp_path / "people.csv").notes)


def test_decimal_commas_in_other_tables() -> None:
    frame = pd.DataFrame({"pay": ["1,5", "2"], "job": ["a, b", "1.000 miles"], "size": [1, 2]})
    found = read_table(frame, decimal=",").frame
    assert found["pay"].tolist() == ["1.5", "2"]
    assert found["job"].tolist() == frame["job"].tolist()


PEOPLE = pd.DataFrame({"pay": range(8), "sex": [0, 1] * 4, "loan": ["paid", "late", "default", "paid"] * 2})


def test_values_are_mapped() -> None:
    data = load_table(
        PEOPLE,
        label="loan",
        sensitive="sex",
        map={"paid": 1, "late": 0, "default": 0, "sex:0": "f", "sex:1": "m"},
    )
    assert data.label.tolist() == [1, 0, 0, 1] * 2
    assert data.pos_label == 1
    assert data.sensitive["sex"].tolist() == ["f", "m"] * 4
    left = load_table(PEOPLE, label="loan", sensitive="sex", map={"late": None})
    assert len(left) == 6
    assert "Left out: 2 people without 'loan'." in left.notes


def test_a_value_that_is_not_there_is_an_error() -> None:
    with pytest.raises(
        ValueError, match=r"Got 'pad' in map, but 'loan' of the DataFrame has no such value. Did"
    ):
        load_table(PEOPLE, label="loan", sensitive="sex", map={"pad": 1})
    with pytest.raises(ValueError, match=r"Got '2' in map, but 'sex' .* It has '0', '1'"):
        load_table(PEOPLE, label="loan", sensitive="sex", map={"sex:2": "f"})


def test_mapping_knows_numbers_however_they_are_written() -> None:
    gaps = pd.DataFrame({"a": [1.0, None, 2.0], "time": ["9:15", "9:30", "9:15"]})
    assert mapped(gaps, {"1": "one"}, ["a"])["a"].tolist()[::2] == ["one", 2.0]
    assert mapped(gaps, {"9:15": "early"}, ["time"])["time"].tolist() == ["early", "9:30", "early"]
    assert mapped(gaps, None, ["a"]) is gaps
