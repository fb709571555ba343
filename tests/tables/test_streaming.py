from __future__ import annotations

import csv
import io

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.tables import streaming
from evenhand.tables.csv_format import line_of_row, unguarded
from evenhand.tables.files import read_table
from evenhand.tables.streaming import read_chunks
from evenhand.tables.writing import safe_cell, writing

FORMULA = "=+-@\t\r\n＝＋－＠"


@given(st.text(max_size=20))
def test_a_safe_cell_starts_no_formula_and_keeps_its_text(text):
    cell = safe_cell(text)
    assert cell in (text, "'" + text)
    if len(cell) > 1 and cell[0] in FORMULA:
        float(cell)  # only a number may begin with a sign


SIGNED = st.text(FORMULA + "'5a ", max_size=4)


@given(st.text(max_size=20) | SIGNED)
def test_reading_gives_back_what_was_guarded(text):
    assert unguarded(safe_cell(text)) == text


@given(st.lists(st.text("=+-@'＝a5", min_size=1, max_size=4), min_size=2, max_size=2, unique=True), st.lists(
    st.lists(st.text("=+-@'＝a", min_size=1, max_size=4), min_size=2, max_size=2), min_size=1, max_size=5
))  # fmt: skip
def test_a_written_table_is_read_as_it_was(tmp_path_factory, names, rows):
    table = pd.DataFrame(rows, columns=names, dtype=object)
    path = tmp_path_factory.mktemp("again") / "t.csv"
    with writing(path) as out:
        out.write(table)
    (chunk,) = read_chunks(path)
    for again in (chunk.rows, read_table(path).frame):
        assert list(again.columns) == names
        assert again.to_numpy().tolist() == rows


def test_signs_alone_are_written_as_they_are_and_formulas_are_not(tmp_path):
    path = tmp_path / "t.csv"
    with writing(path) as out:
        out.write(pd.DataFrame({"label": ["+", "-", "@home", "=1+1"]}))
    assert path.read_text().split() == ["label", "+", "-", "'@home", "'=1+1"]


def test_numbers_are_written_with_the_tables_decimal_sign_and_read_back(tmp_path):
    path, amounts = tmp_path / "t.csv", [0.25, 1.5e-05, 1234.567, 2.0]
    with writing(path) as out:
        out.write(pd.DataFrame({"text": "24,5", "p": amounts, "n": [1, 2, 3, 4]}), separator=";", decimal=",")
    assert path.read_text().splitlines()[1:3] == ["24,5;0,25;1", "24,5;0,000015;2"]
    assert read_table(path).frame["p"].tolist() == amounts


@pytest.mark.parametrize("value", [-3, 2.5, True, None, "-3", "+4.5e-3", "-.5"])
def test_numbers_stay_numbers(value):
    assert safe_cell(value) == value


def _all(path, size):
    return list(read_chunks(path, size=size))


@given(
    st.lists(
        st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0'")), min_size=2, max_size=2)
    ),
    st.integers(1, 5),
)
def test_any_csv_comes_back_in_chunks_of_any_size(tmp_path_factory, rows, size):
    rows = [row for row in rows if any(row)]
    text = io.StringIO()
    csv.writer(text).writerows([["a", "b"], *rows])
    path = tmp_path_factory.mktemp("any") / "t.csv"
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
    chunks = _all(path, size)
    assert [row for chunk in chunks for row in chunk.rows.to_numpy().tolist()] == rows
    lines = text.getvalue()
    assert all(len(chunk.rows) <= size for chunk in chunks)
    assert [line for chunk in chunks for line in chunk.lines] == _lines(lines)


def _lines(text):
    """The obvious way: count the lines that the rows before took."""
    reader, begins, found = csv.reader(io.StringIO(text, newline="")), 1, []
    for fields in reader:
        if fields:
            found.append(begins)
        begins = reader.line_num + 1
    return found[1:]


