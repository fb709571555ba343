"""Models from a GPU equal the NumPy definition's on the same random numbers, whatever they are made of."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from devices import needs_device
from evenhand import CooperativeBandits, GradientBandit, TrainingDivergedError, fit_many
from evenhand.bandits import oracle
from evenhand.bandits.contexts import as_rows
from evenhand.bandits.cuda import fleet
from evenhand.bandits.cuda.spec import MOMENTS, NOWHERE, POLICIES
from evenhand.bandits.kernels.structs import Options, People
from evenhand.bandits.training import Run, Training
from evenhand.network import Network
from evenhand.rewards import (
    KL,
    Correctness,
    EqualizedOdds,
    Likelihood,
    LogRatio,
    Parity,
    as_reward,
    pack_terms,
)

pytestmark = needs_device
TERMS = [
    "correctness", "likelihood", "correctness + kl", "correctness + log_ratio", "correctness + agreement",
    "likelihood + jensen_shannon", "correctness + parity", "likelihood + equal_opportunity",
    "likelihood + log_ratio + equalized_odds", "correctness + log_ratio + agreement + jensen_shannon + kl + parity",
]  # fmt: skip
OPTIMISERS = {
    "sgd": {}, "batches": {"batch_size": 7, "learning_rate": 0.1}, "adam": {"adam": True, "batch_size": 4},
    "adam one by one": {"adam": True, "learning_rate": 0.001},
    "joint": {"adam": True, "apart": 0.4, "batch_size": 8},
}  # fmt: skip
STEPS, CLOSE = 1000, 1e-4


def options(**changes):
    plain = {
        "expected": True, "mutual": True, "adam": False, "apart": 0.0, "learning_rate": 0.02, "schedule": 1,
        "horizon": STEPS, "end": STEPS, "batch_size": 1, "weight_decay": 0.0, "order": 0, "origin": 0,
        "importance_clip": 5.0, "interval": 300, "seed": np.uint64(3),
    }  # fmt: skip
    if changes.get("adam"):
        plain["learning_rate"] = 0.005
    return Options(**{**plain, **changes})


def run_of(
    reward, *, n_groups=2, n_labels=2, n_hidden=20, n_features=30, filled=0.3, dense=False, weighted=False, weight=1.5,
    n_people=400, **changes
):  # fmt: skip
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_people, n_features)) * (rng.random((n_people, n_features)) < filled)
    rows = as_rows(X.astype(np.float32) + 1 if dense else sparse.csr_array(X.astype(np.float32)))
    people = People(rng.integers(0, n_groups, n_people), rng.integers(0, n_labels, n_people))
    if weighted:
        weights, shares = rng.uniform(0.05, 3, (2, n_people))
        people = people._replace(weights=weights, shares=shares)
    terms = pack_terms(as_reward(reward), weight, n_labels, STEPS, group_sizes=[5, *[50] * (n_groups - 1)])
    training = Training.begin(
        n_features=n_features,
        n_hidden=n_hidden,
        n_actions=n_labels,
        n_groups=n_groups,
        seed=1,
        shared_start=False,
    )
    return Run(training, rows, people, terms, options(**changes), "")


def by_definition(run):
    """Train a copy of the run in double precision with the NumPy definition."""
    start = Network(*(part.astype(np.float64) for part in run.training.policies))
    plain = Training.of(start, run.training.seed)
    plain.make_room(n_rate_terms=len(run.terms.rates.bound), buffers=True)
    total = oracle.train(
        plain.policies,
        plain.moments,
        run.rows,
        run.people,
        run.terms,
        plain.rates,
        run.options,
        0,
        run.options.end,
    )
    return plain, total


def assert_same(run):
    plain, total = by_definition(run)
    moved = max(np.abs(a - b).max() for a, b in zip(plain.policies, run.training.policies, strict=True))
    fleet.train_all([run])
    apart = max(np.abs(a - b).max() for a, b in zip(plain.policies, run.training.policies, strict=True))
    rates = max(
        (np.abs(a - b) / np.maximum(b, 1)).max(initial=0)
        for a, b in zip(run.training.rates, plain.rates, strict=True)
    )
    print(f"apart {apart:.1e}, rates {rates:.1e}, moved {moved:.2f}")
    assert apart < CLOSE < 0.01 < moved
    assert rates < CLOSE
    assert run.training.history["reward"][-1] == pytest.approx(total, rel=1e-4, abs=1e-2)
    assert run.training.history["step"] == [300, 600, 900, 1000]


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("mutual", [True, False], ids=["mutual", "acting"])
@pytest.mark.parametrize("expected", [True, False], ids=["expected", "sampled"])
@pytest.mark.parametrize("reward", TERMS)
def test_policies_equal_the_definition(reward, expected, mutual, optimiser):
    assert_same(run_of(reward, expected=expected, mutual=mutual, **OPTIMISERS[optimiser]))


SHAPES = [
    {"n_groups": 1}, {"n_groups": 3, "n_labels": 3}, {"n_groups": 4, "n_labels": 5, "n_hidden": 7},
    {"n_groups": 5, "n_labels": 6, "n_hidden": 40}, {"n_hidden": 5}, {"n_hidden": 10}, {"n_hidden": 40}, {"n_hidden": 70},
    {"dense": True, "n_features": 9}, {"dense": True, "n_features": 90}, {"filled": 0.9, "n_features": 200},
    {"weighted": True}, {"n_labels": 7, "n_hidden": 3}, {"n_groups": 3, "n_hidden": 35}, {"n_groups": 5, "n_hidden": 33},
]  # fmt: skip


@pytest.mark.parametrize("optimiser", ["sgd", "joint"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_any_shape_equals_the_definition(shape, optimiser):
    changes = OPTIMISERS[optimiser] if shape.get("n_groups") != 1 else {"adam": optimiser == "joint"}
    reward = "likelihood + log_ratio + parity" if shape.get("n_groups") != 1 else "likelihood"
    assert_same(run_of(reward, **{"learning_rate": 0.005, **changes, **shape}))


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
        fleet.train_all([run])
        return run.training.policies.W1

    usual, make = trained(), fleet.spec_of
    monkeypatch.setattr(fleet, "spec_of", lambda *given, **how: make(*given, **how)._replace(PLACED=placed))
    np.testing.assert_allclose(trained(), usual, atol=1e-6)


@pytest.mark.parametrize("shape", [{"filled": 0.12}, {"dense": True}], ids=str)
def test_a_model_that_has_a_multiprocessor_to_itself_equals_the_definition(shape):
    run = run_of("correctness + kl", n_features=140, n_hidden=40, **OPTIMISERS["adam one by one"], **shape)
    (squad,) = fleet.fleets_of([run])
    assert (squad.spec.WARPS, squad.spec.PLACED) == (8, MOMENTS)
    assert_same(run)


def test_models_that_share_a_block_are_as_if_alone(monkeypatch):
    def trained(seeds):
        shape = {"n_features": 100, "n_hidden": 40, "filled": 0.1, "expected": False, "mutual": False}
        runs = [run_of("correctness + kl", seed=np.uint64(seed), **shape) for seed in seeds]
        assert [squad.spec.MATES for squad in fleet.fleets_of(runs)] == [7]
        fleet.train_all(runs)
        return [run.training.policies.W1 for run in runs]

    alone = [trained([seed])[0] for seed in range(9)]
    monkeypatch.setattr(fleet, "_multiprocessors", lambda: 1)
    for one, other in zip(trained(range(9)), alone, strict=True):
        np.testing.assert_array_equal(one, other)


def test_launches_do_not_change_the_result(monkeypatch):
    def trained():
        runs = [
            run_of("likelihood + log_ratio + parity", seed=np.uint64(at), **OPTIMISERS["joint"])
            for at in range(3)
        ]
        fleet.train_all(runs)
        return [run.training for run in runs]

    whole = trained()
    monkeypatch.setattr(fleet, "STEPS_A_LAUNCH", 77)
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


@pytest.mark.parametrize(
    "shape",
    [
        {}, {"n_groups": 3, "n_labels": 4, "n_hidden": 40}, {"filled": 0.9, "n_features": 200},
        {"dense": True, "n_features": 100}, {"dense": True, "n_features": 100, "n_hidden": 40},
        {"dense": True, "n_features": 100, "n_groups": 5, "n_labels": 3, "n_hidden": 50}, {"n_groups": 3, "n_hidden": 35},
        {"n_features": 724, "n_hidden": 40, "filled": 0.01, "expected": False},
    ],
)  # fmt: skip
def test_decisions_about_others_are_counted(shape):
    run = run_of("likelihood + log_ratio", **shape)
    others = run_of("likelihood", n_people=700, **shape)
    (squad,) = fleet.fleets_of([run])
    squad.advance(squad.ends)
    matrix = squad.tables.matrix(others.rows, run.training.policies.W1.shape[1])
    (found,) = squad.judges([(matrix, others.people)])(np.arange(1))
    assert squad.finish() == [None]
    (n_groups, n_labels), policies = run.training.policies.b2.shape, run.training.policies
    dense = matrix.toarray()
    hidden = [np.maximum(dense @ policies.W1[g] + policies.b1[g], 0) for g in range(n_groups)]
    decided = np.stack(
        [(hidden[g] @ policies.W2[g].T + policies.b2[g]).argmax(1) for g in range(n_groups)], 1
    )
    own = decided[np.arange(700), others.people.groups]
    counts = np.zeros((n_groups, n_labels, n_labels), int)
    np.add.at(counts, (others.people.groups, others.people.labels, own), 1)
    flips = (decided != own[:, None]).any(1).sum()
    assert np.abs(found[:-1].astype(int) - counts.ravel()).sum() <= 2  # a tie may fall either way
    assert abs(int(found[-1]) - flips) <= 1
