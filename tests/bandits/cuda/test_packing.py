"""People, policies and rewards as the kernels read them, and what they can't do, said before anything starts."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from evenhand import Correctness, Custom, GradientBandit, Parity, fit_many
from evenhand.bandits.cuda import fleet, packing
from evenhand.bandits.cuda.spec import (
    GRADIENT,
    NOWHERE,
    POLICIES,
    RESERVED,
    check_supported,
    layout,
    spec_of,
)
from evenhand.bandits.kernels.structs import Options, People, Rows
from evenhand.bandits.training import Training
from evenhand.rewards import as_reward, pack_terms
from factories import make_arrays

PLAIN = Options(True, True, True, 0.4, 0.1, 1, 60, 60, 8, 0.0, 0, 0, 5.0, 20, np.uint64(3))
ROOM = 232_448


def spec(
    reward="likelihood + parity",
    *,
    shape=(2, 2),
    n_features=7,
    n_hidden=5,
    columns=3,
    options=PLAIN,
    room=ROOM,
):
    n_groups, n_labels = shape
    training = Training.begin(
        n_features=n_features,
        n_hidden=n_hidden,
        n_actions=n_labels,
        n_groups=n_groups,
        seed=1,
        shared_start=False,
    )
    terms = pack_terms(as_reward(reward), 1.0, n_labels, group_sizes=[9] * n_groups)
    people = People(np.zeros(4, np.int64), np.zeros(4, np.int64))
    check_supported(training.policies, terms)
    made = spec_of(training.policies, people, terms, options, most_columns=columns, room=room)
    return made, training.policies


@pytest.mark.parametrize("shape", [(1, 2), (2, 2), (3, 4)])
@pytest.mark.parametrize("n_hidden", [1, 5, 20, 33, 40, 70])
def test_policies_come_back_as_they_went(shape, n_hidden):
    made, policies = spec("likelihood", shape=shape, n_hidden=n_hidden)
    flat = packing.pack_policies(made, policies)
    assert len(flat) == made.policies(7)
    for part, back in zip(
        policies, packing.unpack_policies(made, flat, policies, np.ones(shape[0])), strict=True
    ):
        np.testing.assert_allclose(back, part, atol=1e-7)


def test_weight_decay_shrinks_what_two_labels_have_in_common():
    made, policies = spec()
    flat = packing.pack_policies(made, policies)
    half = packing.unpack_policies(made, flat, policies, np.array([0.5, 1.0]))
    np.testing.assert_allclose(half.W2[0].mean(0), policies.W2[0].mean(0) / 2, atol=1e-7)
    np.testing.assert_allclose(half.W2[1], policies.W2[1], atol=1e-7)


def test_rows_have_every_column_once_and_are_filled_up():
    rows = Rows(np.float32([1, 2, 3, 4]), np.int32([1, 1, 0, 2]), np.int64([0, 3, 4]), True)
    matrix = packing.canonical(rows, 3)
    np.testing.assert_array_equal(matrix.toarray(), [[3, 3, 0], [0, 0, 4]])
    table = packing.table_of(matrix, packing.most_columns(matrix))
    assert table.pairs.tolist() == [[(0, 3.0), (1, 3.0)], [(2, 4.0), (3, 0.0)]]
    as_they_are = packing.table_of(matrix, 0)
    assert (as_they_are.pairs.tolist(), as_they_are.starts.tolist()) == (
        [(0, 3.0), (1, 3.0), (2, 4.0)],
        [0, 2, 3],
    )
    dense = Rows(np.float32([1, 0, 2, 5]), np.int32([0, 1]), np.int64([0, 2, 4]), False)
    np.testing.assert_array_equal(packing.canonical(dense, 2).toarray(), [[1, 0], [2, 5]])


@pytest.mark.parametrize(
    ("n_hidden", "shared_out"),
    [(5, (1, 4, 16, 0)), (10, (1, 2, 14, 0)), (20, (2, 2, 14, 0)), (40, (1, 1, 13, 8)), (41, (2, 1, 13, 0))],
)
def test_units_and_columns_are_shared_out(n_hidden, shared_out):
    found = layout(2, n_hidden, 13)
    assert (found["U"], found["S"], found["NNZ"], found["TAIL"]) == shared_out
    assert layout(2, n_hidden, 65)["NNZ"] == layout(9, 40, 60)["NNZ"] == 0  # longer than can be kept


def test_policies_beyond_short_addresses_are_read_by_long_ones():
    _, policies = spec("likelihood", n_hidden=20)
    people, terms = (
        People(np.zeros(4, np.int64), np.zeros(4, np.int64)),
        pack_terms(as_reward("likelihood"), 1.0, 2),
    )
    for n_features, columns in ((20_000_000, 14), (30_000_000, 0)):
        wide = policies._replace(W1=np.broadcast_to(np.float32(0), (2, n_features, 20)))
        made = spec_of(wide, people, terms, PLAIN, most_columns=13, room=ROOM)
        assert (made.PLACED, made.NNZ, made.pitch) == (NOWHERE, columns, columns)


def test_models_share_a_block_where_more_of_them_fit_so():
    def side_by_side(options, n_hidden):
        made, _ = spec("correctness + kl", n_features=102, n_hidden=n_hidden, columns=13, options=options)
        return made.MATES, made.BLOCKS, made.shared_bytes(102)

    direct = PLAIN._replace(batch_size=1, adam=False, apart=0.0, weight_decay=0.0)
    mates, blocks, each = side_by_side(direct, 40)
    assert (mates, blocks) == (7, 1)
    assert 7 * each <= ROOM < 7 * (each + RESERVED)
    assert side_by_side(direct, 20)[:2] == (1, 13)
    assert side_by_side(PLAIN, 40)[0] == 1  # warps of a block wait for one another


def test_what_does_not_fit_shared_memory_lies_outside():
    assert [spec(n_features=d)[0].PLACED for d in (100, 5_000, 9_000)] == [GRADIENT, POLICIES, NOWHERE]


def test_a_state_holds_the_running_rates():
    made, policies = spec(Correctness() + Parity(), shape=(3, 4))
    training = Training.of(policies, 0)
    training.make_room(n_rate_terms=1, buffers=False)
    rates = type(training.rates)(*(np.random.default_rng(0).random(part.shape) for part in training.rates))
    found = packing.rates_in(made, packing.first_state(made, rates), rates)
    for part, back in zip(rates, found, strict=True):
        np.testing.assert_array_equal(back, part)


def test_what_a_gpu_can_not_do_is_named():
    with pytest.raises(ValueError, match="Got a reward with the term 'custom' for engine='cuda'"):
        spec(Correctness() + Custom(lambda action, label, group, policies, rates: 0.0))
    with pytest.raises(ValueError, match="Got 33 groups and a bounded rate for engine='cuda'.*at most 32"):
        spec(shape=(33, 2))
    assert spec("likelihood", shape=(33, 2))[0].G == 33
    X, y, _ = make_arrays(50)
    with pytest.raises(ValueError, match="Got LogisticRegression for engine='cuda'"):
        fit_many(LogisticRegression(), {}, X, y, engine="cuda")


def test_without_cupy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    X, y, _ = make_arrays(50)
    with pytest.raises(ImportError, match=r"engine='cuda' needs: pip install 'evenhand\[cuda\]'"):
        fit_many(GradientBandit(), {"random_state": [0]}, X, y, engine="cuda")


def test_a_person_is_one_number():
    people = People(np.array([0, 1, 2]), np.array([1, 0, 3]), weights=np.ones(3), shares=np.full(3, 2.0))
    assert packing.who_of(people).tolist() == [1 << 16, 1, 2 | 3 << 16]
    assert packing.counts_of(people).tolist() == [[1.0, 2.0]] * 3
    assert fleet.Tables().matrix(Rows(np.float32([5]), np.int32([1]), np.int64([0, 1]), True), 2).nnz == 1
    assert sparse.issparse(packing.canonical(Rows(np.float32([5]), np.int32([1]), np.int64([0, 1]), True), 2))
