"""Fits whose people come in pieces: `partial_fit(total=…)`, and many models at once."""

import numpy as np
import pytest

from evenhand import CooperativeBandits, GradientBandit
from evenhand.bandits.pieces import begin, meet
from factories import make_arrays

REWARDS = ("likelihood + log_ratio", "likelihood + log_ratio + parity")


def total_of(s):
    return dict(zip(*np.unique(s, return_counts=True), strict=True))


def in_pieces(model, X, y, s, size, **given):
    total = {name: int(count) for name, count in total_of(s).items()}
    for start in range(0, len(y), size):
        part = slice(start, start + size)
        more = {name: value[part] for name, value in given.items()}
        model.partial_fit(X[part], y[part], ["no", "yes"], sensitive_features=s[part], total=total, **more)
    return model


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one.policies_, other.policies_, strict=True))


@pytest.mark.parametrize("reward", REWARDS)
def test_one_piece_is_a_fit(reward):
    X, y, s = make_arrays(500)
    model = CooperativeBandits(20, reward=reward, epochs=1, standardize=False, random_state=0)
    whole = model.fit(X, y, sensitive_features=s)
    piece = in_pieces(CooperativeBandits(**model.get_params()), X, y, s, 500)
    assert same(whole, piece)
    assert whole.history_["mean_reward"].tolist() == piece.history_["mean_reward"].tolist()


def test_one_piece_with_weights_is_a_fit():
    X, y, s = make_arrays(400)
    weights = np.arange(400) % 3.0
    model = CooperativeBandits(20, epochs=1, standardize=False, random_state=0)
    whole = model.fit(X, y, weights, sensitive_features=s)
    share = weights / weights[weights > 0].mean()
    kept = s[weights > 0]
    total = {name: int(count) for name, count in total_of(kept).items()}
    piece = CooperativeBandits(**model.get_params()).partial_fit(
        X, y, ["no", "yes"], sensitive_features=s, sample_weight=share, total=total
    )
    assert same(whole, piece)


@pytest.mark.parametrize("reward", REWARDS)
def test_costs_of_mean_1_in_one_piece_are_those_of_a_fit(reward):
    X, y, s = make_arrays(400)
    costs = dict(
        zip(("no", "yes"), len(y) / (2 * np.array([np.sum(y == "no"), np.sum(y == "yes")])), strict=True)
    )
    options = {"reward": reward, "epochs": 1, "standardize": False, "random_state": 0}
    whole = CooperativeBandits(20, class_weight="balanced", **options).fit(X, y, sensitive_features=s)
    piece = in_pieces(CooperativeBandits(20, class_weight=costs, **options), X, y, s, 400)
    assert same(whole, piece)
    # Nobody stands for more people: the rates are those without costs.
    rates = in_pieces(CooperativeBandits(20, **options), X, y, s, 400)._training.rates
    np.testing.assert_array_equal(piece._training.rates.counts, rates.counts)
    assert not same(
        piece, in_pieces(CooperativeBandits(20, class_weight={"yes": 3}, **options), X, y, s, 400)
    )


def test_costs_multiply_the_weights_of_pieces():
    X, y, s = make_arrays(400)
    weights, cost = 1.0 + np.arange(400) % 3, np.where(y == "yes", 3.0, 0.5)
    options = {"epochs": 1, "random_state": 0}
    by_label = CooperativeBandits(class_weight={"yes": 3, "no": 0.5}, **options)
    one = in_pieces(by_label, X, y, s, 100, sample_weight=weights)
    other = in_pieces(CooperativeBandits(**options), X, y, s, 100, sample_weight=weights * cost)
    assert same(one, other)
    bandits = [GradientBandit(class_weight=costs, **options) for costs in ({"yes": 3, "no": 0.5}, None)]
    alone, plain = (bandit.partial_fit(X, y, ["no", "yes"]) for bandit in bandits)
    assert not same(alone, plain)


@pytest.mark.parametrize("learner", [CooperativeBandits, GradientBandit])
@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ("balanced", "Got class_weight='balanced' for partial_fit.* expected a dict of costs"),
        ("even", "Got class_weight='even', but expected None, 'balanced' or a dict"),
        ({"yess": 2}, r"Got 'yess' in class_weight, but .* Did you mean 'yes'"),
        ({"yes": 0, "no": 0}, "so nobody counts"),
    ],
)
def test_wrong_costs_are_an_error_in_pieces_too(learner, costs, message):
    X, y, s = make_arrays(100)
    given = {"sensitive_features": s} if learner is CooperativeBandits else {}
    with pytest.raises(ValueError, match=message):
        learner(class_weight=costs).partial_fit(X, y, ["no", "yes"], **given)


def test_pieces_learn_what_a_fit_learns_and_end_where_it_ends():
    X, y, s = make_arrays(3000)
    model = CooperativeBandits(20, epochs=1.5, standardize=False, random_state=0)
    whole = CooperativeBandits(**model.get_params()).fit(X, y, sensitive_features=s)
    in_pieces(model, X, y, s, 450)
    assert model.n_steps_ == 3000
    total = {name: int(count) for name, count in total_of(s).items()}
    model.partial_fit(X, y, sensitive_features=s, total=total)
    assert model.n_steps_ == 4500
    assert abs(model.score(X, y, sensitive_features=s) - whole.score(X, y, sensitive_features=s)) < 0.02
    with pytest.raises(ValueError, match="the fit has taken all 4,500 steps"):
        model.partial_fit(X, y, sensitive_features=s, total=total)


def test_a_group_without_people_in_total_is_an_error():
    X, y, s = make_arrays(100)
    with pytest.raises(ValueError, match=r"Got total\['m'\]=0, but expected a whole number of at least 1"):
        CooperativeBandits().partial_fit(X, y, ["no", "yes"], sensitive_features=s, total={"f": 50})


def test_models_that_meet_the_same_pieces_learn_as_each_alone():
    X, y, s = make_arrays(900)
    X = X.astype(np.float32)
    options = {"epochs": 1, "random_state": 0}
    grid = [
        CooperativeBandits(weight, class_weight=costs, **options)
        for weight, costs in ((0, None), (20, {"yes": 3}))
    ]
    alone = [in_pieces(CooperativeBandits(**model.get_params()), X, y, s, 300) for model in grid]
    begin(grid, X.shape[1], np.array(["no", "yes"]), np.array(["f", "m"], dtype=object))
    labels, groups = (y == "yes").astype(np.int64), (s == "m").astype(np.int64)
    for start in range(0, 900, 300):
        part = slice(start, start + 300)
        meet(grid, X[part], labels[part], groups[part], np.bincount(groups), n_jobs=2)
    assert all(same(one, other) for one, other in zip(grid, alone, strict=True))
