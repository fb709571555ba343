"""Columns of any scale are learned from, and deciding knows nothing of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from evenhand import CooperativeBandits, CooperativeEnsemble, GradientBandit
from evenhand.bandits.scaling import Scaling
from evenhand.network import Network, forward
from factories import make_arrays

UNITS = np.array([15_000.0, 10.0, 1e-4])  # incomes, ages, shares
ZEROS = np.array([45_000.0, 40.0, 0.01])


@pytest.fixture(scope="module")
def people():
    X, y, s = make_arrays(2000, 3, seed=1)
    return X, X * UNITS + ZEROS, y, s


def test_unscaled_columns_are_learned_as_well_as_by_logistic_regression(people):
    X, raw, y, s = people
    best = LogisticRegression().fit(X, y).score(X, y)
    for model in (CooperativeBandits(random_state=0), CooperativeEnsemble(random_state=0)):
        assert model.fit(raw, y, sensitive_features=s).score(raw, y, sensitive_features=s) > best - 0.03
    left = CooperativeBandits(standardize=False, random_state=0)
    with pytest.warns(match="scale them"):
        left.fit(raw, y, sensitive_features=s)
    assert left.score(raw, y, sensitive_features=s) < best - 0.1


def test_a_model_of_raw_rows_is_that_of_scaled_rows_with_the_scale_folded_in(people):
    _, raw, y, s = people
    raw = np.c_[raw, s == s[0]]  # zeros and ones stay as they are
    scaled = np.c_[StandardScaler().fit_transform(raw[:, :3]), raw[:, 3]]
    ours = CooperativeBandits(steps=5000, random_state=0).fit(raw, y, sensitive_features=s)
    theirs = CooperativeBandits(standardize=False, steps=5000, random_state=0).fit(
        scaled, y, sensitive_features=s
    )
    np.testing.assert_allclose(
        ours.probabilities_by_group(raw), theirs.probabilities_by_group(scaled), atol=2e-3
    )


@pytest.mark.parametrize("sparse_rows", [False, True])
def test_what_was_folded_in_can_be_taken_out_again(sparse_rows):
    rng = np.random.default_rng(0)
    rows = np.float32(rng.normal(size=(50, 3)) * UNITS + ZEROS)
    rows = np.float32(np.c_[rows, np.arange(50) % 2, np.full(50, 7)])
    rows = sparse.csr_array(rows) if sparse_rows else rows
    scaling = Scaling.of(rows)
    policies = Network(
        *(np.float32(rng.normal(size=size)) for size in [(2, 5, 4), (2, 4), (2, 3, 4), (2, 3)])
    )
    again = scaling.unfolded(scaling.folded(policies))
    kept = np.isfinite(scaling.deviation)
    assert kept.sum() == (5 if sparse_rows else 4)
    np.testing.assert_allclose(again.W1[:, kept], policies.W1[:, kept], rtol=1e-5)
    np.testing.assert_allclose(again.b1, policies.b1, atol=1e-4)
    assert again.W1.dtype == again.b1.dtype == np.float32
    assert not again.W1[:, ~kept].any()


def test_a_callback_sees_policies_for_raw_rows_and_changes_nothing(people):
    _, raw, y, s = people
    scores = []

    def look(step, model):
        scores.append(model.score(raw, y, sensitive_features=s))

    watched, alone = (CooperativeBandits(steps=5000, random_state=0) for _ in range(2))
    watched.fit(raw, y, sensitive_features=s, callback=look)
    alone.fit(raw, y, sensitive_features=s)
    assert scores[-1] == watched.score(raw, y, sensitive_features=s) > 0.8
    for ours, theirs in zip(watched.policies_, alone.policies_, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_learning_goes_on_from_folded_policies(people):
    _, raw, y, s = people
    model = CooperativeBandits(steps=5000, learning_rate=1e-9, random_state=0)
    before = model.fit(raw, y, sensitive_features=s).probabilities_by_group(raw)
    model.partial_fit(raw[:100], y[:100], sensitive_features=s[:100])
    assert model.n_steps_ == 5100
    np.testing.assert_allclose(model.probabilities_by_group(raw), before, atol=1e-2)


def test_sparse_columns_are_scaled_but_not_centred():
    rng = np.random.default_rng(0)
    counts = sparse.random_array(
        (2000, 30), density=0.1, rng=rng, data_sampler=lambda size: rng.uniform(1e5, 3e5, size)
    )
    y = np.asarray(counts.sum(1)).ravel() > 6e5
    X = sparse.csr_array(counts)
    assert Scaling.of(X.astype(np.float32)).centre.tolist() == [0.0] * 30
    model = GradientBandit(random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    flags = sparse.csr_array((X.toarray() > 0).astype(np.float32))
    np.testing.assert_array_equal(Scaling.of(flags).deviation, 1.0)


def test_a_constant_says_nothing_whatever_its_size():
    X, y, _ = make_arrays(1000, 2)
    wide = np.c_[X, np.full(1000, 3e30)]
    model = GradientBandit(random_state=0).fit(wide, y)
    other = wide.copy()
    other[:, 2] = 5.0
    np.testing.assert_array_equal(model.predict_proba(wide), model.predict_proba(other))
    assert model.score(wide, y) > 0.8


@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=2, max_size=20),
    st.lists(st.floats(-3, 3, width=32), min_size=3, max_size=3),
)
def test_folding_is_scaling(column, weights):
    X = np.c_[np.float32(column), np.arange(len(column), dtype=np.float32)]
    policies = Network(
        np.array([weights[:2]]).reshape(1, 2, 1),
        np.array([weights[2:]]),
        np.ones((1, 1, 1)),
        np.zeros((1, 1)),
    )
    scaling = Scaling.of(X)
    one = Network(*(part[0] for part in scaling.folded(policies)))
    _, folded = forward(one, X.astype(np.float64))
    _, scaled = forward(Network(*(part[0] for part in policies)), scaling.applied(X))
    np.testing.assert_allclose(folded, scaled, atol=1e-5 * (1 + np.abs(X / scaling.deviation).max()))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_a_column_of_zeros_says_nothing_when_it_is_filled(make):
    X, y, s = make_arrays(400, 3)
    rows = np.float32(np.c_[X, np.zeros(400)])
    filled = np.float32(np.c_[X, np.ones(400)])
    assert np.isinf(Scaling.of(make(rows)).deviation[3])
    model = CooperativeBandits(epochs=2, random_state=0).fit(make(rows), y, sensitive_features=s)
    wanted = model.probabilities_by_group(make(rows))
    np.testing.assert_array_equal(model.probabilities_by_group(make(filled)), wanted)
    ones = make(filled)
    assert Scaling.of(ones).deviation[3] == 1.0


@pytest.mark.parametrize("standardize", [False, True])
def test_policies_that_a_callback_keeps_stay_as_they_were(standardize):
    X, y, s = make_arrays(300)
    kept, then = [], []

    def look(step, model):
        kept.append(model.policies_)
        then.append([part.copy() for part in model.policies_])

    model = CooperativeBandits(steps=600, checkpoint_every=200, standardize=standardize, random_state=0)
    model.fit(X, y, sensitive_features=s, callback=look)
    assert len(kept) == 3
    for policies, before in zip(kept, then, strict=True):
        for part, was in zip(policies, before, strict=True):
            np.testing.assert_array_equal(part, was)
    assert not np.array_equal(kept[0].W2, kept[2].W2)
