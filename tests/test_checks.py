import pytest

from evenhand import checks


@pytest.mark.parametrize("value", [True, "3", None, float("nan"), float("inf"), -1, 2])
def test_number_refuses(value):
    with pytest.raises(
        ValueError, match="Got x=.*, but expected a finite number of at least 0 and at most 1"
    ):
        checks.number("x", value, low=0, high=1)


@pytest.mark.parametrize("value", [True, 1.0, "1", 0])
def test_integer_refuses(value):
    with pytest.raises(ValueError, match="Got n=.*, but expected a whole number of at least 1"):
        checks.integer("n", value)


def test_one_of_suggests_the_nearest():
    with pytest.raises(ValueError, match="Did you mean 'Alpha'"):
        checks.one_of("x", "alpa", ["Alpha", "beta"])
    with pytest.raises(ValueError, match=r"expected one of 'Alpha', 'beta'\.$"):
        checks.one_of("x", 7, ["Alpha", "beta"])
