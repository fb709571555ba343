"""A university's own tables: one prediction task per course, as in the paper's case study."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand.checks import did_you_mean, integer, number, one_of
from evenhand.tables.dataset import Dataset
from evenhand.tables.files import read_table
from evenhand.wording import listed

_LETTERS = {"A": 4.0, "B": 3.0, "C": 2.0, "D": 1.0, "F": 0.0}
_STEPS = {"": 0.0, "+": 1 / 3, "-": -1 / 3}
_SEASONS = {"winter": 0, "spring": 1, "summer": 2, "autumn": 3, "fall": 3}
_PASS = 3.0
_HIGHEST = 5.0  # four-point scales reach 4.33; a scale of 100 would make 3.0 meaningless


@dataclass(frozen=True, eq=False)
class Registrar:
    """The two tables of a registrar, and the courses to predict.

    Parameters
    ----------
    name : str
        The first part of the names of the data sets.
    grades, students : DataFrame
        The tables, with the columns that `load_registrar` describes.
    courses : tuple of str, optional
        The courses to predict; None for all that are large enough.
    description, source : str
        What the tables are, and where they come from.
    """

    name: str
    grades: pd.DataFrame
    students: pd.DataFrame
    courses: tuple[str, ...] | None = None
    description: str = "grades of a university"
    source: str = "the user's own tables"

    def tasks(self, *, sensitive: str = "gender", min_students: int = 50) -> dict[str, Dataset]:
        """Return one data set per course, by the course's name; `load_registrar` describes the options."""
        one_of("sensitive", sensitive, ("gender", "race"))
        integer("min_students", min_students, low=2)
        people = _people(self.students)
        taken, notes = _taken(self.grades, people)
        known = sorted(taken["course"].unique())
        for course in self.courses or ():
            if course not in known:
                raise ValueError(
                    f"Got course {course!r}, but grades has no such course.{did_you_mean(course, known)}"
                )
        found = {
            course: task
            for course in (known if self.courses is None else self.courses)
            if (task := _task(course, taken, people, self, sensitive, min_students, notes)) is not None
        }
        if not found:
            raise ValueError(
                f"No course has {min_students} students with earlier grades, some below {_PASS} and some "
                "not; expected at least one. Give a lower min_students or more grades."
            )
        return found


def load_registrar(
    grades: str | Path | pd.DataFrame,
    students: str | Path | pd.DataFrame,
    *,
    courses: Sequence[str] | None = None,
    sensitive: str = "gender",
    min_students: int = 50,
    name: str = "registrar",
) -> dict[str, Dataset]:
    """Make one prediction task per course: who gets less than 3.0, given the grades in earlier courses.

    The features are the last grades in the other courses that the student finished in an *earlier term* than
    their first attempt at the target course; a course not taken yet is missing. Students without an earlier
    grade are left out.

    Parameters
    ----------
    grades : DataFrame, str or Path
        Columns student, term, course, grade. Terms are numbers or dates that sort by time, or 'Fall 2009'.
        Grades are numbers or letters; anything else (withdrawn, in progress) is left out and counted in the
        notes.
    students : DataFrame, str or Path
        Columns student, gender, race.
    courses : list of str, optional
        The courses to predict; by default each that has `min_students` students, some below 3.0 and some not.
    sensitive : {'gender', 'race'}
        The default sensitive column.
    min_students : int
        The fewest students that a task needs. Smaller courses are left out, even if `courses` names them.
    name : str
        The first part of the data sets' names.

    Returns
    -------
    dict of Dataset
        The data sets, by the course's name.

    Examples
    --------
    >>> grades = pd.DataFrame({"student": [1, 1, 2, 2], "term": [1, 2, 1, 2], "course": ["CS1", "CS2"] * 2,
    ...                        "grade": ["A", "B", "C+", "D"]})
    >>> students = pd.DataFrame({"student": [1, 2], "gender": ["F", "M"], "race": ["x", "y"]})
    >>> task = load_registrar(grades, students, min_students=2)["CS2"]
    >>> task.contexts["CS1"].round(2).tolist(), task.label.tolist()
    ([4.0, 2.33], ['pass', 'fail'])
    """
    tables = Registrar(
        name,
        _columns(grades, "grades", ("student", "term", "course", "grade")),
        _columns(students, "students", ("student", "gender", "race")),
        None if courses is None else tuple(courses),
    )
    return tables.tasks(sensitive=sensitive, min_students=min_students)


