"""Models from a GPU equal the NumPy definition's on the same random numbers, whatever they are made of."""

import itertools

import numpy as np
import pytest

from devices import needs_device
from evenhand import CooperativeBandits, GradientBandit, TrainingDivergedError, fit_many
from evenhand.bandits.cuda import running, waves
from evenhand.bandits.cuda.spec import MOMENTS, NOWHERE, POLICIES
from evenhand.rewards import KL, Correctness, EqualizedOdds, Likelihood, LogRatio, Parity
from gpu_runs import (
    JUDGED,
    OPTIMISERS,
    PULLS,
    SHAPES,
    TERMS,
    assert_alike_in_one_block,
    assert_counted,
    assert_equal_policies_stay_equal,
    assert_people_are_counted_past_single_precision,
    assert_same,
    large_run,
    run_of,
    run_of_shape,
    run_that_starts_alike,
)

pytestmark = needs_device


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("mutual", [True, False], ids=["mutual", "acting"])
@pytest.mark.parametrize("expected", [True, False], ids=["expected", "sampled"])
@pytest.mark.parametrize("reward", TERMS)
def test_policies_equal_the_definition(reward, expected, mutual, optimiser):
    assert_same(run_of(reward, expected=expected, mutual=mutual, **OPTIMISERS[optimiser]))


@pytest.mark.parametrize("n_hidden", [20, 40])
@pytest.mark.parametrize("optimiser", ["adam", "adam one by one", "joint"])
@pytest.mark.parametrize("expected", [True, False], ids=["expected", "sampled"])
@pytest.mark.parametrize("reward", PULLS)
def test_policies_that_start_alike_equal_the_definition(reward, expected, optimiser, n_hidden):
    assert_same(run_that_starts_alike(reward, expected, optimiser, n_hidden))


@pytest.mark.parametrize("n_groups", [2, 3, 4])
@pytest.mark.parametrize("n_hidden", [20, 33, 36, 40])
def test_equal_policies_that_learn_the_same_stay_equal(n_hidden, n_groups):
    assert_equal_policies_stay_equal(n_hidden=n_hidden, n_groups=n_groups)


def test_people_are_counted_past_what_single_precision_holds():
    assert_people_are_counted_past_single_precision()


