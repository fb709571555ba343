import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from evenhand import CooperativeBandits, GradientBandit
from evenhand.bandits import kernels
from evenhand.bandits.contexts import as_rows
from evenhand.bandits.oracle import row_of
from evenhand.bandits.training import Training


@given(st.integers(1, 6), st.integers(1, 6), st.floats(0, 1), st.booleans())
def test_rows_hold_the_table(n, d, density, is_sparse):
    rng = np.random.default_rng(n * d)
    table = (rng.normal(size=(n, d)) * (rng.random((n, d)) < density)).astype(np.float32)
    rows = as_rows(sparse.csr_matrix(table) if is_sparse else table)
    np.testing.assert_array_equal([row_of(rows, person, d) for person in range(n)], table)


def test_column_numbers_outside_the_table_are_refused():
    table = sparse.csr_array(np.ones((2, 3), dtype=np.float32))
    table.indices[0] = 7
    with pytest.raises(ValueError, match="column number outside its 3 columns"):
        as_rows(table)


@pytest.mark.parametrize("make", [lambda t: t, sparse.csr_array])
def test_rows_are_no_copy(make):
    table = make(np.ones((5, 3), dtype=np.float32))
    rows = as_rows(table)
    assert np.shares_memory(rows.values, table if isinstance(table, np.ndarray) else table.data)


@pytest.mark.parametrize("learner", [CooperativeBandits, GradientBandit])
def test_a_few_rows_in_order_are_taken_as_any_others(learner):
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(50, 3)), rng.choice(["f", "m"], 50)
    groups = {"sensitive_features": s} if learner is CooperativeBandits else {}
    model = learner(epochs=1, random_state=0).fit(X, X[:, 0] > 0, **groups)
    wanted = model.estimate_value(X, X[:, 0] > 0, np.ones(50), np.full(50, 0.5), **groups)
    for rows in (X, X.astype(np.float32), np.asfortranarray(X), X.astype(object), np.hstack([X, X])[:, :3]):
        assert model._contexts(rows, reset=False).dtype == np.float32
        assert model._contexts(rows, reset=False).flags.c_contiguous
        np.testing.assert_array_equal(model._contexts(rows, reset=False), X.astype(np.float32))
    assert model.estimate_value(X.tolist(), X[:, 0] > 0, np.ones(50), np.full(50, 0.5), **groups) == wanted
    for bad in (X[:, :2], X[:0], X[0], np.where(X > 1, np.nan, X), np.where(X > 1, np.inf, X)):
        with pytest.raises(ValueError, match="expecting|minimum|2D array|NaN|infinity") as usually:
            model._contexts(bad.astype(object), reset=False)
        with pytest.raises(ValueError, match=re.escape(str(usually.value))):
            model._contexts(bad, reset=False)


def test_zeros_left_out_change_no_digit(monkeypatch):
    """Told sparsely or densely, the same person gets the same probabilities to the last bit."""
    table = np.random.default_rng(0).normal(size=(50, 9)).astype(np.float32)
    table *= np.random.default_rng(1).random((50, 9)) < 0.6
    start = {"n_features": 9, "n_hidden": 20, "n_actions": 3, "n_groups": 2, "seed": 0, "shared_start": False}
    policies, found = Training.begin(**start).policies, {}
    for share in (0.0, 1.1):
        monkeypatch.setattr("evenhand.bandits.contexts.SPARSE_BELOW", share)
        rows = as_rows(table)
        found[rows.sparse] = np.empty((50, 2, 3))
        kernels.probabilities(policies, rows, found[rows.sparse])
    assert np.array_equal(found[True], found[False])


@pytest.mark.parametrize("make", [np.asarray, np.ndarray.tolist, sparse.csr_array, pd.DataFrame])
@pytest.mark.parametrize("learner", [CooperativeBandits, GradientBandit])
def test_who_has_missing_values_hears_of_what_takes_them(make, learner):
    X = np.random.default_rng(0).normal(size=(50, 3))
    X[3, 1] = np.nan
    groups = {"sensitive_features": ["f", "m"] * 25} if learner is CooperativeBandits else {}
    with pytest.raises(ValueError, match="Input X contains NaN") as raised:
        learner(epochs=1).fit(make(X), X[:, 0] > 0, **groups)
    assert "CooperativeBoosting takes missing values; evenhand.tabular fills" in str(raised.value)
    assert "HistGradient" not in str(raised.value)
    if make is pd.DataFrame:
        assert "in column 1 (1 person)" in str(raised.value)


def test_text_is_for_tabular():
    people = pd.DataFrame({"job": ["cook", "clerk"] * 25})
    with pytest.raises(
        ValueError, match=r"Column 'job' holds .* 'cook', but expected numbers\. .*evenhand\.tabular"
    ):
        GradientBandit(epochs=1).fit(people, people["job"] == "cook")
