"""What is seen in a CSV file's bytes is what a reader of its fields sees, or nothing."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evenhand.tables import csv_bytes
from evenhand.tables.csv_bytes import plain_lines
from evenhand.tables.csv_format import check_lines, read_header

PATH = Path("people.csv")
FIELD = st.text(alphabet="07a.,\"'=- \n\rß", max_size=5)


def looked(text: str, piece: int) -> tuple[list[str], list[str]] | None:
    header = read_header(PATH, io.StringIO(text, newline=""))
    kept, csv_bytes._PIECE = csv_bytes._PIECE, piece
    try:
        return plain_lines(text.encode(), header, "utf-8-sig")
    finally:
        csv_bytes._PIECE = kept


@settings(max_examples=400)
@example(rows=[['"\n\n 07"', "8"]], piece=10_000)
@example(rows=[["'=1", "           007"]], piece=10_000)
@given(
    rows=st.lists(st.lists(FIELD, min_size=1, max_size=3), max_size=6), piece=st.sampled_from([8, 30, 10_000])
)
def test_what_is_seen_is_what_a_reader_reads(rows: list[list[str]], piece: int) -> None:
    text = "x,y\n" + "\n".join(",".join(row) for row in rows)
    found = looked(text, piece)
    if found is not None:  # and a reader has nothing to complain about
        assert found == check_lines(PATH, io.StringIO(text, newline=""))


@pytest.mark.parametrize(
    "text, found",
    [
        ("x,y\n1,2\n", ([], [])),
        ("x,y\r\n1,07\r\n\r\n03,4", (["x", "y"], [])),
        ('x,y\n1,"a, ""b"",\nc"\n2,"007"\n', (["y"], [])),
        ("x,y\n1,'=1+1\n", ([], ["y"])),
        ("x,y\n1,01/02/2020\n2,0.5\n", ([], [])),
    ],
)
def test_plain_files_need_no_reader(text: str, found: tuple[list[str], list[str]]) -> None:
    assert looked(text, 10_000) == found


@pytest.mark.parametrize(
    "text", ["x,y\n1\n", "x,y\n1,2,3\n", 'x,y\n1,"2\n', 'x,y\n1,a"b\n', "x,y\n1,2\r3,4\n"]
)
def test_what_is_unusual_is_left_to_the_reader(text: str) -> None:
    assert looked(text, 10_000) is None
