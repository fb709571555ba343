"""Columns on one scale while a policy learns; afterwards the scale is folded into its first layer."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import issparse

from evenhand.arrays import Floats
from evenhand.bandits.contexts import as_rows
from evenhand.bandits.kernels.structs import Rows
from evenhand.network import Network

# Beyond this, what is left of a column after its mean is taken away is the rounding of single precision.
MEAN_TO_DEVIATION, LEAST = 1e6, 1e-30


class Scaling(NamedTuple):
    """What is taken from each column, and what it is then divided by."""

    centre: Floats
    deviation: Floats

    @classmethod
    def of(cls, X: Any) -> Self:
        """Return the scale of every column of a float32 array or CSR matrix.

        Dense columns get mean 0 and deviation 1; those of zeros and ones stay as they are. Sparse columns are
        not centred, and their values other than 0 get a mean square of 1, as those of zeros and ones have. A
        constant column is divided by infinity: it teaches nothing, and a new value of it says nothing.

        >>> Scaling.of(np.float32([[1, 10, 7], [0, 30, 7]]))
        Scaling(centre=array([ 0., 20.,  0.]), deviation=array([ 1., 10., inf]))
        >>> from scipy.sparse import csr_array
        >>> Scaling.of(csr_array(np.float32([[1, 0], [1, 5]]))).deviation
        array([1., 5.])
        """
        if _sparse(X):
            squares = np.bincount(X.indices, np.square(X.data, dtype=np.float64), X.shape[1])
            counts = np.bincount(X.indices[X.data != 0], minlength=X.shape[1])
            size = np.sqrt(squares / np.maximum(counts, 1))
            return cls(np.zeros(X.shape[1]), _single(np.where(size > LEAST, size, 1.0)))
        flags = ((X == 0) | (X == 1)).all(0)
        centre, deviation = X.mean(0, dtype=np.float64), X.std(0, dtype=np.float64)
        constant = deviation <= np.maximum(np.abs(centre) / MEAN_TO_DEVIATION, LEAST)
        centre = np.where(flags | constant, 0.0, centre)
        deviation = np.where(flags, 1.0, np.where(constant, np.inf, deviation))
        return cls(_single(centre), _single(deviation))

    def applied(self, X: Any) -> Any:
        """Return the rows on this scale, as float32; the caller's own are not touched."""
        if _sparse(X):
            scaled = X.copy()
            scaled.data = (scaled.data / self.deviation[scaled.indices]).astype(np.float32)
            return scaled
        scaled = X - self.centre.astype(np.float32)
        scaled /= self.deviation.astype(np.float32)
        return scaled

    def folded(self, policies: Network) -> Network:
        """Return the policies that say of rows as they come what these say of rows on this scale."""
        W1 = policies.W1 / self.deviation[:, None]
        b1 = policies.b1 - self.centre @ W1
        return policies._replace(W1=W1.astype(policies.W1.dtype), b1=b1.astype(policies.b1.dtype))


def on_one_scale(X: Any, scaled: bool) -> tuple[Scaling | None, Rows]:
    """Return the rows to learn from and their scale, or the rows as they come."""
    scaling = Scaling.of(X) if scaled else None
    return scaling, as_rows(X if scaling is None else scaling.applied(X))


def _single(values: Floats) -> Floats:
    """Round to what single precision holds: rows and weights are then scaled by the very same numbers."""
    return values.astype(np.float32).astype(np.float64)


def _sparse(X: Any) -> bool:  # for SciPy's types a sparse matrix has no parts
    return bool(issparse(X))
