from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from evenhand.auditing.subgroups import CROSSED, Search, comparisons, cut, find_subgroups

RNG = np.random.default_rng(0)
N = 2000
FRAME = pd.DataFrame(
    {
        "job": RNG.choice(["cook", "clerk", "carter"], N),
        "age": RNG.integers(18, 80, N).astype(float),
        "town": RNG.choice(["north", "south"], N),
        "same": 1,
    }
)
OWN = RNG.integers(0, 3, N)
GROUPS = ["f", "m", "x"]


def found(outcome: np.ndarray, min_count: int = 30) -> tuple[pd.DataFrame, int]:
    return find_subgroups(FRAME, outcome, OWN, GROUPS, Search("yes", min_count, 0.95, n_listed=10))


def test_finds_the_planted_subgroup() -> None:
    planted = (FRAME["job"] == "cook") & (FRAME["town"] == "north")
    outcome = np.where(planted & (OWN == 1), RNG.random(N) < 0.9, RNG.random(N) < 0.3)
    worst = found(outcome)[0].iloc[0]
    assert worst["subgroup"] in ("job = cook & town = north", "town = north & job = cook")
    assert (worst["group_most"], worst["group_least"]) in (("m", "f"), ("m", "x"))
    inside = planted & (OWN == 1)
    assert worst["people_most"] == inside.sum()
    assert worst["rate_most"] == outcome[inside].mean()
    assert worst["people"] == planted.sum()
    assert 0 < worst["low"] < worst["difference"] < worst["high"] <= 1


def test_finds_nothing_where_there_is_only_noise() -> None:
    lists = [len(found(np.random.default_rng(seed).random(N) < 0.4)[0]) for seed in range(20)]
    assert sum(length > 0 for length in lists) <= 3


