import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from evenhand.bandits.contexts import as_rows
from evenhand.bandits.oracle import row_of


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