@pytest.mark.parametrize("optimiser", ["sgd", "joint"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_any_shape_equals_the_definition(shape, optimiser):
    assert_same(run_of_shape(shape, optimiser))


@pytest.mark.parametrize(("schedule", "order"), list(itertools.product(range(4), range(3))))
def test_schedules_and_orders_equal_the_definition(schedule, order):
    assert_same(run_of("correctness + log_ratio + parity", schedule=schedule, order=order, expected=False))


@pytest.mark.parametrize(
    "reward",
    [
        *(Correctness() + KL(divergence=kind) for kind in ("jensen_shannon", "total_variation", "hellinger")),
        Correctness(gains=[[1, 0], [-5, 1]]) + LogRatio(0.3),
        Likelihood(clip=3) + Parity(bound=0.05, measure="probabilities", averaging=0.05),
        Likelihood() + Parity(threshold=0.3) + EqualizedOdds(averaging=0.05),
    ],
    ids=str,
)
def test_parameters_of_terms_equal_the_definition(reward):
    assert_same(run_of(reward, expected=False))
    assert_same(run_of(reward, weight_decay=0.5, adam=True, batch_size=5))


@pytest.mark.parametrize("optimiser", ["sgd", "batches", "adam", "joint"])
@pytest.mark.parametrize("placed", [NOWHERE, POLICIES, MOMENTS])
def test_where_weights_lie_changes_nothing(placed, optimiser, monkeypatch):
    def trained():
        run = run_of("likelihood + log_ratio + parity", **OPTIMISERS[optimiser])
        running.train_all([run])
        return run.training.policies.W1

    usual, make = trained(), waves.spec_of
    monkeypatch.setattr(waves, "spec_of", lambda *given, **how: make(*given, **how)._replace(PLACED=placed))
    np.testing.assert_allclose(trained(), usual, atol=1e-6)


@pytest.mark.parametrize("shape", [{"filled": 0.12}, {"dense": True}], ids=str)
def test_a_model_that_has_a_multiprocessor_to_itself_equals_the_definition(shape):
    assert_same(large_run(**shape))


def test_models_that_share_a_block_are_as_if_alone(monkeypatch):
    assert_alike_in_one_block(monkeypatch, n_models=9)


def test_launches_do_not_change_the_result(monkeypatch):
    def trained():
        runs = [
            run_of("likelihood + log_ratio + parity", seed=np.uint64(at), **OPTIMISERS["joint"])
            for at in range(3)
        ]
        running.train_all(runs)
        return [run.training for run in runs]

    whole = trained()
    monkeypatch.setattr(running, "STEPS_A_LAUNCH", 77)
    for one, other in zip(whole, trained(), strict=True):
        np.testing.assert_allclose(one.policies.W1, other.policies.W1, atol=1e-6)
        np.testing.assert_allclose(one.history["reward"], other.history["reward"], rtol=1e-5)
    assert np.abs(whole[0].policies.W1 - whole[1].policies.W1).max() > 1e-3


def people(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    s = rng.choice(["f", "m"], n)
    X = rng.normal(size=(n, 5)) * [1, 10, 1, 1, 0.1]
    return X, np.where(X[:, 0] + 0.5 * (s == "m") + rng.normal(size=n) / 2 > 0, "yes", "no"), s


GRID = [
    {"divergence_weight": [0, 1, 20], "hidden": [5, 20], "random_state": [0, 1]},
    {
        "reward": ["likelihood + log_ratio + parity"],
        "learning_rate": [0.01],
        "class_weight": [None, "balanced"],
    },
    {"standardize": [False], "estimator": ["sampled"], "optimizer": ["sgd"], "batch_size": [1]},
]


def test_fit_many_gives_the_models_of_the_cpu():
    X, y, s = people()
    plain = CooperativeBandits(steps=3000, random_state=7)
    here, there = (
        fit_many(plain, GRID, X, y, sensitive_features=s, engine=engine) for engine in ("cpu", "cuda")
    )
    for mine, theirs in zip(here, there, strict=True):
        assert theirs.get_params() == mine.get_params()
        apart = np.abs(mine.probabilities_by_group(X) - theirs.probabilities_by_group(X)).max()
        print(f"{apart:.1e}")
        assert apart < 2e-3
        assert (mine.n_steps_, theirs.engine_) == (theirs.n_steps_, "cuda")
        np.testing.assert_allclose(theirs.history_["mean_reward"], mine.history_["mean_reward"], atol=1e-2)
        theirs.set_params(class_weight=None)  # one call can't tell how frequent labels are in all
        theirs.partial_fit(X[:50], y[:50], sensitive_features=s[:50])  # goes on, on the CPU


def test_long_runs_agree_statistically():
    X, y, s = people(4000)
    grid = {"random_state": list(range(12))}
    plain = CooperativeBandits(5.0, estimator="sampled", reward="correctness + log_ratio", steps=200_000)
    scores = [
        [model.score(X, y, sensitive_features=s) for model in fit_many(plain, grid, X, y, sensitive_features=s, engine=engine)]
        for engine in ("cpu", "cuda")
    ]  # fmt: skip
    print(np.mean(scores, 1), np.std(scores, 1))
    assert abs(np.mean(scores[0]) - np.mean(scores[1])) < 3 * np.std(scores[0]) / np.sqrt(6) + 1e-3


def test_a_bandit_without_groups_and_one_that_diverges():
    X, y, _ = people()
    for mine, theirs in zip(
        *(
            fit_many(GradientBandit(steps=2000, random_state=1), {"hidden": [4, 8]}, X, y, engine=e)
            for e in ("cpu", "cuda")
        ),
        strict=True,
    ):
        np.testing.assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), atol=1e-3)
    wild = GradientBandit(learning_rate=1e30)
    with pytest.raises(TrainingDivergedError, match="Training diverged at step"):
        fit_many(wild, {"random_state": [0]}, X, y, engine="cuda")


@pytest.mark.parametrize("shape", JUDGED, ids=str)
def test_decisions_about_others_are_counted(shape):
    assert_counted(shape)
