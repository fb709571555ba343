"""Trees as arrays: they say what LightGBM says, and damaged ones are refused before a loop reads them."""

from dataclasses import fields, replace

import lightgbm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.boosting.trees import Trees, from_lightgbm, joined


def grown(seed=0, n=400, outputs=1, categorical=(), gaps=0.0, leaves=8, rounds=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    for column in categorical:
        X[:, column] = rng.integers(-1, 70, n)
    y = (np.nan_to_num(X[:, 0]) + (X[:, 3] % 3 == 0) + rng.normal(size=n) > 0).astype(int)
    X[rng.random(X.shape) < gaps] = np.nan
    more = {"objective": "multiclass", "num_class": outputs} if outputs > 1 else {"objective": "binary"}
    if outputs > 1:
        y = rng.integers(0, outputs, n)
    options = {
        "num_leaves": leaves,
        "min_data_in_leaf": 5,
        "verbose": -1,
        "num_threads": 1,
        "cat_smooth": 1,
    } | more
    data = lightgbm.Dataset(X, y, categorical_feature=list(categorical))
    booster = lightgbm.train(options, data, rounds)
    return booster, from_lightgbm(booster.model_to_string(), outputs), X


@settings(max_examples=25)
@given(
    seed=st.integers(0, 99),
    outputs=st.sampled_from([1, 3]),
    categorical=st.sampled_from([(), (3,), (2, 3)]),
    gaps=st.sampled_from([0.0, 0.2]),
)
def test_they_say_what_lightgbm_says(seed, outputs, categorical, gaps):
    booster, trees, X = grown(seed, outputs=outputs, categorical=categorical, gaps=gaps)
    trees.check(4, outputs)
    rng = np.random.default_rng(seed)
    new = np.concatenate([X, (rng.normal(size=(50, 4)) * 40).astype(np.float32)])
    new[:, list(categorical)] = new[:, list(categorical)].round()  # codes, some of them never met
    new[-20:, rng.integers(0, 4)] = np.nan  # also where training had no gaps
    expected = booster.predict(new, raw_score=True).reshape(len(new), outputs).T
    np.testing.assert_allclose(trees.scores(new, outputs), expected, atol=1e-6)


def test_trees_without_a_split_are_one_leaf():
    _, trees, X = grown(n=400, leaves=2, rounds=3)
    lone = replace(
        trees,
        root=np.array([-1], dtype=np.int32), output=np.zeros(1, dtype=np.int32), leaf=np.array([0.25]),
        feature=np.zeros(0, np.int32), threshold=np.zeros(0, np.float32), nan_left=np.zeros(0, np.bool_),
        left=np.zeros(0, np.int32), right=np.zeros(0, np.int32), set_start=np.zeros(0, np.int32),
        set_words=np.zeros(0, np.int32),
    )  # fmt: skip
    lone.check(4, 1)
    np.testing.assert_array_equal(lone.scores(X, 1), np.full((1, len(X)), 0.25))
    both = joined([trees, lone, trees])
    both.check(4, 1)
    np.testing.assert_allclose(both.scores(X, 1), 2 * trees.scores(X, 1) + 0.25)


def test_each_tree_is_scaled_by_its_own_number():
    _, trees, X = grown(outputs=3, categorical=(3,))
    by = np.zeros(len(trees.root))
    by[4] = 2.0
    alone = trees.scaled(by).scores(X, 3)
    assert not alone[[0, 2]].any()
    first = replace(trees, root=trees.root[4:5], output=trees.output[4:5])
    np.testing.assert_allclose(alone[1], 2 * first.scores(X, 3)[1])


DAMAGES = {
    "a child after the last": ("left", 0, 10_000),
    "a leaf after the last": ("right", 1, -10_000),
    "a circle": ("left", 3, 1),
    "its own child": ("right", 2, 2),
    "a root after the last": ("root", 0, 10_000),
    "an output after the last": ("output", 0, 7),
    "a negative output": ("output", 0, -1),
    "a feature after the last": ("feature", 0, 4),
    "a negative feature": ("feature", 0, -2),
    "a set after the last": ("set_start", 0, 10_000),
    "a set before the first": ("set_start", 0, -5),
    "a set without end": ("set_words", 0, 2**31 - 1),
    "no number in a leaf": ("leaf", 0, np.nan),
    "no number in a threshold": ("threshold", 0, np.nan),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_trees_are_refused(damage):
    _, trees, _ = grown(categorical=(3,))
    name, at, value = DAMAGES[damage]
    array = getattr(trees, name).copy()
    array[at] = value
    with pytest.raises(ValueError, match="The model is damaged"):
        replace(trees, **{name: array}).check(4, 1)


@pytest.mark.parametrize("name", [part.name for part in fields(Trees)])
@pytest.mark.parametrize("change", [lambda a: a[:-1], lambda a: a.astype(object), lambda a: a[None]])
def test_arrays_of_another_shape_or_type_are_refused(name, change):
    _, trees, _ = grown(categorical=(3,))
    with pytest.raises(ValueError, match="The model is damaged"):
        replace(trees, **{name: change(getattr(trees, name))}).check(4, 1)
