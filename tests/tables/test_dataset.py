from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.tables.dataset import Dataset, arrange


def small(**changes: object) -> Dataset:
    parts: dict[str, object] = {
        "name": "small",
        "contexts": pd.DataFrame({"age": [25.0, 31.0, np.nan], "job": pd.Categorical(["a", "b", "a"])}),
        "label": pd.Series(["no", "yes", "yes"], name="hired"),
        "sensitive": pd.DataFrame({"sex": ["f", "m", "f"], "race": ["x", "y", "y"]}),
        "pos_label": "yes",
    }
    return Dataset(**(parts | changes))  # type: ignore[arg-type]


def test_says_what_it_is() -> None:
    assert repr(small()) == (
        "Dataset 'small' (3 people, 2 features), label 'hired' = 'yes': 66.7 %, sensitive 'sex' (f: 2, m: 1)"
    )
    assert len(small()) == 3
    assert small().sensitive_features.tolist() == ["f", "m", "f"]


def test_can_not_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        small().name = "other"  # type: ignore[misc]


def test_fingerprint_is_the_same_on_every_platform() -> None:
    expected = "d26663db4291c901062d119e26a79e0a6a5e8fd78f05ecfb237676056620a2da"
    assert small().fingerprint == expected


def test_fingerprint_does_not_depend_on_how_a_value_is_stored() -> None:
    narrow = pd.DataFrame({"age": np.array([25, 31, np.nan], dtype=np.float32), "job": list("aba")})
    assert small(contexts=narrow).fingerprint == small().fingerprint
    zero, minus = (pd.DataFrame({"age": [25.0, 31.0, zero], "job": list("aba")}) for zero in (0.0, -0.0))
    assert small(contexts=zero).fingerprint == small(contexts=minus).fingerprint  # Excel has no -0


@given(row=st.integers(0, 2), age=st.floats(-1e6, 1e6), job=st.text(min_size=1, max_size=4))
def test_any_other_value_gives_another_fingerprint(row: int, age: float, job: str) -> None:
    contexts = pd.DataFrame({"age": [25.0, 31.0, np.nan], "job": ["a", "b", "a"]})
    same = small(contexts=contexts.copy()).fingerprint
    if contexts.loc[row, "age"] != age:
        changed = contexts.copy()
        changed.loc[row, "age"] = age
        assert small(contexts=changed).fingerprint != same
    if contexts.loc[row, "job"] != job:
        changed = contexts.copy()
        changed.loc[row, "job"] = job
        assert small(contexts=changed).fingerprint != same


@pytest.mark.parametrize(
    "changes",
    [
        {"label": pd.Series(["yes", "yes", "yes"], name="hired")},
        {"label": pd.Series(["no", "yes", "yes"], name="other")},
        {"pos_label": "no"},
        {"test_rows": np.array([True, False, False])},
        {"test_people": 1},
        {"sensitive": pd.DataFrame({"sex": ["f", "m", "m"]})},
    ],
)
def test_label_groups_and_test_part_count_in_the_fingerprint(changes: dict[str, object]) -> None:
    assert small(**changes).fingerprint != small().fingerprint


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": pd.Series(["no", "yes"], name="hired")}, "Got 2 rows in label, but contexts has 3"),
        ({"label": pd.Series(["no", None, "yes"], name="hired")}, "'hired' has missing values"),
        ({"label": pd.Series(["no", "yes", "yes"], name="age")}, "contexts holds the column 'age'"),
        ({"pos_label": "yess"}, r"Got the positive label 'yess'.* Did you mean 'yes'"),
        ({"sensitive": pd.DataFrame(index=range(3))}, "no sensitive column"),
        ({"sensitive": pd.DataFrame({"job": ["a", "b", "a"]})}, "contexts holds the column 'job'"),
        ({"test_rows": np.array([True])}, "Got 1 rows in test_rows"),
        ({"contexts": pd.DataFrame({"age": []})}, "has no rows"),
    ],
)
def test_refuses_parts_that_do_not_fit(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small(**changes)


def test_columns_that_say_the_same_leave_together() -> None:
    people = pd.DataFrame({"age": [1], "black": ["b"], "race": ["B"], "sex": ["f"]})
    known, same = ("black", "race", "sex"), ("black", "race")
    by_black, groups = arrange(people, sensitive="black", known=known, same=same)
    assert list(by_black) == ["age", "sex"]
    assert list(groups) == ["black", "race", "sex"]
    by_sex, groups = arrange(people, sensitive="sex", known=known, same=same)
    assert list(by_sex) == ["age", "race"]
    assert list(groups) == ["sex", "black", "race"]
    with pytest.raises(ValueError, match=r"Got sensitive='sx'.* Did you mean 'sex'"):
        arrange(people, sensitive="sx", known=known)


def test_groups_that_say_nothing_by_themselves_come_with_their_column() -> None:
    told = repr(small(sensitive=pd.DataFrame({"black": ["0", "1", "0"]})))
    assert told.endswith("sensitive 'black' (black = 0: 2, black = 1: 1)")
