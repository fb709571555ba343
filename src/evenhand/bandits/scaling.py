"""Scales columns for training; afterwards, the scale is folded into the policies' first layer."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import issparse

from evenhand.arrays import Floats
from evenhand.bandits.contexts import as_rows
from evenhand.bandits.kernels.structs import Rows
from evenhand.network import Network

# If the mean exceeds the deviation by more than this factor, the deviation is only float32 rounding error.
MEAN_TO_DEVIATION, LEAST = 1e6, 1e-30


class Scaling(NamedTuple):
    """The centre that is subtracted from each column, and the deviation it is then divided by."""

    centre: Floats
    deviation: Floats

    @classmethod
    def of(cls, X: Any) -> Self:
        """Return the scale of every column of a float32 array or CSR matrix.

        Dense columns get mean 0 and deviation 1; columns of zeros and ones stay as they are. Sparse columns
        are not centred, and their nonzero values get a mean square of 1, like those of a column of zeros and
        ones. A constant dense column, or any column of zeros, is divided by infinity, so it has no influence,
        even with new values. A dense column of ones stays as it is.

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
            deviation = np.where(counts == 0, np.inf, np.where(size > LEAST, size, 1.0))
            return cls(np.zeros(X.shape[1]), _single(deviation))
        flags = ((X == 0) | (X == 1)).all(0) & X.any(0)
        centre, deviation = X.mean(0, dtype=np.float64), X.std(0, dtype=np.float64)
        constant = deviation <= np.maximum(np.abs(centre) / MEAN_TO_DEVIATION, LEAST)
        centre = np.where(flags | constant, 0.0, centre)
        deviation = np.where(flags, 1.0, np.where(constant, np.inf, deviation))
        return cls(_single(centre), _single(deviation))

    def applied(self, X: Any) -> Any:
        """Return the scaled rows as a new float32 array or matrix."""
        if _sparse(X):
            scaled = X.copy()
            scaled.data = (scaled.data / self.deviation[scaled.indices]).astype(np.float32)
            return scaled
        scaled = X - self.centre.astype(np.float32)
        scaled /= self.deviation.astype(np.float32)
        return scaled

    def folded(self, policies: Network) -> Network:
        """Return policies that give unscaled rows the probabilities that these give scaled rows."""
        W1 = policies.W1 / self.deviation[:, None]
        b1 = policies.b1 - self.centre @ W1
        return policies._replace(W1=W1.astype(policies.W1.dtype), b1=b1.astype(policies.b1.dtype))

    def unfolded(self, policies: Network) -> Network:
        """Return policies that give scaled rows the probabilities that these give unscaled rows."""
        # Constant columns are 0 in scaled rows, so their weights can be anything finite.
        W1 = policies.W1 * np.where(np.isfinite(self.deviation), self.deviation, 0.0)[:, None]
        b1 = policies.b1 + self.centre @ policies.W1
        return policies._replace(W1=W1.astype(policies.W1.dtype), b1=b1.astype(policies.b1.dtype))


def on_one_scale(X: Any, scaled: bool) -> tuple[Scaling | None, Rows]:
    """Return the scale and the scaled rows; if not `scaled`, None and the rows as they are."""
    scaling = Scaling.of(X) if scaled else None
    return scaling, as_rows(X if scaling is None else scaling.applied(X))


def _single(values: Floats) -> Floats:
    """Round to single precision, so that rows and weights are scaled by exactly the same numbers."""
    return values.astype(np.float32).astype(np.float64)


def _sparse(X: Any) -> bool:  # not a type guard: SciPy's stubs don't declare a matrix's parts
    return bool(issparse(X))
