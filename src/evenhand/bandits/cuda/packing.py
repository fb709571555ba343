"""Converts people, policies and rewards to the kernels' layout and back, in NumPy: no device is needed."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from evenhand.arrays import Array, Floats
from evenhand.bandits.cuda.spec import Spec
from evenhand.bandits.kernels.structs import People, Rows
from evenhand.network import Network
from evenhand.rewards.rates import Rates

PAIR = np.dtype([("column", np.int32), ("value", np.float32)])
_POINTERS = (
    "rows", "starts", "who", "counts", "policies", "gradient", "moments", "state", "history", "done", "gains",
    "rates",
)  # fmt: skip
_WHOLE = (
    "first", "stop", "end", "origin", "horizon", "interval", "n", "d", "batch", "order", "schedule",
)  # fmt: skip
_REAL = ("rate", "apart", "decay", "clip", "kl", "log_ratio", "agreement", "jensen_shannon")
MODEL = np.dtype(
    [(name, np.uint64) for name in (*_POINTERS, "seed")]
    + [(name, np.int64) for name in _WHOLE]
    + [(name, np.float64) for name in _REAL]
)
JUDGED = np.dtype(
    [(name, np.uint64) for name in ("policies", "rows", "starts", "who", "counts")]
    + [(name, np.int64) for name in ("n", "d")]
)


class Table(NamedTuple):
    """Rows of pairs, one after another, and the position where each row starts."""

    pairs: Any
    starts: Any


def canonical(rows: Rows, n_features: int) -> Any:
    """Return the rows as a CSR matrix without duplicate entries."""
    n_people = len(rows.starts) - 1
    if not rows.sparse:
        # Row starts get the type of the columns if they fit; otherwise SciPy would copy the columns.
        columns, kind = every_column(n_people, n_features), np.min_scalar_type(-int(rows.starts[-1]) - 1)
        starts = rows.starts.astype(np.promote_types(kind, np.int32))
        return sparse.csr_array((rows.values, columns, starts), shape=(n_people, n_features))
    matrix = sparse.csr_array((rows.values, rows.indices, rows.starts), shape=(n_people, n_features))
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


@lru_cache(maxsize=4)
def every_column(n_people: int, n_features: int) -> Array:
    """Return the column numbers of dense rows, kept in a cache: splits of one data set have equal sizes.

    They take as much memory as the rows. Clear the cache when all models are trained.
    """
    return np.tile(np.arange(n_features, dtype=np.int32), n_people)


def most_columns(matrix: Any) -> int:
    """Return the largest number of entries in a row."""
    return int(np.diff(matrix.indptr).max(initial=0))


def table_of(matrix: Any, width: int) -> Table:
    """Return rows of `width` pairs, padded with a column after the last one; 0 means no padding.

    >>> table_of(sparse.csr_array(np.float32([[0, 5], [0, 0]])), 2).pairs["column"]
    array([[1, 2],
           [2, 2]], dtype=int32)
    """
    counts = np.diff(matrix.indptr)
    if not width:
        pairs = np.empty(matrix.nnz, PAIR)
        pairs["column"], pairs["value"] = matrix.indices, matrix.data
        return Table(pairs, matrix.indptr.astype(np.int64))
    pairs = np.zeros((matrix.shape[0], width), PAIR)
    pairs["column"] = matrix.shape[1]
    there = np.arange(width) < counts[:, None]
    pairs["column"][there], pairs["value"][there] = matrix.indices, matrix.data
    return Table(pairs, np.zeros(1, np.int64))


def who_of(people: People) -> Array:
    """Return each person's group and label, packed into one number."""
    return (people.groups | people.labels << 16).astype(np.uint32)


def counts_of(people: People) -> Array:
    """Return the weight of each person's gradient, and the number of people they represent in rates."""
    if not len(people.weights):
        return np.zeros((1, 2), np.float32)
    return np.stack([people.weights, people.shares], axis=1).astype(np.float32)


def pack_policies(spec: Spec, policies: Network) -> Array:
    """Return policies in the kernels' order: by feature, then by unit, then by group (see memory.cu)."""
    W1, b1, W2, b2 = policies
    n_groups, n_features, n_hidden = W1.shape
    if spec.K == 2:
        W2, b2 = (W2[:, 1:] - W2[:, :1]) / 2, (b2[:, 1:] - b2[:, :1]) / 2
    layers = np.concatenate([W1, np.zeros((n_groups, 1, n_hidden)), b1[:, None], W2], axis=1)
    wide = np.pad(layers, [(0, 0), (0, 0), (0, spec.width - n_hidden)]).reshape(n_groups, -1)
    flat = np.concatenate([wide, b2], axis=1).T.ravel().astype(np.float32)
    return np.pad(flat, (0, spec.policies(n_features) - len(flat)))


def unpack_policies(spec: Spec, flat: Array, before: Network, shrunk: Floats) -> Network:
    """Return policies in their usual shape; with two labels, the mean weights come from `before`, decayed."""
    n_groups, n_features, n_hidden = before.W1.shape
    by_group = flat[: spec.elements(n_features) * n_groups].reshape(-1, n_groups).T
    layers = by_group[:, : -spec.kept].reshape(n_groups, -1, spec.width)[:, :, :n_hidden]
    W1, b1, W2 = layers[:, :n_features], layers[:, n_features + 1], layers[:, n_features + 2 :]
    b2 = by_group[:, -spec.kept :]
    if spec.K == 2:
        W2 = before.W2.mean(1, keepdims=True) * shrunk[:, None, None] + np.concatenate([-W2, W2], axis=1)
        b2 = before.b2.mean(1, keepdims=True) + np.concatenate([-b2, b2], axis=1)
    kind = before.b1.dtype
    return Network(*(np.ascontiguousarray(part, dtype=kind) for part in (W1, b1, W2, b2)))


def first_state(spec: Spec, rates: Rates) -> Floats:
    """Return the state of a new run: an empty batch, and its running rates."""
    batch = np.zeros(3 * spec.G)
    batch[2 * spec.G :] = 1.0  # the factor by which weight decay has shrunk the weights
    return np.concatenate([batch, *(part.ravel() for part in rates)]) if spec.T else batch


def rates_in(spec: Spec, state: Floats, before: Rates) -> Rates:
    """Return the running rates in a state."""
    if not spec.T:
        return before
    ends = np.cumsum([part.size for part in before])[:-1]
    found = np.split(state[3 * spec.G :], ends)
    return Rates(*(part.reshape(was.shape).copy() for part, was in zip(found, before, strict=True)))


def rate_numbers(own: Any) -> Array:
    """Return the numbers of the bounded terms, one after another."""
    parts = (own.bound, own.dual_step, own.pull, own.cut, own.averaging, own.held, own.mask)
    return np.concatenate([np.ravel(part).astype(np.float32) for part in parts] + [np.zeros(1, np.float32)])
