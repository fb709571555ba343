from __future__ import annotations

import pytest

from evenhand import CooperativeBandits, explore
from evenhand.workflow.candidates import Candidate
from evenhand.workflow.choosing import NoModelWithinBoundsError, against_most_accurate, choose
from factories import make_people


def _candidate(weight, accuracy, discrimination, flip_rate, parity=False, balanced=0.75):
    found = {
        "accuracy": accuracy,
        "discrimination": discrimination,
        "delta": accuracy - discrimination,
        "flip_rate": flip_rate,
        "balanced_accuracy": balanced,
    }
    measures = {name: {"value": value, "low": None, "high": None} for name, value in found.items()}
    return Candidate(weight, parity, CooperativeBandits(), measures)


FREE = _candidate(0, 0.86, 0.17, 0.08)
FAIR = _candidate(1, 0.85, 0.16, 0.01)
EQUAL = _candidate(1, 0.83, 0.01, 0.02, parity=True)
CONSTANT = _candidate(10, 0.76, 0.0, 0.0, parity=True, balanced=0.5)
SPLIT = _candidate(0, 0.84, 0.0, 0.22, parity=True)
ALL = [FREE, FAIR, EQUAL, CONSTANT]


@pytest.mark.parametrize(
    ("criterion", "best"),
    [("accuracy", FREE), ("delta", EQUAL), ("discrimination", EQUAL), ("balanced_accuracy", FREE)],
)
def test_each_criterion_has_its_best(criterion, best):
    assert choose(ALL, criterion=criterion) is best


@pytest.mark.parametrize(
    ("most", "flips", "best"), [(0.02, None, EQUAL), (None, 0.01, FAIR), (0.02, 0.01, CONSTANT), (1, 1, FREE)]
)
def test_bounds_come_first(most, flips, best):
    assert choose(ALL, criterion="accuracy", max_discrimination=most, max_flip=flips) is best


@pytest.mark.parametrize("bound", [-1, 1.01, float("nan")])
@pytest.mark.parametrize("name", ["max_flip", "max_discrimination"])
def test_a_bound_is_a_share(name, bound):
    with pytest.raises(ValueError, match=f"Got {name}={bound}, but expected a finite number of at least 0"):
        choose(ALL, criterion="accuracy", **{name: bound})


def test_bounds_that_nobody_keeps_name_the_nearest():
    with pytest.raises(
        NoModelWithinBoundsError, match=r"nearest is λ = 1, with parity: discrimination 0\.0100"
    ):
        choose([FREE, FAIR, EQUAL], criterion="delta", max_discrimination=0.005)


def test_equal_groups_at_the_price_of_deciding_by_group_are_not_even():
    assert choose([*ALL, SPLIT], criterion="delta") is SPLIT
    assert choose([FREE, EQUAL, SPLIT], criterion="even") is EQUAL


def test_even_means_hardly_any_flips_where_there_is_a_choice():
    both = _candidate(20, 0.82, 0.02, 0.001, parity=True)
    lucky = _candidate(0.3, 0.87, 0.0, 0.04, parity=True)  # worth more, by some people of the validation part
    assert choose([*ALL, lucky, both], criterion="even") is both
    assert choose([*ALL, lucky, both], criterion="even", max_flip=0.05) is lucky  # which was asked for


RARE = _candidate(0, 0.95, 0.0, 0.0, balanced=0.501)
FINDS = _candidate(1, 0.85, 0.05, 0.01, balanced=0.85)


@pytest.mark.parametrize(
    ("criterion", "best"),
    [
        ("accuracy", RARE),
        ("even", FINDS),
        ("delta", FINDS),
        ("discrimination", FINDS),
        ("balanced_even", FINDS),
        ("balanced_accuracy", FINDS),
    ],
)
def test_a_constant_is_chosen_for_its_accuracy_alone(criterion, best):
    assert choose([RARE, FINDS], criterion=criterion) is best


def test_a_constant_is_chosen_where_bounds_or_the_data_leave_nothing_else():
    assert choose([RARE, FINDS], criterion="even", max_discrimination=0.01) is RARE
    chance = _candidate(1, 0.8, 0.05, 0.01, balanced=0.53)
    assert choose([RARE, chance], criterion="even") is RARE
    third = _candidate(1, 0.8, 0.05, 0.01, balanced=0.51)  # of three labels, 0.33 is a constant's
    assert (
        choose([_candidate(0, 0.95, 0.0, 0.0, balanced=0.34), third], criterion="even", n_labels=3) is third
    )


def test_names_and_families():
    assert [c.name for c in (FREE, EQUAL)] == ["λ = 0", "λ = 1, with parity"]
    assert FAIR.family == FREE.family != EQUAL.family


def test_what_the_chosen_model_gives_up_is_said_unless_it_gives_up_nothing():
    assert against_most_accurate(ALL, FREE) == ""
    assert against_most_accurate(ALL, EQUAL) == (
        "Compared with the most accurate model with a policy per group (λ = 0), the chosen one gives up 0.030 of "
        "accuracy, lowers the discrimination from 0.170 to 0.010 and lowers the flip rate from 0.080 to 0.020."
    )
    assert "leaves the discrimination at 0.000" in against_most_accurate([RARE, SPLIT], SPLIT)
    close = _candidate(1, 0.9499, 0.1, 0.0)
    assert "gives up less than 0.001 of accuracy, raises" in against_most_accurate([RARE, close], close)
    assert against_most_accurate([RARE, FINDS], FINDS, rare=True) == ""
    assert "gives up 0.349 of balanced accuracy" in against_most_accurate([RARE, FINDS], RARE, rare=True)


def test_that_no_model_had_few_flips_is_noted(monkeypatch):
    monkeypatch.setattr("evenhand.workflow.choosing.FLIPS", -1.0)
    frontier = explore(make_people(200), label="hired", sensitive="sex", weights=[1], epochs=1, n_jobs=1)
    [note] = [one for one in frontier.choice().notes if "flips" in one]
    assert note.startswith("None of the models to choose from had at most")
    assert not any("None of" in one for one in frontier.choice(max_flip=1.0).notes)