def test_a_subgroup_of_nearly_everybody_is_not_listed() -> None:
    frame = pd.DataFrame({"area": ["town"] * 1960 + ["isle"] * 40, "job": ["cook", "clerk"] * 1000})
    own = np.repeat([0, 1], N // 2)
    told, examined = find_subgroups(frame, own == 1, own, GROUPS[:2], Search("yes", 10, 0.95, n_listed=10))
    assert set(told["subgroup"]) >= {"job = cook", "job = clerk"}
    assert "area = town" not in set(told["subgroup"])
    assert examined > len(told)


def false_finds(n_groups: int, n_columns: int, people: int, times: int) -> int:
    """Return in how many of so many tables of pure noise a subgroup is found."""
    rng = np.random.default_rng(0)
    finds = 0
    for _ in range(times):
        frame = pd.DataFrame(rng.integers(0, 4, (people, n_columns)).astype(str)).add_prefix("c")
        own, outcome = rng.integers(0, n_groups, people), rng.random(people) < 0.5
        listed, _ = find_subgroups(
            frame, outcome, own, list(range(n_groups)), Search("", 30, 0.95, n_listed=1)
        )
        finds += len(listed)
    return finds


# Where 5 in 100 tables may show what is not there, 6 or more of 40 do so once in a hundred runs.
@pytest.mark.parametrize("n_groups, n_columns, people", [(2, 4, 1000), (10, 4, 4000), (2, 4 * CROSSED, 1000)])
def test_many_groups_and_many_columns_make_no_differences_of_noise(
    n_groups: int, n_columns: int, people: int
) -> None:
    assert false_finds(n_groups, n_columns, people, times=40) <= 5


def test_every_comparison_that_could_have_been_made_is_counted() -> None:
    rng = np.random.default_rng(0)
    columns = [rng.choice(4, 600, p=[0.6, 0.25, 0.1, 0.05]) for _ in range(3)]
    own = rng.choice(4, 600, p=[0.5, 0.3, 0.15, 0.05])

    def groups_in(*parts: np.ndarray) -> int:
        inside = np.logical_and.reduce(parts)
        return sum(int((inside & (own == group)).sum()) >= 10 for group in range(4))

    one = [groups_in(column == part) for column in columns for part in range(4)]
    two = [
        groups_in(left == a, right == b)
        for left, right in itertools.combinations(columns, 2)
        for a in range(4)
        for b in range(4)
    ]
    made = sum(n * (n - 1) // 2 for n in one + two)
    enough = [
        np.array([[groups_in(column == part, own == group) for group in range(4)] for part in range(4)]) > 0
        for column in columns
    ]
    assert comparisons(enough[:1]) == sum(n * (n - 1) // 2 for n in one[:4])
    assert made <= comparisons(enough) <= sum(n * (n - 1) // 2 for n in one) + 3 * 16 * 6


def test_small_groups_are_never_compared() -> None:
    outcome = OWN == 1
    listed, examined = found(outcome, min_count=60)
    assert (listed[["people_least", "people_most"]] >= 60).all(axis=None)
    assert found(outcome, min_count=5)[1] > examined
    none, nothing = found(outcome, min_count=N)
    assert none.empty
    assert nothing == 0


def test_parts_of_numbers_and_categories() -> None:
    values = pd.Series([1.0, 2, 3, 4, 5, 6, 7, 8, np.nan], name="age")
    part = cut(values)
    assert [part.names[code] for code in part.codes] == [
        "age ≤ 2.75",
        "age ≤ 2.75",
        "2.75 < age ≤ 4.5",
        "2.75 < age ≤ 4.5",
        "4.5 < age ≤ 6.25",
        "4.5 < age ≤ 6.25",
        "age > 6.25",
        "age > 6.25",
        "age missing",
    ]
    many = pd.Series(
        [*(letter for letter, n in zip("abcdefg", range(9, 2, -1), strict=True) for _ in range(n))],
        name="job",
    )
    named = [cut(many).names[code] for code in cut(many).codes]
    assert named[0] == "job = a"
    assert set(named[-7:]) == {"other job"}
    assert cut(pd.Series(["a", None], name="job")).names[
        cut(pd.Series(["a", None], name="job")).codes[1]
    ] == ("job missing")


@pytest.mark.parametrize("groups", [2, 3])
def test_the_two_groups_farthest_apart_are_compared(groups: int) -> None:
    own = np.repeat(np.arange(groups), 300)
    hit = np.concatenate([np.arange(300) < 60 * (code + 1) for code in range(groups)])
    frame = pd.DataFrame({"job": np.tile(["cook", "clerk"], 150 * groups)})
    listed, _ = find_subgroups(frame, hit, own, list("abc")[:groups], Search("yes", 10, 0.95, n_listed=5))
    for _, row in listed.iterrows():
        inside = frame["job"].to_numpy() == row["subgroup"].removeprefix("job = ")
        rates = [hit[inside & (own == code)].mean() for code in range(groups)]
        assert row["difference"] == pytest.approx(
            max(abs(a - b) for a, b in itertools.combinations(rates, 2))
        )


def test_dates_are_cut_by_day_and_told_as_dates():
    days = pd.Series(
        pd.Timestamp("1980-01-01 08:00") + pd.to_timedelta(np.arange(400), unit="D"), name="born"
    )
    days[5] = pd.NaT
    parts = cut(days)
    # The quarters' ends are days on which somebody was born, whatever the hour.
    assert parts.names[0] == "born ≤ 1980-04-10"
    assert [parts.names[code] for code in parts.codes[[0, 100, 101, 399, 5]]] == [
        "born ≤ 1980-04-10",
        "born ≤ 1980-04-10",
        "1980-04-10 < born ≤ 1980-07-19",
        "born > 1980-10-26",
        "born missing",
    ]
    zoned = cut(days.dt.tz_localize("UTC"))
    np.testing.assert_array_equal(zoned.codes, parts.codes)


def test_large_numbers_are_told_as_people_write_them():
    assert cut(pd.Series(np.arange(8) * 1_000_000, name="pay")).names[0] == "pay ≤ 1,750,000"
