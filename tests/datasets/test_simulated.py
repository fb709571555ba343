from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from evenhand.datasets import MAJORS, Dataset, simulate_registrar
from evenhand.tables.preprocessing import prepare
from evenhand.tables.splits import split

# The paper's statistics, read once more: students, courses, grades, men, women, African-American, not.
PUBLISHED = {
    "BIOL": (6127, 16, 124716, 1927, 4200, 759, 5368),
    "CEIE": (450, 7, 23708, 338, 112, 27, 423),
    "CS": (2430, 11, 90819, 1942, 488, 157, 2273),
    "ECE": (671, 10, 65396, 575, 96, 66, 605),
    "PSYC": (5110, 17, 84504, 1200, 3910, 694, 4416),
}


@pytest.mark.parametrize("major", MAJORS)
def test_sizes_and_proportions_are_the_published_ones(major: str) -> None:
    tables = simulate_registrar(major)
    gender, race = tables.students["gender"], tables.students["race"]
    assert tables.courses is not None
    assert PUBLISHED[major] == (
        *(len(tables.students), len(tables.courses), len(tables.grades)),
        *((gender == "male").sum(), (gender == "female").sum()),
        *((race == "African-American").sum(), (race == "Non-African-American").sum()),
    )
    assert not tables.grades.duplicated(["student", "course"]).any()
    assert tables.grades["grade"].between(0, 4).all()


@pytest.mark.parametrize("major", MAJORS)
def test_every_course_to_predict_is_a_task_that_says_it_is_simulated(major: str) -> None:
    tables = simulate_registrar(major)
    tasks = tables.tasks()
    assert tuple(tasks) == tables.courses
    for task in tasks.values():
        assert task.name.startswith("simulated-")
        assert task.description.startswith("Simulated")
        assert "no real person" in task.source


def test_the_same_seed_makes_the_same_tables() -> None:
    one, same, other = (simulate_registrar("CEIE", random_state=seed) for seed in (3, 3, 4))
    assert one.grades.equals(same.grades)
    assert one.students.equals(same.students)
    assert not one.grades.equals(other.grades)


def logistic(dataset: Dataset) -> tuple[float, float, float]:
    """Return accuracy, the majority's share, and discrimination of a logistic regression."""
    parts = prepare(dataset, split(dataset, seed=0))
    model = LogisticRegression(max_iter=500).fit(parts.train.X, parts.train.y)
    predicted = model.predict(parts.test.X) == "fail"
    failed = parts.test.y == "fail"
    first, second = (predicted[parts.test.s == group].mean() for group in sorted(set(parts.test.s)))
    return (
        float((predicted == failed).mean()),
        float(max(failed.mean(), 1 - failed.mean())),
        abs(first - second),
    )


@pytest.mark.parametrize("sensitive", ["gender", "race"])
def test_grades_can_be_predicted_and_carry_the_groups(sensitive: str) -> None:
    tasks = simulate_registrar("BIOL").tasks(sensitive=sensitive)
    accuracy, majority, discrimination = np.mean(
        [logistic(task) for task in list(tasks.values())[:6]], axis=0
    )
    assert accuracy > majority + 0.05
    assert 0.02 < discrimination < 0.25


def test_an_unknown_major_is_named() -> None:
    with pytest.raises(ValueError, match=r"Got major='BIO'.*Did you mean 'BIOL'"):
        simulate_registrar("BIO")