def _task(
    course: str,
    taken: pd.DataFrame,
    people: pd.DataFrame,
    tables: Registrar,
    sensitive: str,
    min_students: int,
    notes: list[str],
) -> Dataset | None:
    """Build a course's task; return None if it is too small or has only one label."""
    first = taken[taken["course"] == course].drop_duplicates("student").set_index("student")
    before = taken[taken["course"] != course]
    before = before[before["when"] < before["student"].map(first["when"])]
    contexts = before.drop_duplicates(["student", "course"], keep="last").pivot(
        index="student", columns="course", values="points"
    )
    points = first["points"].reindex(contexts.index)
    if len(contexts) < min_students or (points < _PASS).nunique() < 2:
        return None
    order = [sensitive, "race" if sensitive == "gender" else "gender"]
    return Dataset(
        name=f"{tables.name}-{course}",
        contexts=contexts.rename_axis(columns=None).reset_index(drop=True),
        label=pd.Series(np.where(points < _PASS, "fail", "pass"), name=f"{course} below {_PASS}"),
        sensitive=people.loc[contexts.index, order].reset_index(drop=True),
        pos_label="fail",
        description=f"{tables.description}: is the grade in {course} below {_PASS}, given earlier grades?",
        source=tables.source,
        licence="the user's own" if tables.source.startswith("the user") else "Apache-2.0",
        rows="students with an earlier grade",
        notes=list(notes),
    )


def _people(students: pd.DataFrame) -> pd.DataFrame:
    twice = students["student"][students["student"].duplicated()]
    if len(twice):
        raise ValueError(f"students has {twice.iloc[0]!r} more than once; expected one row per student.")
    for column in ("gender", "race"):
        missing = students[column].isna()
        if missing.any():
            who = students["student"][missing].iloc[0]
            raise ValueError(
                f"students has no {column} for {who!r} ({int(missing.sum())} in all); expected one."
            )
    return students.set_index("student")[["gender", "race"]].astype(str)


def _taken(grades: pd.DataFrame, people: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return grades as points, in order of time, and a note on those that are left out."""
    strangers = ~grades["student"].isin(people.index)
    if strangers.any():
        who = grades["student"][strangers].iloc[0]
        raise ValueError(f"grades has student {who!r}, who is not in students ({int(strangers.sum())} rows).")
    for column in ("course", "term"):
        if grades[column].isna().any():
            raise ValueError(f"grades has rows with no {column}; expected one for every grade.")
    points = _points(grades["grade"])
    notes = []
    if points.isna().any():
        odd = sorted(set(grades["grade"][points.isna()].astype(str)))
        left_out = f"{int(points.isna().sum())} grades are neither numbers nor letters ({listed(odd[:5])})"
        notes.append(f"{left_out} and are left out.")
    taken = grades[["student", "course"]].assign(when=_when(grades["term"]), points=points)
    taken["course"] = taken["course"].astype(str)
    return taken[points.notna()].sort_values(["when", "student", "course"], kind="stable"), notes


def _points(grade: pd.Series[Any]) -> pd.Series[float]:
    """Return grade points: numbers as they are, A to F with + and - on the four-point scale, at most 4."""
    letters = product(_LETTERS.items(), _STEPS.items())
    values = {name + sign: min(4.0, max(0.0, worth + step)) for (name, worth), (sign, step) in letters}
    points = pd.to_numeric(grade, errors="coerce")
    points = points.fillna(grade.astype(str).str.strip().str.upper().map(values)).astype(float)
    if points.notna().any():
        for extreme in (float(points.min()), float(points.max())):
            number("grade", extreme, low=0, high=_HIGHEST)
    return points


def _when(term: pd.Series[Any]) -> pd.Series[Any]:
    """Return terms as something that sorts by time."""
    if pd.api.types.is_numeric_dtype(term) or pd.api.types.is_datetime64_any_dtype(term):
        return term
    return term.map({text: _term_number(text) for text in term.unique()})


def _term_number(term: Any) -> float:
    """Return 2009.3 for 'Fall 2009' or '2009 Fall'; plain numbers and ISO dates sort as they are.

    >>> _term_number("Fall 2009") < _term_number("Spring 2010")
    True
    """
    words = re.fullmatch(r"\s*(?:([A-Za-z]+)\s*(\d{4})|(\d{4})\s*([A-Za-z]+))\s*", str(term))
    if words:
        season, year = (words[1] or words[4]).lower(), int(words[2] or words[3])
        if season in _SEASONS:
            return year + _SEASONS[season] / 10
    try:
        return float(str(term))
    except ValueError:
        pass
    try:
        return pd.Timestamp(str(term)).timestamp()
    except ValueError:
        raise ValueError(
            f"Got term {term!r} in grades, but expected a number, a date, or a season and year such as 'Fall "
            "2009'."
        ) from None


def _columns(table: str | Path | pd.DataFrame, role: str, wanted: tuple[str, ...]) -> pd.DataFrame:
    read = read_table(table)
    frame, origin = read.frame, read.origin
    for column in wanted:
        if column not in frame.columns:
            raise ValueError(
                f"{role} ({origin}) has no column {column!r}; expected {', '.join(wanted)}, found "
                f"{', '.join(map(str, frame.columns))}.{did_you_mean(column, frame.columns)}"
            )
    return frame[list(wanted)]
