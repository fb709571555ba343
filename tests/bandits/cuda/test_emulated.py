"""The kernels equal the definition on an emulated device, whichever of its threads goes first."""

import itertools

import numpy as np
import pytest

from emulated import CXX, emulate
from evenhand.bandits.cuda import running
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

pytestmark = pytest.mark.skipif(CXX is None, reason="there is no C++ compiler")


def taking_turns(cases, fast):
    """Return cases with an order of the threads, each in its turn; those that are not `fast` are slow."""
    return [
        pytest.param(*case, at % 3 == 1, marks=[] if fast(at) else pytest.mark.slow)
        for at, case in enumerate(cases)
    ]


# Every term, estimator and kind of cooperation with two optimisers, of which the second is slow.
PAIRS = [
    (
        reward,
        (t + turn) % 2 == 0,
        (t // 2 + turn) % 2 == 0,
        list(OPTIMISERS)[(t + 2 * turn) % len(OPTIMISERS)],
    )
    for (t, reward), turn in itertools.product(enumerate(TERMS), (0, 1))
]


@pytest.mark.parametrize(
    ("reward", "expected", "mutual", "optimiser", "backwards"),
    taking_turns(PAIRS, lambda at: at % 2 == 0),
)
def test_policies_equal_the_definition(reward, expected, mutual, optimiser, backwards, monkeypatch):
    emulate(monkeypatch, backwards=backwards)
    assert_same(run_of(reward, expected=expected, mutual=mutual, **OPTIMISERS[optimiser]))


@pytest.mark.parametrize(
    ("reward", "optimiser", "backwards"),
    taking_turns(itertools.product(PULLS, ["adam", "joint"]), lambda at: at == 2 * len(PULLS) - 1),
)
def test_policies_that_start_alike_equal_the_definition(reward, optimiser, backwards, monkeypatch):
    emulate(monkeypatch, backwards=backwards)
    assert_same(run_that_starts_alike(reward, optimiser == "adam", optimiser))


@pytest.mark.parametrize("reward", [PULLS[0], pytest.param(PULLS[2], marks=pytest.mark.slow)])
def test_wide_policies_that_start_alike_equal_the_definition(reward, monkeypatch):
    emulate(monkeypatch)
    assert_same(run_that_starts_alike(reward, True, "adam", n_hidden=40))


@pytest.mark.parametrize(
    ("shape", "optimiser", "backwards"),
    taking_turns(zip(SHAPES, itertools.cycle(["sgd", "sgd", "joint"])), lambda at: at in (2, 11, 13)),
    ids=str,
)
def test_any_shape_equals_the_definition(shape, optimiser, backwards, monkeypatch):
    emulate(monkeypatch, backwards=backwards)
    assert_same(run_of_shape(shape, optimiser))


def test_a_model_that_has_a_multiprocessor_to_itself_equals_the_definition(monkeypatch):
    emulate(monkeypatch)
    assert_same(large_run(filled=0.12))


@pytest.mark.parametrize(("n_hidden", "n_groups"), [(40, 2), (36, 4), (35, 3), (20, 3)])
def test_equal_policies_that_learn_the_same_stay_equal(n_hidden, n_groups, monkeypatch):
    emulate(monkeypatch)
    assert_equal_policies_stay_equal(n_hidden=n_hidden, n_groups=n_groups)


def test_people_are_counted_past_what_single_precision_holds(monkeypatch):
    emulate(monkeypatch)
    assert_people_are_counted_past_single_precision()


def test_models_that_share_a_block_are_as_if_alone(monkeypatch):
    emulate(monkeypatch)
    assert_alike_in_one_block(monkeypatch, n_models=3)


def test_launches_do_not_change_the_result(monkeypatch):
    def trained():
        run = run_of("likelihood + log_ratio + parity", **OPTIMISERS["joint"])
        running.train_all([run])
        return run.training

    emulate(monkeypatch, backwards=True)
    whole = trained()
    monkeypatch.setattr(running, "STEPS_A_LAUNCH", 77)
    parts = trained()
    np.testing.assert_allclose(parts.policies.W1, whole.policies.W1, atol=1e-6)
    np.testing.assert_allclose(parts.history["reward"], whole.history["reward"], rtol=1e-5)


@pytest.mark.parametrize(
    ("shape", "backwards"), taking_turns(((one,) for one in JUDGED), lambda at: at in (1, 6)), ids=str
)
def test_decisions_about_others_are_counted(shape, backwards, monkeypatch):
    emulate(monkeypatch, backwards=backwards)
    assert_counted(shape)