def test_separators_marks_and_quoted_breaks(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeffa;b\n1;"x\ny"\n\n2;é\n'.encode())
    (chunk,) = _all(path, 10)
    assert list(chunk.rows.columns) == ["a", "b"]
    assert chunk.rows["b"].tolist() == ["x\ny", "é"]
    assert chunk.lines == [2, 5]


@pytest.mark.parametrize(
    ("content", "wanted"),
    [(b"a,a\n1,2\n", "line 1: the column name 'a' appears twice"), (b"a,,c\n", "line 1: column 2 has no name"),
     (b"", "is empty; expected a table"), (b"\xef\xbb\xbf", "is empty; expected a table"),
     (b"\na,b\n", "line 1 is empty; expected column names"), (b"a" * 200_000, "line 1: a field is longer than"),
     (b"a" * 2_000_000, "line 1 is longer than"), (b"sep=;\na;b;a\n", "line 2: the column name 'a' appears twice"),
     (b"sep=;\r\n\na;b\n", "line 2 is empty"), (b"sep=;\n", "is empty; expected a table"),
     (b"sep=;\na;\"b\n", "line 2: the file ends inside a quoted field"), (b",,c\n", "line 1: column 2 has no name"),
     (b'""\n1\n', "line 1: column 1 has no name"),
     (b'a,"b\n1,2\n', "line 2: the file ends inside a quoted field"),
     (b"a,b\xff\n1,2\n", "line 1: the byte 0xff at position 4 is not UTF-8")],
)  # fmt: skip
def test_a_damaged_header_is_told_alike_whether_the_file_is_read_whole_or_in_chunks(
    tmp_path, content, wanted
):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=wanted) as whole:
        read_table(path)
    with pytest.raises(ValueError, match=wanted) as chunked:
        _all(path, 10)
    assert str(whole.value) == str(chunked.value)


@pytest.mark.parametrize(
    ("encoding", "wanted"),
    [("foo", "Got the encoding 'foo', but expected one that Python knows"), ("hex", "Got the encoding 'hex'"),
     ("ascii", "line 3: the byte 0xe9 at position 3 is not ASCII"), ("utf-16", r"t.csv is not UTF-16\. Save")],
)  # fmt: skip
def test_a_wrong_encoding_is_told_alike(tmp_path, encoding, wanted):
    path = tmp_path / "t.csv"
    path.write_bytes("a,b\n1,x\n2,é\n".encode("latin-1"))
    with pytest.raises(ValueError, match=wanted) as whole:
        read_table(path, encoding=encoding)
    with pytest.raises(ValueError, match=wanted) as chunked:
        list(read_chunks(path, encoding=encoding))
    assert str(whole.value) == str(chunked.value)


