"""Checks of sparse matrices: SciPy accepts parts that don't fit and duplicates, and loops check nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse


def check_sparse(X: Any) -> None:
    """Raise unless the parts of a sparse matrix fit together.

    Parameters
    ----------
    X : object
        Any object. Objects that are not sparse are not checked.

    Raises
    ------
    ValueError
        If row starts, column numbers or values do not fit each other or the shape. Compiled loops would then
        read memory outside the matrix.

    Examples
    --------
    >>> X = sparse.csr_array(np.eye(2))
    >>> X.indptr[-1] = 9
    >>> check_sparse(X)
    Traceback (most recent call last):
    ...
    ValueError: Got a damaged sparse X: its row starts do not fit its 2 values.
    """
    matrix: Any = X  # SciPy's stubs declare neither the parts nor the format
    if not sparse.issparse(X):
        return
    if matrix.format in ("csr", "csc", "bsr"):
        _check_compressed(matrix)
    elif matrix.format == "coo":
        parts = (*matrix.coords, matrix.data)
        if any(np.ndim(part) != 1 or len(part) != len(matrix.data) for part in parts):
            raise _damaged("its parts differ in length")
        for numbers, size in zip(matrix.coords, matrix.shape, strict=True):
            _check_range(numbers, size)


def without_duplicates(X: Any) -> Any:
    """Return a CSR matrix with each column at most once in a row, sorted; and anything else unchanged.

    Duplicate entries mean their sum, but a scale would count them separately, and LightGBM reads only one.
    The caller's matrix is never changed, and not copied if it has no duplicates.

    >>> twice = sparse.csr_array((np.float32([1, 2]), [0, 0], [0, 2]), shape=(1, 3))
    >>> without_duplicates(twice).data.tolist(), twice.nnz
    ([3.0], 2)
    """
    if not sparse.issparse(X):
        return X
    matrix: Any = X
    end = matrix.indptr[-1]  # values beyond it belong to no row
    found = type(matrix)((matrix.data[:end], matrix.indices[:end], matrix.indptr), shape=matrix.shape)
    if not found.has_canonical_format:
        found = found.copy()
        found.sum_duplicates()
        return found
    return X if len(matrix.data) == len(matrix.indices) == end else found


def _check_compressed(X: Any) -> None:
    starts, numbers, values = X.indptr, X.indices, X.data
    block = X.blocksize if X.format == "bsr" else (1, 1)
    rows, columns = (size // side for size, side in zip(X.shape, block, strict=True))
    if X.format == "csc":
        rows, columns = columns, rows
    if starts.ndim != 1 or numbers.ndim != 1 or values.ndim != (3 if X.format == "bsr" else 1):
        raise _damaged("its parts are not plain arrays")
    fits = (
        starts.dtype.kind in "iu"
        and len(starts) == rows + 1
        and starts[0] == 0
        and bool((starts[1:] >= starts[:-1]).all())
        and starts[-1] <= min(len(numbers), len(values))
    )
    if not fits:
        raise _damaged(f"its row starts do not fit its {len(values):,} values")
    _check_range(numbers, columns)


def _check_range(numbers: Any, size: int) -> None:
    if numbers.dtype.kind not in "iu" or (len(numbers) and not 0 <= numbers.min() <= numbers.max() < size):
        raise _damaged(f"it has a column or row number that is not in 0 to {size - 1:,}")


def _damaged(how: str) -> ValueError:
    return ValueError(f"Got a damaged sparse X: {how}.")
