from __future__ import annotations

import pytest

from evenhand import CooperativeBandits
from evenhand.workflow.candidates import Candidate
from evenhand.workflow.choosing import NoModelWithinBoundsError, choose


def _candidate(weight, accuracy, discrimination, flip_rate, parity=False):
    found = {
        "accuracy": accuracy,
        "discrimination": discrimination,
        "delta": accuracy - discrimination,
        "flip_rate": flip_rate,
    }
    measures = {name: {"value": value, "low": None, "high": None} for name, value in found.items()}
    return Candidate(weight, parity, CooperativeBandits(), measures)


FREE = _candidate(0, 0.86, 0.17, 0.08)
FAIR = _candidate(1, 0.85, 0.16, 0.01)
EQUAL = _candidate(1, 0.83, 0.01, 0.02, parity=True)
CONSTANT = _candidate(10, 0.76, 0.0, 0.0, parity=True)
SPLIT = _candidate(0, 0.84, 0.0, 0.22, parity=True)
ALL = [FREE, FAIR, EQUAL, CONSTANT]


@pytest.mark.parametrize(
    ("criterion", "best"), [("accuracy", FREE), ("delta", EQUAL), ("discrimination", CONSTANT)]
)
def test_each_criterion_has_its_best(criterion, best):
    assert choose(ALL, criterion=criterion) is best


@pytest.mark.parametrize(
    ("most", "flips", "best"), [(0.02, None, EQUAL), (None, 0.01, FAIR), (0.02, 0.01, CONSTANT), (1, 1, FREE)]
)
def test_bounds_come_first(most, flips, best):
    assert choose(ALL, criterion="accuracy", max_discrimination=most, max_flip=flips) is best


def test_bounds_that_nobody_keeps_name_the_nearest():
    with pytest.raises(
        NoModelWithinBoundsError, match=r"nearest is λ = 1, with parity: discrimination 0\.0100"
    ):
        choose([FREE, FAIR, EQUAL], criterion="delta", max_discrimination=0.005)


def test_equal_groups_at_the_price_of_deciding_by_group_are_not_even():
    assert choose([*ALL, SPLIT], criterion="delta") is SPLIT
    assert choose([*ALL, SPLIT], criterion="even") is EQUAL


def test_names_and_families():
    assert [c.name for c in (FREE, EQUAL)] == ["λ = 0", "λ = 1, with parity"]
    assert FAIR.family == FREE.family != EQUAL.family
