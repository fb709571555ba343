"""Rows go by position, so pandas objects whose labels contradict that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from evenhand import audit, search_flips, twins

N = 200
RNG = np.random.default_rng(0)
X = pd.DataFrame({"age": RNG.integers(18, 80, N), "skill": RNG.normal(size=N)})
SEX = pd.Series(RNG.choice(["f", "m"], N), name="sex")
Y = pd.Series(np.where((X["skill"] > 0) | (SEX == "m"), "yes", "no"))
QUICK: dict[str, Any] = {"n_bootstrap": 10}


@pytest.mark.parametrize("name", ["predictions", "y", "sensitive_features", "sample_weight"])
def test_an_index_in_another_order_is_an_error(name: str) -> None:
    given = {"predictions": Y, "y": Y, "sensitive_features": SEX, "sample_weight": pd.Series(np.ones(N))}
    given[name] = given[name].sample(frac=1, random_state=0)
    first, label = given.pop("predictions"), given.pop("y")
    with pytest.raises(ValueError, match=f"Got {name} with the index of X in another order.*{name}.to_numpy"):
        audit(first, X, label, **given, **QUICK)


def test_without_x_the_first_of_them_sets_the_order() -> None:
    with pytest.raises(ValueError, match="Got sensitive_features with the index of predictions in another"):
        audit(Y, None, None, sensitive_features=SEX[::-1], **QUICK)


def test_the_ways_that_the_error_names_work() -> None:
    mixed, want = SEX.sample(frac=1, random_state=0), audit(Y, X, Y, sensitive_features=SEX, **QUICK)
    found = audit(Y, X, Y, sensitive_features=mixed.loc[X.index], **QUICK)
    assert found.value("discrimination") == want.value("discrimination")
    by_position = audit(Y, X, Y, sensitive_features=mixed.to_numpy(), **QUICK)
    assert by_position.value("discrimination") < want.value("discrimination")
    # Other labels say nothing about the order, like those of one part after a split and a new index.
    audit(Y, X, Y, sensitive_features=SEX.set_axis(np.arange(N) + 7), **QUICK)
    twice = np.repeat(np.arange(N // 2), 2)
    audit(Y.set_axis(twice), X.set_axis(twice), None, sensitive_features=SEX.set_axis(twice), **QUICK)


def test_twins_and_searches_refuse_it_too() -> None:
    model = DecisionTreeClassifier(max_depth=2).fit(X, Y)
    for ask in (twins, search_flips):
        with pytest.raises(ValueError, match="Got sensitive_features with the index of X in another order"):
            ask(model, X, sensitive_features=SEX[::-1])


@pytest.mark.parametrize(
    "index",
    [
        pd.MultiIndex.from_product([range(N // 2), ["a", "b"]]),
        pd.MultiIndex.from_product([range(N // 4), ["a", "b"], [0, 1]]),
        pd.Index(np.arange(N) // 2),
    ],
)
def test_labels_that_are_not_the_same_say_nothing_about_the_order(index: pd.Index) -> None:
    want = audit(Y, X, Y, sensitive_features=SEX, **QUICK).value("discrimination")
    for other in (pd.Index(np.roll(index, 1)) if index.nlevels == 1 else index, X.index):
        found = audit(Y, X.set_axis(index), Y, sensitive_features=SEX.set_axis(other), **QUICK)
        assert found.value("discrimination") == want
