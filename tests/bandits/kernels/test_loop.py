"""The compiled loop equals the NumPy reference on the same random numbers, term by term."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from evenhand.bandits import kernels
from evenhand.bandits import oracle as reference
from evenhand.bandits.contexts import as_rows
from evenhand.bandits.kernels.structs import Options, People
from evenhand.bandits.training import Training
from evenhand.rewards import (
    KL,
    Correctness,
    Custom,
    EqualizedOdds,
    LogRatio,
    Parity,
    as_reward,
    pack_terms,
)

TERMS = [
    "correctness",
    "likelihood",
    "correctness + kl",
    "correctness + log_ratio",
    "correctness + agreement",
    "correctness + jensen_shannon",
    "correctness + parity",
    "correctness + equal_opportunity",
    "likelihood + equalized_odds + log_ratio",
    "correctness + log_ratio + agreement + kl + parity",
]
EMPTY, NOBODY = np.zeros(0), np.zeros(0, np.int64)
N_FEATURES, N_PEOPLE = 7, 40


def favours_second(action, label, group, policies, rates):
    return 0.3 * action * (1 - policies[group, action]) + 0.1 * rates[group, -1, action]


def favours_label(action, label, group, policies, rates):
    return 0.3 * (action == label) + 0.1 * action


def options(**changes):
    plain = {
        "expected": True, "mutual": True, "adam": False, "apart": 0.0, "learning_rate": 0.1, "schedule": 1, "horizon": 60,
        "end": 60, "batch_size": 1, "weight_decay": 0.0, "order": 0, "origin": 0, "importance_clip": 5.0, "interval": 20,
        "seed": np.uint64(3),
    }  # fmt: skip
    return Options(**{**plain, **changes})


def world(n_groups=2, n_labels=2, *, is_sparse=True, logged=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_PEOPLE, N_FEATURES)) * (rng.random((N_PEOPLE, N_FEATURES)) < 0.4)
    rows = as_rows(sparse.csr_array(X.astype(np.float32)) if is_sparse else X.astype(np.float32) + 1)
    assert rows.sparse == is_sparse
    groups = rng.integers(0, n_groups, N_PEOPLE)
    if logged:
        people = People(
            groups, np.full(N_PEOPLE, -1), rng.integers(0, n_labels, N_PEOPLE), rng.normal(size=N_PEOPLE),
            rng.uniform(0.1, 1, N_PEOPLE),
        )  # fmt: skip
    else:
        people = People(groups, rng.integers(0, n_labels, N_PEOPLE), NOBODY, EMPTY, EMPTY)
    return rows._replace(values=rows.values.astype(np.float64)), people


def both(reward, rows, people, opts, *, n_groups=2, n_labels=2, weight=1.5):
    """Train compiled and by the reference from the same start; return both, and the summed rewards."""
    reward = as_reward(reward)
    # One group is rare: its rates forget faster, and count for less where two others are large.
    terms = pack_terms(reward, weight, n_labels, group_sizes=[5, *[50] * (n_groups - 1)])
    compiled = Training.begin(
        n_features=N_FEATURES, n_hidden=5, n_actions=n_labels, n_groups=n_groups,
        seed=1, shared_start=False, dtype=np.float64,
    )  # fmt: skip
    compiled.make_room(n_rate_terms=len(terms.rates.bound), buffers=True)
    plain = copy.deepcopy(compiled)
    history = np.zeros((100, 3))
    done = kernels.train(
        compiled.policies, compiled.moments, rows, people, terms, compiled.rates, opts,
        0, opts.end, history, people.shares if len(people.actions) and len(people.shares) else None,
    )  # fmt: skip
    assert done == opts.end
    total = reference.train(
        plain.policies, plain.moments, rows, people, terms, plain.rates, opts, 0, opts.end
    )
    return compiled, plain, history[:, 0].sum(), total


def assert_same(reward, rows, people, opts, **shape):
    compiled, plain, got, want = both(reward, rows, people, opts, **shape)
    assert got == pytest.approx(want, rel=1e-9)
    for mine, theirs in zip(compiled.policies, plain.policies, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
    for mine, theirs in zip(compiled.rates, plain.rates, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("expected", [True, False], ids=["expected", "sampled"])
@pytest.mark.parametrize(("n_groups", "n_labels"), [(2, 2), (3, 4)])
def test_loop_equals_reference_on_a_log_with_some_labels(expected, n_groups, n_labels):
    rows, people = world(n_groups, n_labels, logged=True)
    rng = np.random.default_rng(5)
    labels = np.where(people.actions == 1, rng.integers(0, n_labels, N_PEOPLE), -1)
    people = people._replace(labels=labels, shares=np.where(labels >= 0, 1 / people.propensities, 1.0))
    reward = LogRatio() + EqualizedOdds(averaging=0.2) + Parity() + Custom(favours_label)
    assert_same(reward, rows, people, options(expected=expected), n_groups=n_groups, n_labels=n_labels)


@pytest.mark.parametrize(
    "reward",
    [*TERMS, Correctness() + Custom(favours_second), Correctness() + Parity(averaging=0.2)],
    ids=[*TERMS, "custom", "short memory"],
)
@pytest.mark.parametrize("expected", [True, False], ids=["expected", "sampled"])
@pytest.mark.parametrize("mutual", [True, False], ids=["mutual", "acting"])
@pytest.mark.parametrize("is_sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize(("n_groups", "n_labels"), [(2, 2), (4, 5)])
def test_loop_equals_reference(reward, expected, mutual, is_sparse, n_groups, n_labels):
    rows, people = world(n_groups, n_labels, is_sparse=is_sparse)
    opts = options(expected=expected, mutual=mutual)
    assert_same(reward, rows, people, opts, n_groups=n_groups, n_labels=n_labels)


@pytest.mark.parametrize("expected", [True, False], ids=["expected", "sampled"])
@pytest.mark.parametrize("batch_size", [1, 7])
@pytest.mark.parametrize(("n_groups", "n_labels"), [(2, 2), (4, 5)])
def test_weights_equal_reference(n_groups, n_labels, batch_size, expected):
    rows, people = world(n_groups, n_labels)
    weights, shares = np.random.default_rng(5).uniform(0.05, 3, (2, len(people.labels)))
    reward = "correctness + log_ratio + agreement + parity"
    people = people._replace(weights=weights, shares=shares)
    opts = options(expected=expected, batch_size=batch_size)
    assert_same(reward, rows, people, opts, n_groups=n_groups, n_labels=n_labels)


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.9])
def test_rates_are_bounded_at_the_threshold_of_decisions(threshold):
    rows, people = world()
    reward = Correctness() + Parity(threshold=threshold, averaging=0.2)
    assert_same(reward, rows, people, options())


@pytest.mark.parametrize("adam", [True, False])
@pytest.mark.parametrize("batch_size", [1, 7])
@pytest.mark.parametrize("schedule", range(4))
@pytest.mark.parametrize("order", range(3))
def test_optimisers_schedules_and_orders_equal_reference(adam, batch_size, schedule, order):
    rows, people = world()
    opts = options(adam=adam, batch_size=batch_size, schedule=schedule, order=order, learning_rate=0.03)
    assert_same("correctness + log_ratio", rows, people, opts)


@pytest.mark.parametrize(("n_groups", "n_labels"), [(2, 2), (4, 5)])
@pytest.mark.parametrize("batch_size", [1, 7])
@pytest.mark.parametrize("expected", [True, False], ids=["expected", "sampled"])
def test_joint_moves_equal_reference(n_groups, n_labels, batch_size, expected):
    rows, people = world(n_groups, n_labels)
    opts = options(
        adam=True, apart=0.4, batch_size=batch_size, expected=expected, learning_rate=0.03, weight_decay=0.1
    )
    reward = "likelihood + log_ratio + agreement + parity"
    assert_same(reward, rows, people, opts, n_groups=n_groups, n_labels=n_labels)


@pytest.mark.parametrize("adam", [True, False])
@pytest.mark.parametrize("batch_size", [1, 5])
def test_weight_decay_equals_reference(adam, batch_size):
    rows, people = world()
    opts = options(adam=adam, batch_size=batch_size, weight_decay=0.5, learning_rate=0.03)
    assert_same("correctness + log_ratio", rows, people, opts)
    decayed, _, _, _ = both("correctness", rows, people, opts)
    free, _, _, _ = both("correctness", rows, people, opts._replace(weight_decay=0.0))
    assert np.abs(decayed.policies.W1).sum() < np.abs(free.policies.W1).sum()


@pytest.mark.parametrize("expected", [True, False])
@pytest.mark.parametrize("reward", ["correctness", "correctness + log_ratio + agreement + parity + kl"])
def test_logged_feedback_equals_reference(expected, reward):
    rows, people = world(3, 4, logged=True)
    assert_same(reward, rows, people, options(expected=expected), n_groups=3, n_labels=4)


@pytest.mark.parametrize("kind", ["jensen_shannon", "total_variation", "hellinger"])
def test_other_divergences_equal_reference(kind):
    rows, people = world(3, 3)
    reward = Correctness() + KL(divergence=kind)
    assert_same(reward, rows, people, options(expected=False), n_groups=3, n_labels=3)


@pytest.mark.parametrize("measure", ["decisions", "probabilities"])
def test_a_wide_bound_prices_nothing_and_a_tight_one_does(measure):
    rows, people = world()
    free, _, _, _ = both("correctness", rows, people, options())
    wide, _, _, _ = both(Correctness() + Parity(bound=1, measure=measure), rows, people, options())
    tight, _, _, _ = both(Correctness() + Parity(bound=0, measure=measure), rows, people, options())
    np.testing.assert_array_equal(free.policies.W1, wide.policies.W1)
    assert np.abs(free.policies.W1 - tight.policies.W1).max() > 1e-4


def test_published_divergence_changes_nothing_in_expectation():
    """E[∇log π · KL] = 0: the heart of the project. At λ = 100 no parameter moves beyond rounding."""
    rows, people = world()
    without, _, _, _ = both("correctness", rows, people, options(mutual=False))
    with_kl, _, _, _ = both("correctness + kl", rows, people, options(mutual=False), weight=100)
    for mine, theirs in zip(without.policies, with_kl.policies, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-11)


def train_in_chunks(chunk):
    rows, people = world()
    terms = pack_terms(as_reward("correctness + log_ratio + parity"), 1.0, 2, group_sizes=[1, 1])
    training = Training.begin(
        n_features=N_FEATURES, n_hidden=5, n_actions=2, n_groups=2, seed=1, shared_start=False, dtype=np.float64,
    )  # fmt: skip
    training.make_room(n_rate_terms=1, buffers=True)
    for first in range(0, 60, chunk):
        kernels.train(
            training.policies, training.moments, rows, people, terms, training.rates,
            options(batch_size=8, adam=True), first, min(chunk, 60 - first), np.zeros((9, 3)), None,
        )  # fmt: skip
    return training.policies.W1


def test_chunks_do_not_change_the_result():
    whole = train_in_chunks(60)
    np.testing.assert_array_equal(whole, train_in_chunks(7))


def test_threads_do_not_change_the_result():
    alone = train_in_chunks(60)
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(train_in_chunks, [60] * 8):
            np.testing.assert_array_equal(alone, result)
