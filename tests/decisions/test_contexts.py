"""One way of writing a context, whatever types it came with."""

from __future__ import annotations

import hashlib
from datetime import date
from enum import StrEnum

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.decisions.contexts import as_text, as_texts, parsed, plain, plain_rows
from evenhand.decisions.policy import Policy
from evenhand.decisions.rules import make_rules


class Job(StrEnum):
    CLERK = "clerk"


@pytest.mark.parametrize(
    "value, text",
    [
        (1, "1"),
        (1.0, "1"),
        (np.float32(1), "1"),
        (np.int64(1), "1"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (1e300, "1e+300"),
        (True, "true"),
        (np.True_, "true"),
        (None, "null"),
        (float("nan"), "null"),
        (np.float64("nan"), "null"),
        (pd.NaT, "null"),
        (pd.NA, "null"),
        ("é\x00", '"\\u00e9\\u0000"'),
        (Job.CLERK, '"clerk"'),
        (np.str_("clerk"), '"clerk"'),
        (date(2026, 1, 2), '"2026-01-02"'),
        (pd.Timestamp("2026-01-02"), '"2026-01-02T00:00:00"'),
        ([np.float64(0.5), None], "[0.5,null]"),
        (np.array([0.5, 2.0]), "[0.5,2]"),
    ],
)
def test_values(value, text):
    assert as_text({"a": value}) == f'{{"a":{text}}}'


@pytest.mark.parametrize("value", [float("inf"), np.float64("-inf"), object(), 1j, b"x", "\ud800", {1}])
def test_what_is_no_value(value):
    with pytest.raises(ValueError, match="Got"):
        as_text({"a": value})


# Many at once, as each alone ---------------------------------------------------------------------------

numbers = st.floats(allow_infinity=False) | st.integers(-(2**60), 2**60).map(float) | st.just(-0.0)
texts = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(["},{", "],[", '"},{"'])


@given(
    rows=st.integers(0, 3).flatmap(lambda n: st.lists(st.lists(numbers, min_size=n, max_size=n), min_size=1))
)
def test_rows_of_numbers(rows):
    table = plain_rows(np.array(rows))
    assert table == [plain(row) for row in rows]
    assert all(
        type(a) is type(b)
        for row, one in zip(rows, table, strict=True)
        for a, b in zip(plain(row), one, strict=True)
    )
    assert as_texts(table) == [as_text(row) for row in rows]
    assert parsed(as_texts(table)) == table


@given(people=st.lists(st.fixed_dictionaries({"a": numbers.map(plain), "b": texts}), min_size=1))
def test_columns(people):
    assert as_texts(people) == [as_text(person) for person in people]
    assert parsed(as_texts(people)) == people


@pytest.mark.parametrize(
    "odd", [[1.0], [0.5, float("nan"), None], ["1", True, 2], (1, 2, 3), np.float32([1, 2, 3])]
)
def test_an_odd_context_among_others_is_kept_as_it_would_be_alone(model, odd):
    policy, usual = Policy(model), [0.5, 1.0, -0.0]
    together, alone = policy.take([usual, odd]), [policy.take([one]) for one in (usual, odd)]
    assert together == tuple([one[0] for one in parts] for parts in zip(*alone, strict=True))


@pytest.mark.parametrize("bad", [[10**400, 0, 0], [float("inf"), 0, 0], "x", {"a": 1}, None, [[1, 2, 3]]])
def test_a_bad_context_among_others_is_refused(model, bad):
    with pytest.raises(ValueError, match="expected one row of numbers|expected a finite number"):
        Policy(model).take([[0.5, 1.0, 2.0], bad])


def test_draws_are_the_same_for_ever():
    rules = make_rules(
        ["a", "b"], seed="0f" * 16, explore=0.1, explore_per_day=None, held_out=0.3, reveals=None, unrevealed=0.0, within=None,
        overdue=None, earns=None, reward_range=None,
    )  # fmt: skip
    ids = ["a", "person é", "x" * 200, *map(str, range(200))]
    drawn, held_out = rules.draws(ids)
    for at, id in enumerate(ids):
        mixed = hashlib.blake2b(id.encode(), key=bytes.fromhex(rules.seed), digest_size=16).digest()
        first, second = (int.from_bytes(part, "big") >> 11 for part in (mixed[:8], mixed[8:]))
        assert (float(drawn[at]), held_out[at]) == (first / 2**53, second / 2**53 < 0.3)
