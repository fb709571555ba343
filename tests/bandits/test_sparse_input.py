"""A sparse matrix is what it adds up to, however its entries are stored."""

import numpy as np
import pytest
from scipy import sparse

from evenhand import CooperativeBandits, CooperativeBoosting, GradientBandit
from evenhand.bandits.sparse_input import without_duplicates
from factories import make_arrays

X, Y, S = make_arrays(400)
X = np.where(np.abs(X) < 0.7, 0, 4 * X).round().astype(np.float32)
ONCE = sparse.csr_array(X)
LEARNERS = {
    "bandits": (CooperativeBandits(epochs=3, random_state=0), {"sensitive_features": S}),
    "unscaled": (CooperativeBandits(epochs=3, standardize=False, random_state=0), {"sensitive_features": S}),
    "gradient": (GradientBandit(epochs=3, random_state=0), {}),
    "boosting": (CooperativeBoosting(rounds=5, random_state=0), {"sensitive_features": S}),
}


def halved(kind=sparse.csr_array):
    """Return the same matrix with every entry in two halves, next to each other."""
    parts = np.repeat(ONCE.data / 2, 2), np.repeat(ONCE.indices, 2), 2 * ONCE.indptr
    return kind(parts, shape=ONCE.shape)


def backwards():
    """Return halves in rows that run backwards."""
    twice = halved()
    back = np.concatenate(
        [np.arange(a, b)[::-1] for a, b in zip(twice.indptr[:-1], twice.indptr[1:], strict=True)]
    )
    return sparse.csr_array((twice.data[back], twice.indices[back], twice.indptr), shape=twice.shape)


def with_more():
    """Return the same matrix with values that belong to no row."""
    more = ONCE.copy()
    more.data = np.append(more.data, np.full(50, 1000, np.float32))
    more.indices = np.append(more.indices, np.zeros(50, more.indices.dtype))
    return more


STORED = {
    "halves": halved,
    "halves in a matrix": lambda: halved(sparse.csr_matrix),
    "halves backwards": backwards,
    "more values": with_more,
}


def said(model, rows):
    return model.probabilities_by_group(rows) if hasattr(model, "groups_") else model.predict_proba(rows)


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("name", LEARNERS)
def test_a_model_depends_on_what_entries_add_up_to(name, stored):
    model, given = LEARNERS[name]
    rows = STORED[stored]()
    before = [part.copy() for part in (rows.data, rows.indices, rows.indptr)]
    np.testing.assert_array_equal(rows.toarray(), X)
    wanted = said(model.fit(ONCE, Y, **given), ONCE)
    np.testing.assert_array_equal(said(model, rows), wanted)
    np.testing.assert_array_equal(said(model.fit(rows, Y, **given), ONCE), wanted)
    for part, was in zip((rows.data, rows.indices, rows.indptr), before, strict=True):
        np.testing.assert_array_equal(part, was)


def test_a_log_and_pieces_too():
    for learn in (
        lambda model, rows: model.fit_logged(rows, Y, np.ones(400), np.full(400, 0.5), sensitive_features=S),
        lambda model, rows: model.partial_fit(rows, Y, ["no", "yes"], sensitive_features=S),
    ):
        one, other = (
            learn(CooperativeBandits(epochs=1, random_state=0), rows) for rows in (ONCE, backwards())
        )
        np.testing.assert_array_equal(said(one, ONCE), said(other, ONCE))


def test_a_matrix_without_duplicates_is_not_copied():
    assert without_duplicates(ONCE) is ONCE
    assert without_duplicates(X) is X
