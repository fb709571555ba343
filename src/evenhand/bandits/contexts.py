"""Turns any table of numbers into the rows that the training loop reads. It copies only if necessary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from evenhand.bandits.kernels.structs import Rows
from evenhand.tables.preprocessing import SPARSE_BELOW
from evenhand.wording import people


def name_bad_columns(X: Any) -> None:
    """Raise if a DataFrame's column is not numeric and finite, or not unique; the error names the column."""
    if not isinstance(X, pd.DataFrame):
        return
    for name in X.columns:
        column: Any = X[name]
        if isinstance(column, pd.DataFrame):
            raise ValueError(f"Got two columns named {name!r}, but expected every name once.")
        if not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)):
            if pd.api.types.is_object_dtype(column) and pd.to_numeric(column, errors="coerce").notna().all():
                continue
            raise ValueError(
                f"Column {name!r} holds {column.dtype} values such as {column.iloc[0]!r}, but expected "
                "numbers. Wrap the estimator in evenhand.tabular, which encodes text and dates."
            )
        numbers = pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)
        if not np.isfinite(numbers).all():
            missing, infinite = int(np.isnan(numbers).sum()), int(np.isinf(numbers).sum())
            if missing:
                raise gaps(f" in column {name!r} ({people(missing)})")
            raise ValueError(
                f"Input X contains infinity in column {name!r} ({people(infinite)}), but expected finite "
                "numbers: replace or drop them first."
            )


def gaps(where: str = "") -> ValueError:
    """Return the error for missing values; scikit-learn's names another library's model."""
    return ValueError(
        f"Input X contains NaN{where}, but expected finite numbers. CooperativeBoosting takes missing "
        "values; evenhand.tabular fills them in for any estimator."
    )


def as_rows(X: Any) -> Rows:
    """Return the rows of a float32 array or CSR matrix. Dense tables of mostly zeros are stored sparsely.

    A float32 CSR matrix is not copied, nor is a C-ordered float32 array that is not mostly zeros: models that
    are trained side by side read the same memory.

    >>> as_rows(np.eye(4, dtype=np.float32)).sparse, as_rows(np.ones((2, 3), dtype=np.float32)).sparse
    (True, False)
    """
    if not sparse.issparse(X) and X.size and np.count_nonzero(X) < SPARSE_BELOW * X.size:
        X = sparse.csr_array(X)
    if isinstance(X, (sparse.csr_array, sparse.csr_matrix)):
        if X.nnz and not 0 <= X.indices.min() <= X.indices.max() < X.shape[1]:
            raise ValueError(f"Got a sparse X with a column number outside its {X.shape[1]} columns.")
        return Rows(
            _writable(X.data.astype(np.float32, copy=False)),
            _writable(X.indices.astype(np.int32, copy=False)),
            _writable(X.indptr.astype(np.int64, copy=False)),
            True,
        )
    table = np.ascontiguousarray(X, dtype=np.float32)
    n_people, n_features = table.shape
    starts = np.arange(n_people + 1, dtype=np.int64) * n_features
    return Rows(_writable(table.reshape(-1)), np.arange(n_features, dtype=np.int32), starts, False)


def _writable(array: Any) -> Any:
    """Return a view that Numba treats as an ordinary array.

    For Numba, a read-only array (such as a memory map that processes share) has a type of its own, and every
    loop would be compiled again. The loops never write to rows.
    """
    if array.flags.writeable:
        return array
    holder = _SameMemory()
    holder.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}
    holder.owner = array
    return np.asarray(holder)


class _SameMemory:
    """Keeps the owner of borrowed memory alive."""

    __array_interface__: dict[str, Any]
    owner: Any
