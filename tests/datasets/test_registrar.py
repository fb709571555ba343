from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evenhand.datasets import load_registrar

STUDENTS = pd.DataFrame({"student": range(8), "gender": ["F", "M"] * 4, "race": ["AA"] * 3 + ["NAA"] * 5})
ROWS = st.lists(
    st.tuples(
        st.integers(0, 7), st.integers(1, 4), st.sampled_from("PQR"), st.integers(0, 12).map(lambda g: g / 3)
    ),
    min_size=30,
    max_size=60,
)


def table(rows: list[tuple[int, int, str, float]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["student", "term", "course", "grade"])


def oracle(rows: list[tuple[int, int, str, float]], target: str) -> dict[int, tuple[float, dict[str, float]]]:
    """The obvious double loop: for each student the first grade in the target, and the last ones before."""
    ordered = sorted(rows, key=lambda row: row[1])  # stable: in a term, as the file has it
    found = {}
    for student in {row[0] for row in ordered}:
        own = [row for row in ordered if row[0] == student]
        attempts = [row for row in own if row[2] == target]
        if not attempts:
            continue
        before = {row[2]: row[3] for row in own if row[1] < attempts[0][1] and row[2] != target}
        if before:
            found[student] = attempts[0][3], before
    return found


@settings(max_examples=60)
@given(ROWS)
def test_contexts_are_the_last_grades_before_the_first_attempt(
    rows: list[tuple[int, int, str, float]],
) -> None:
    expected = oracle(rows, "R")
    labels = {points < 3.0 for points, _ in expected.values()}
    assume(len(expected) >= 2 and len(labels) == 2)
    task = load_registrar(table(rows), STUDENTS, min_students=2, courses=["R"])["R"]
    students = sorted(expected)
    assert task.label.tolist() == ["fail" if expected[who][0] < 3.0 else "pass" for who in students]
    assert task.sensitive["gender"].tolist() == [STUDENTS["gender"][who] for who in students]
    for row, who in enumerate(students):
        grades = task.contexts.iloc[row].dropna().to_dict()
        assert grades == expected[who][1]


@settings(max_examples=40)
@given(ROWS, st.integers(0, 12))
def test_nothing_from_the_same_term_or_later_moves_a_context(
    rows: list[tuple[int, int, str, float]], other: int
) -> None:
    expected = oracle(rows, "R")
    assume(len({points < 3.0 for points, _ in expected.values()}) == 2)
    first = {}
    for student, term, course, _ in sorted(rows, key=lambda row: row[1]):
        if course == "R":
            first.setdefault(student, term)
    changed = [
        (student, term, course, other / 3 if course != "R" and term >= first.get(student, 99) else grade)
        for student, term, course, grade in rows
    ]
    before = load_registrar(table(rows), STUDENTS, min_students=2, courses=["R"])["R"]
    after = load_registrar(table(changed), STUDENTS, min_students=2, courses=["R"])["R"]
    assert before.fingerprint == after.fingerprint


def small(term: list[object] | None = None, grade: list[object] | None = None) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "student": [0, 0, 1, 1, 2, 2],
            "term": term or ["Fall 2009", "Spring 2010"] * 3,
            "course": ["P", "Q"] * 3,
            "grade": grade or ["A", "B", "B+", "B-", "C", "F"],
        }
    )


def test_letters_seasons_and_the_threshold() -> None:
    task = load_registrar(small(), STUDENTS, min_students=2)["Q"]
    assert task.contexts["P"].round(3).tolist() == [4.0, 3.333, 2.0]
    assert task.label.tolist() == ["pass", "fail", "fail"]  # B is 3.0, which is not below
    assert task.pos_label == "fail"


@pytest.mark.parametrize(
    "term",
    [
        ["2009 Autumn", "2010 Winter"] * 3,
        ["2009-09-01", "2010-02-01"] * 3,
        [200970, 201010] * 3,
        ["200970", "201010"] * 3,
    ],
)
def test_terms_in_other_ways(term: list[object]) -> None:
    assert list(load_registrar(small(term=term), STUDENTS, min_students=2)) == ["Q"]


def test_what_is_no_grade_is_left_out_and_said() -> None:
    grades = pd.concat([small(), small(grade=["W", "B", "IP", "C", "W", "D"])], ignore_index=True)
    task = load_registrar(grades, STUDENTS, min_students=2)["Q"]
    assert task.notes == ["3 grades are neither numbers nor letters ('IP', 'W') and are left out."]


def test_race_first_on_request() -> None:
    task = load_registrar(small(), STUDENTS, min_students=2, sensitive="race")["Q"]
    assert list(task.sensitive) == ["race", "gender"]


def test_reads_files(tmp_path: Path) -> None:
    small().to_csv(tmp_path / "grades.csv", index=False)
    STUDENTS.to_csv(tmp_path / "students.csv", index=False)
    tasks = load_registrar(tmp_path / "grades.csv", tmp_path / "students.csv", min_students=2, name="mine")
    assert tasks["Q"].name == "mine-Q"


def with_missing_gender() -> pd.DataFrame:
    students = STUDENTS.copy()
    students["gender"] = students["gender"].where(students["student"] != 3, np.nan)
    return students


@pytest.mark.parametrize(
    ("grades", "students", "options", "message"),
    [
        (
            small().rename(columns={"grade": "grades"}),
            STUDENTS,
            {},
            r"no column 'grade'.*Did you mean 'grades'",
        ),
        (small(), STUDENTS.drop(columns="race"), {}, r"students \(the DataFrame\) has no column 'race'"),
        (small(), STUDENTS.iloc[1:], {}, "grades has student .*0.*, who is not in students"),
        (small(), pd.concat([STUDENTS, STUDENTS.iloc[:1]]), {}, "students has .*0.* more than once"),
        (small(), with_missing_gender(), {}, r"students has no gender for .*3.* \(1 in all\)"),
        (small(term=["Fall 09", "x"] * 3), STUDENTS, {}, "Got term 'Fall 09'.*'Fall 2009'"),
        (small(term=[1, np.nan] * 3), STUDENTS, {}, "rows with no term"),
        (small(), STUDENTS, {"courses": ["QQ"]}, "Got course 'QQ', but grades has no such course"),
        (small(), STUDENTS, {"sensitive": "sex"}, "Got sensitive='sex'"),
        (small(), STUDENTS, {"min_students": 50}, "No course has 50 students"),
        (small(), STUDENTS, {"min_students": 0}, "Got min_students=0"),
        (small(grade=[4, 3, 2, -1, 3, 2]), STUDENTS, {}, r"Got grade=-1.0, but expected .* at least 0"),
        (small(grade=[90, 80, 70, 60, 50, 40]), STUDENTS, {}, r"Got grade=40.0, but expected .* at most 5"),
        (small().replace({"course": {"Q": None}}), STUDENTS, {}, "rows with no course"),
    ],
)
def test_bad_tables(
    grades: pd.DataFrame, students: pd.DataFrame, options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        load_registrar(grades, students, **({"min_students": 2} | options))  # type: ignore[arg-type]
