"""Simulated registrars: invented students in the published numbers, since the paper's own data is private."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from evenhand.arrays import Array, Codes
from evenhand.checks import integer, one_of
from evenhand.datasets.registrar import Registrar


class _Major(NamedTuple):
    """One row of the paper's dataset-statistics table."""

    students: int
    courses: int
    grades: int
    male: int
    african_american: int


MAJORS = {
    "BIOL": _Major(students=6_127, courses=16, grades=124_716, male=1_927, african_american=759),
    "CEIE": _Major(students=450, courses=7, grades=23_708, male=338, african_american=27),
    "CS": _Major(students=2_430, courses=11, grades=90_819, male=1_942, african_american=157),
    "ECE": _Major(students=671, courses=10, grades=65_396, male=575, african_american=66),
    "PSYC": _Major(students=5_110, courses=17, grades=84_504, male=1_200, african_american=694),
}
_TERMS = [f"{season} {year}" for year in range(2009, 2020) for season in ("Spring", "Fall")]
_TERMS = _TERMS[1:]  # from Fall 2009 on
_TERMS_OF_STUDY = 8

# The invented world is the same for every major. A student's ability is one number, to which the groups add a
# little. A course has a difficulty. A grade is the difference of the two, plus luck. Luck and the two group
# effects were set by hand. They were changed once (more luck, smaller effects) after comparing logistic
# regression's accuracy and discrimination with the published rows. So similar numbers are built in, and are
# not a finding.
_WOMEN_AHEAD = 0.2
_AFRICAN_AMERICANS_BEHIND = 0.25
_LUCK = 1.0
_MEAN_GRADE = 3.1
_SPREAD = 0.75


def simulate_registrar(major: str, random_state: int = 0) -> Registrar:
    """Simulate a registrar's tables with a major's published size and proportions.

    The numbers of students, grades, courses to predict, men and women, and African-Americans are exactly
    those of the paper's statistics. Everything else is invented: no result on it says anything about real
    students. `tasks` makes one data set per course of the tables.

    Parameters
    ----------
    major : {'BIOL', 'CEIE', 'CS', 'ECE', 'PSYC'}
        The paper's Major1 to Major5.
    random_state : int
        The seed; the same seed makes the same tables.

    Examples
    --------
    >>> tables = simulate_registrar("CEIE")
    >>> len(tables.students), len(tables.grades), len(tables.courses)
    (450, 23708, 7)
    >>> tables.tasks(sensitive="race")["CEIE201"].name
    'simulated-CEIE-CEIE201'
    """
    published = MAJORS[one_of("major", major, MAJORS)]
    random = np.random.Generator(np.random.PCG64(integer("random_state", random_state, low=0)))
    men = random.permutation(published.students) < published.male
    african_american = random.permutation(published.students) < published.african_american
    ability = (
        random.standard_normal(published.students)
        + _WOMEN_AHEAD * ~men
        - _AFRICAN_AMERICANS_BEHIND * african_american
    )
    student, position, size = _enrolments(published, random)
    names = _course_names(major, published.courses, size)
    difficulty = 0.4 * random.standard_normal(size)
    luck = _LUCK * random.standard_normal(len(student))
    grade = np.clip(
        np.round(3 * (_MEAN_GRADE + _SPREAD * (ability[student] - difficulty[position] + luck))) / 3, 0, 4
    )
    return Registrar(
        name=f"simulated-{major}",
        grades=pd.DataFrame(
            {
                "student": student,
                "term": np.asarray(_TERMS, dtype=object)[_terms(student, position, size, published, random)],
                "course": names[position],
                "grade": grade,
            }
        ),
        students=pd.DataFrame(
            {
                "student": np.arange(published.students),
                "gender": np.where(men, "male", "female"),
                "race": np.where(african_american, "African-American", "Non-African-American"),
            }
        ),
        courses=tuple(names[size - published.courses :]),
        description=f"Simulated students of {major}",
        source="simulated by evenhand in the sizes of the paper's dataset statistics; no real person",
    )


def _enrolments(published: _Major, random: np.random.Generator) -> tuple[Codes, Codes, int]:
    """Return who takes which course: each student about the same number, in total exactly as published.

    The catalogue is at least a third larger than what one student takes. Its last courses are the ones to
    predict: they come late in the studies, so that there are grades before them.
    """
    size = max(published.courses * 2, int(np.ceil(published.grades / published.students * 4 / 3)))
    least, more = divmod(published.grades, published.students)
    count = np.full(published.students, least) + (random.permutation(published.students) < more)
    preference = random.random((published.students, size))
    order = np.argsort(preference, axis=1)
    chosen = np.arange(size)[None, :] < count[:, None]
    student = np.repeat(np.arange(published.students), count)
    return student, np.sort(np.where(chosen, order, size), axis=1)[chosen], size


def _terms(
    student: Codes, position: Codes, size: int, published: _Major, random: np.random.Generator
) -> Codes:
    """Courses come roughly in the catalogue's order over eight terms; students begin in random terms."""
    begun = random.integers(0, len(_TERMS) - _TERMS_OF_STUDY + 1, published.students)
    wander = random.integers(-1, 2, len(student))
    step = np.clip(position * _TERMS_OF_STUDY // size + wander, 0, _TERMS_OF_STUDY - 1)
    return np.asarray(begun[student] + step, dtype=np.int64)


def _course_names(major: str, to_predict: int, size: int) -> Array:
    """Return general courses first (from GEN101), then the major's own courses, which are to be predicted."""
    general = [f"GEN{101 + at}" for at in range(size - to_predict)]
    own = [f"{major}{201 + at}" for at in range(to_predict)]
    return np.asarray(general + own, dtype=object)
