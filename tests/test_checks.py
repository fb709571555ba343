import joblib
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


def test_integer_refuses_what_compiled_loops_can_not_count():
    assert checks.integer("n", 2**62) == 2**62
    with pytest.raises(
        ValueError, match=r"Got n=\d+, but expected a whole number of at least 0 and at most 2\*\*62"
    ):
        checks.integer("n", 2**62 + 1, low=0)


def test_one_of_suggests_the_nearest():
    with pytest.raises(ValueError, match="Did you mean 'Alpha'"):
        checks.one_of("x", "alpa", ["Alpha", "beta"])
    with pytest.raises(ValueError, match=r"expected one of 'Alpha', 'beta'\.$"):
        checks.one_of("x", 7, ["Alpha", "beta"])


@pytest.mark.parametrize("value", [0, True, 2.0, "2"])
def test_jobs_refuses(value):
    with pytest.raises(ValueError, match=r"Got n_jobs=.*, but expected 1 or more, or -1 for one per core\."):
        checks.jobs(value)


def test_jobs_counts_cores_like_joblib():
    assert [checks.jobs(value) for value in (None, 1, 3)] == [1, 1, 3]
    assert checks.jobs(-1) == joblib.cpu_count()