@pytest.mark.parametrize("encoding", ["utf-8", "UTF_8", "utf8", "utf-8-sig"])
def test_every_name_of_utf_8_allows_a_mark_and_rejects_only_the_rows_with_other_bytes(tmp_path, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfa,b\n1,x\n2,\xe9\n3,z\n")
    (chunk,) = read_chunks(path, encoding=encoding)
    assert chunk.rows["a"].tolist() == ["1", "3"]
    assert [reject.line for reject in chunk.rejects] == [3]


ADVICE = r"Save the file as UTF-8, or give its encoding \(--encoding, in Python encoding=\)"


@pytest.mark.parametrize(
    ("encoding", "wanted"),
    [("utf-16-le", "which is utf-16 by its first bytes"), ("utf-16-be", "which is utf-16 by its first bytes"),
     ("cp1252", "often cp1252")],
)  # fmt: skip
def test_a_file_that_is_not_utf_8_is_read_as_the_error_advises(tmp_path, encoding, wanted):
    path = tmp_path / "t.txt"
    path.write_bytes("\ufeff".encode(encoding, "ignore") + "a€\tb\nx\ty\n".encode(encoding))
    with pytest.raises(ValueError, match=f"{ADVICE}, {wanted}") as whole:
        read_table(path)
    with pytest.raises(ValueError, match=wanted) as chunked:
        list(read_chunks(path))
    assert str(whole.value) == str(chunked.value)
    advised = encoding.removesuffix("-le").removesuffix("-be")
    (chunk,) = read_chunks(path, encoding=advised)
    assert list(chunk.rows) == list(read_table(path, encoding=advised).frame) == ["a€", "b"]


def test_an_encoding_that_was_asked_for_is_not_advised(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,\x81\n")
    with pytest.raises(ValueError, match=rf"{ADVICE}\.$"):
        read_table(path, encoding="cp1252")


@pytest.mark.parametrize("separator", [",", ";", "\t", ":"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_a_line_that_tells_the_separator_is_heard_and_skipped(tmp_path, separator, quote):
    path = tmp_path / "t.csv"
    lines = [f"{quote}sep={separator}{quote}", f"a{separator}b|b|b", f"1{separator}x", "", f"2{separator}"]
    path.write_bytes("\r\n".join(lines).encode())  # the names alone look like three, between bars
    (chunk,) = _all(path, 10)
    assert list(chunk.rows) == list(read_table(path).frame) == ["a", "b|b|b"]
    assert (chunk.rows["a"].tolist(), chunk.lines, chunk.rejects) == (["1", "2"], [3, 5], [])
    assert [line_of_row(path, row) for row in (0, 1)] == [3, 5]


def test_an_index_that_pandas_wrote_has_the_name_that_pandas_gives_it(tmp_path):
    path = tmp_path / "t.csv"
    pd.DataFrame({"a": [7, 8]}).to_csv(path)
    (chunk,) = _all(path, 10)
    assert list(chunk.rows) == list(read_table(path).frame) == list(pd.read_csv(path)) == ["Unnamed: 0", "a"]


def test_a_name_may_have_a_line_break(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,"b\n(in words)"\n1,x\n2,y\n')
    (chunk,) = _all(path, 10)
    assert list(chunk.rows.columns) == list(read_table(path).frame.columns) == ["a", "b\n(in words)"]
    assert (chunk.rows["a"].tolist(), chunk.lines, chunk.rejects) == (["1", "2"], [3, 4], [])
    assert [line_of_row(path, row) for row in (0, 1)] == [3, 4]


@pytest.mark.parametrize("size", [1, 2, 10])
@pytest.mark.parametrize(
    ("damaged", "why"),
    [('1,"x"y', "no CSV"), ('1,"x', "quote not closed"), (f"1,{'x' * 200_000}", "too long"),
     (f'1,"{"x" * 200_000}"', "too long"), ("1", "1 field, but there"), ("1,2,3", "3 fields")],
)  # fmt: skip
def test_a_damaged_line_is_rejected_alone(tmp_path, damaged, why, size):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b", '1,"u\nv"', damaged, '2,"w"', "", "3,z", damaged]) + "\n")
    chunks = _all(path, size)
    assert [row for chunk in chunks for row in chunk.rows.to_numpy().tolist()] == [
        ["1", "u\nv"], ["2", "w"], ["3", "z"],
    ]  # fmt: skip
    assert [line for chunk in chunks for line in chunk.lines] == [2, 5, 7]
    rejects = [reject for chunk in chunks for reject in chunk.rejects]
    assert [reject.line for reject in rejects] == [4, 8]
    assert all(why in reject.reason for reject in rejects)
    assert all(sum(map(len, reject.fields)) < 1100 for reject in rejects)


def test_an_endless_line_is_rejected_without_being_held(tmp_path, monkeypatch):
    monkeypatch.setattr("evenhand.tables.streaming._LONGEST_LINE", 10)
    path = tmp_path / "t.csv"
    path.write_text(f'a,b\n1,{"x" * 35}\n2,3\n4,"u\n{"y" * 25}\n5,6\n7,{"z" * 8}')
    (chunk,) = _all(path, 10)
    assert chunk.rows.to_numpy().tolist() == [["2", "3"], ["5", "6"]]
    assert chunk.lines == [3, 6]
    assert [(reject.line, reject.fields) for reject in chunk.rejects] == [
        (2, ["1,xxxxxxxx"]), (4, ['4,"u']), (5, ["y" * 10]), (7, ["7,zzzzzzzz"]),
    ]  # fmt: skip


def test_a_table_of_nobody_is_one_chunk_with_its_columns(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n\n\n")
    pd.DataFrame({"a": [1], "b": ["x"]}).head(0).to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        (chunk,) = _all(tmp_path / name, 10)
        assert (list(chunk.rows.columns), chunk.lines) == (["a", "b"], [])


def test_files_that_are_not_there_or_no_table(tmp_path):
    (tmp_path / "t.ods").write_text("x")
    (tmp_path / "t.parquet").write_text("x")
    with pytest.raises(ValueError, match=r"t\.parquet is not a complete Parquet file"):
        list(read_chunks(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"Did you mean 't.ods'"):
        read_chunks(tmp_path / "t.od")
    with pytest.raises(ValueError, match=r"expected one of '.csv'"):
        read_chunks(tmp_path / "t.ods")
    with pytest.raises(ValueError, match="not a complete Parquet file"):
        _all(tmp_path / "t.parquet", 10)


def _write_and_stop(path):
    with writing(path) as out:
        out.write(pd.DataFrame({"a": [1]}))
        raise RuntimeError("stop")


def test_a_column_without_values_in_the_first_chunk_keeps_its_type(tmp_path):
    people = pd.DataFrame({"a": [None, None, "x"], "n": pd.array([1, None, 3], dtype="Int64")})
    people.to_parquet(tmp_path / "p.parquet")
    with writing(tmp_path / "q.parquet") as out:
        for chunk in read_chunks(tmp_path / "p.parquet", size=1):
            out.write(chunk.rows.assign(new=pd.Series([None], dtype=object)), chunk.schema)
    again = pd.read_parquet(tmp_path / "q.parquet")
    assert again["a"].tolist()[2] == "x"
    assert again["n"].tolist()[::2] == [1, 3]
    assert again["new"].isna().all()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_appears_only_when_it_is_whole(tmp_path, kind):
    path = tmp_path / f"t.{kind}"
    with pytest.raises(RuntimeError, match="stop"):
        _write_and_stop(path)
    assert not list(tmp_path.iterdir())
    with writing(path) as out:
        out.write(pd.DataFrame({"a": [1]}))
        out.write(pd.DataFrame({"a": [2]}))
    again = pd.read_csv(path) if kind == "csv" else pd.read_parquet(path)
    assert again["a"].tolist() == [1, 2]
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_two_writers_of_one_file_never_mix_and_a_users_own_files_stay(tmp_path, kind):
    path, own = tmp_path / f"t.{kind}", tmp_path / f"t.{kind}.partial"
    own.write_text("mine")
    with writing(path) as one:
        one.write(pd.DataFrame({"a": [1]}))
        with writing(path) as two:
            two.write(pd.DataFrame({"a": [10]}))
            one.write(pd.DataFrame({"a": [2]}))
            two.write(pd.DataFrame({"a": [20]}))
        read = pd.read_csv if kind == "csv" else pd.read_parquet
        assert read(path)["a"].tolist() == [10, 20]
    assert read(path)["a"].tolist() == [1, 2]
    assert own.read_text() == "mine"
    assert {entry.name for entry in tmp_path.iterdir()} == {path.name, own.name}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_that_is_not_kept_leaves_the_one_before(tmp_path, kind):
    path = tmp_path / f"t.{kind}"
    path.write_text("before")
    with writing(path) as out:
        out.write(pd.DataFrame({"a": [1]}))
        out.keep = False
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_reading_stays_linear_however_damaged_a_file_is(tmp_path, monkeypatch):
    """Every line opens a quote that the next one closes and opens again: each row would read to the end."""
    monkeypatch.setattr(streaming, "_MOST_AGAIN", 1000)
    read = [0]
    real = streaming._Lines.__next__

    def counted(lines):
        read[0] += 1
        return real(lines)

    monkeypatch.setattr(streaming._Lines, "__next__", counted)
    path = tmp_path / "p.csv"
    path.write_text("x,y\n" + 'a","b\n' * 2000 + "1,2\n")
    chunks = list(streaming.read_chunks(path))
    assert sum(len(chunk.rejects) for chunk in chunks) == 2000
    assert [row for chunk in chunks for row in chunk.rows.to_numpy().tolist()] == [["1", "2"]]
    assert read[0] < 2000 * (streaming._MOST_LINES + 5)
