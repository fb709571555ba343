"""Training runs for a GPU, and their comparison with the NumPy definition on the same random numbers."""

import numpy as np
import pytest
from scipy import sparse

from evenhand.bandits import oracle
from evenhand.bandits.contexts import as_rows
from evenhand.bandits.cuda import fleet, running, waves
from evenhand.bandits.cuda.spec import MOMENTS
from evenhand.bandits.kernels.structs import Options, People
from evenhand.bandits.training import Run, Training
from evenhand.network import Network
from evenhand.rewards import as_reward, pack_terms

TERMS = [
    "correctness", "likelihood", "correctness + kl", "correctness + log_ratio", "correctness + agreement",
    "likelihood + jensen_shannon", "correctness + parity", "likelihood + equal_opportunity",
    "likelihood + log_ratio + equalized_odds", "correctness + log_ratio + agreement + jensen_shannon + kl + parity",
]  # fmt: skip
PULLS = ["likelihood + log_ratio", "likelihood + agreement", "likelihood + jensen_shannon"]
OPTIMISERS = {
    "sgd": {}, "batches": {"batch_size": 7, "learning_rate": 0.1}, "adam": {"adam": True, "batch_size": 4},
    "adam one by one": {"adam": True, "learning_rate": 0.001},
    "joint": {"adam": True, "apart": 0.4, "batch_size": 8},
}  # fmt: skip
SHAPES = [
    {"n_groups": 1}, {"n_groups": 3, "n_labels": 3}, {"n_groups": 4, "n_labels": 5, "n_hidden": 7},
    {"n_groups": 5, "n_labels": 6, "n_hidden": 40}, {"n_hidden": 5}, {"n_hidden": 10}, {"n_hidden": 40}, {"n_hidden": 70},
    {"dense": True, "n_features": 9}, {"dense": True, "n_features": 90}, {"filled": 0.9, "n_features": 200},
    {"weighted": True}, {"n_labels": 7, "n_hidden": 3}, {"n_groups": 3, "n_hidden": 35}, {"n_groups": 5, "n_hidden": 33},
]  # fmt: skip
JUDGED = [
    {}, {"n_groups": 3, "n_labels": 4, "n_hidden": 40}, {"filled": 0.9, "n_features": 200},
    {"dense": True, "n_features": 100}, {"dense": True, "n_features": 100, "n_hidden": 40},
    {"dense": True, "n_features": 100, "n_groups": 5, "n_labels": 3, "n_hidden": 50}, {"n_groups": 3, "n_hidden": 35},
    {"n_features": 724, "n_hidden": 40, "filled": 0.01, "expected": False},
]  # fmt: skip
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
    n_people=400, shared_start=False, **changes
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
        shared_start=shared_start,
    )
    return Run(training, rows, people, terms, options(**changes), "")


def run_that_starts_alike(reward, expected, optimiser, n_hidden=20):
    """Return a run in which rounding errors would be all that drives some weights apart, if there were any."""
    return run_of(
        reward,
        expected=expected,
        shared_start=True,
        filled=0.1,
        n_features=60,
        n_hidden=n_hidden,
        **OPTIMISERS[optimiser],
    )


def run_of_shape(shape, optimiser):
    if shape.get("n_groups") == 1:
        return run_of("likelihood", learning_rate=0.005, adam=optimiser == "joint", **shape)
    changes = {"learning_rate": 0.005, **OPTIMISERS[optimiser], **shape}
    return run_of("likelihood + log_ratio + parity", **changes)


def assert_equal_policies_stay_equal(**shape):
    """Adam would turn any rounding error between policies that are equal, and learn the same, into steps."""
    changes = {"adam": True, "batch_size": 4, "learning_rate": 1e-30, "shared_start": True}
    run = run_of("likelihood + log_ratio", **changes, **shape)
    running.train_all([run])
    assert run.training.history["mean_divergence"] == [0.0] * 4


def assert_people_are_counted_past_single_precision():
    runs = [run_of("likelihood + parity") for _ in range(2)]
    for run in runs:
        run.training.make_room(n_rate_terms=len(run.terms.rates.bound), buffers=False)
        run.training.rates.counts[:] = 2.0**24
    on_device, here = runs
    here.training.run(*here[1:5], remedy="")
    running.train_all([on_device])
    np.testing.assert_array_equal(on_device.training.rates.counts, here.training.rates.counts)
    assert on_device.training.rates.counts.max() > 2**24 + 400


def large_run(**shape):
    """Return a run whose model has a multiprocessor to itself."""
    run = run_of("correctness + kl", n_features=140, n_hidden=40, **OPTIMISERS["adam one by one"], **shape)
    ((squad,),) = waves.Plan([run]).waves()
    assert (squad.spec.WARPS, squad.spec.PLACED) == (8, MOMENTS)
    return run


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
    running.train_all([run])
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


def assert_alike_in_one_block(monkeypatch, n_models):
    def trained(seeds):
        shape = {"n_features": 100, "n_hidden": 40, "filled": 0.1, "expected": False, "mutual": False}
        runs = [run_of("correctness + kl", seed=np.uint64(seed), **shape) for seed in seeds]
        assert [squad.spec.MATES for wave in waves.Plan(runs).waves() for squad in wave] == [7]
        running.train_all(runs)
        return [run.training.policies.W1 for run in runs]

    alone = [trained([seed])[0] for seed in range(n_models)]
    monkeypatch.setattr(fleet, "_multiprocessors", lambda: 1)
    for one, other in zip(trained(range(n_models)), alone, strict=True):
        np.testing.assert_array_equal(one, other)


def assert_counted(shape):
    """Compare the counts of a model's decisions about other people with NumPy's."""
    run = run_of("likelihood + log_ratio", **shape)
    others = run_of("likelihood", n_people=700, **shape)
    others.people.labels[:3] = [K := run.training.policies.b2.shape[1], K + 1, K + 5]  # which training lacks
    ((squad,),) = waves.Plan([run]).waves()
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
    counts = np.zeros((n_groups, n_labels + 1, n_labels), int)
    np.add.at(counts, (others.people.groups, np.minimum(others.people.labels, n_labels), own), 1)
    flips = (decided != own[:, None]).any(1).sum()
    assert np.abs(found[:-1].astype(int) - counts.ravel()).sum() <= 2  # a tie may fall either way
    assert abs(int(found[-1]) - flips) <= 1
