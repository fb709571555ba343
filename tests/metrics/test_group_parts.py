"""Which strays hide a column that reveals the group, and how long it takes to see."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from evenhand.metrics import group_parts
from evenhand.metrics.asking import respond
from evenhand.metrics.group_columns import telling_columns
from evenhand.metrics.group_parts import likeliest_parts, met_in


@pytest.mark.parametrize(("n_wrong", "found"), [(2, ["code"]), (15, ["code"]), (40, [])])
def test_a_few_of_a_large_group_hide_no_column_of_a_small_one(n_wrong: int, found: list[str]) -> None:
    # With 40, most people with the small group's value are members of the large one.
    own = np.repeat([0, 1], [970, 30])
    code = np.where(np.arange(1000) < n_wrong, 1, own)
    code[-1] = 0  # typical of the large group only: nobody is set to it as a member of the small one
    X = pd.DataFrame({"code": code, "income": np.random.default_rng(0).normal(size=1000)})
    model = DecisionTreeClassifier(random_state=0).fit(X, code)
    said = respond(model, X, sensitive_features=np.array(["a", "b"])[own])
    assert (said.how, said.columns) == ("column" if found else "blind", found)
    assert said.flips.mean() == (pytest.approx(1 - (n_wrong + 1) / 1000) if found else 0)


@pytest.mark.parametrize("seed", range(20))
def test_columns_are_found_up_to_the_limits_that_an_audit_names(seed: int) -> None:
    # 5 % of each group, and a third of the people with any value.
    rng = np.random.default_rng(seed)
    sizes = np.array([12_000, 1_000, 60, rng.integers(100, 12_000)])
    own, n_values = np.repeat(np.arange(4), sizes), rng.integers(1, 6, 4)
    of_value = np.repeat(np.arange(4), n_values)
    first = np.cumsum(n_values) - n_values
    value = first[own] + np.concatenate([np.arange(n) % m for n, m in zip(sizes, n_values, strict=True)])
    strays = np.concatenate([np.flatnonzero(own == group)[: sizes[group] // 20] for group in range(4)])
    room = (np.bincount(value) - np.bincount(value[strays], minlength=n_values.sum())) // 2
    for at in strays:
        free = np.flatnonzero((room > 0) & (of_value != own[at]))
        if free.size:
            value[at] = rng.choice(free)
            room[value[at]] -= 1
    X = pd.DataFrame({"kind": rng.permutation(n_values.sum())[value]})
    found = likeliest_parts(met_in(X, ["kind"], own))[0]
    assert sorted(found.sizes) == sorted(sizes)
    assert "kind" in telling_columns(X, None, own).strays


def test_strays_with_the_most_frequent_value_hide_no_values_of_a_groups_own() -> None:
    own = np.repeat([0, 1], [300, 200])
    value = np.where(np.arange(500) < 308, 0, np.arange(500) // 2).astype(str)
    assert telling_columns(pd.DataFrame({"code": value}), None, own).more == ["code"]


def test_people_of_a_small_group_are_read_to_the_end() -> None:
    # In every second row, more people of the large group than of the small one have its value.
    own, code = np.zeros(12_000, dtype=int), np.zeros(12_000, dtype=int)
    small, strays = np.r_[0:24:2, 1:37:2], np.arange(100, 128, 2)
    own[small] = code[small] = code[strays] = 1
    assert telling_columns(pd.DataFrame({"code": code}), None, own).alone == ["code"]


def test_the_worst_group_is_joined_first() -> None:
    # Of 'a', 4 % have the value of 'b' and 2.5 % that of 'c'; a quarter of 'c' have the value of 'a'.
    own = np.repeat([0, 1, 2], [1000, 1000, 40])
    value = own.copy()
    value[:40], value[40:65], value[-10:] = 1, 2, 0
    found = likeliest_parts(met_in(pd.DataFrame({"kind": value}), ["kind"], own))
    assert sorted(found[0].sizes) == [1000, 1040]


@pytest.mark.parametrize("name", ["id", "score"])
def test_many_groups_are_joined_in_a_few_rounds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds, join = [], group_parts._joined
    monkeypatch.setattr(group_parts, "_joined", lambda *of: rounds.append(1) or join(*of))
    rng = np.random.default_rng(0)
    column = rng.integers(4_000, size=20_000).astype(str) if name == "id" else rng.normal(size=20_000)
    own = rng.integers(1_000, size=20_000)
    assert telling_columns(pd.DataFrame({name: column}), None, own)[:3] == ([], [], [])
    assert 0 < len(rounds) < 20
