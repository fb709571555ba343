"""`fit_many` on an emulated device returns the models, and the checkpoints, that it returns on the CPU."""

import numpy as np
import pytest
from sklearn.exceptions import FitFailedWarning

from emulated import CXX, emulate
from evenhand import CooperativeBandits, TrainingDivergedError, fit_many
from factories import make_arrays

pytestmark = pytest.mark.skipif(CXX is None, reason="there is no C++ compiler")


@pytest.mark.parametrize("memory", [10**9, 200_000], ids=["at once", "queued"])
@pytest.mark.parametrize("select", [None, "delta"])
@pytest.mark.parametrize("groups", ["fm", pytest.param("fmx", marks=pytest.mark.slow)])
def test_an_emulated_device_trains_what_the_cpu_trains(groups, select, memory, monkeypatch):
    X, y, s = make_arrays(300, groups=list(groups))
    plain = CooperativeBandits(steps=200, checkpoint_every=50)
    grid = [
        {"divergence_weight": [20], "standardize": [True, False], "random_state": [0, 1]},
        {"divergence_weight": [0], "hidden": [33], "learning_rate": [0.01], "random_state": [2]},
    ]
    how = {"sensitive_features": s, "cv": 2, "select": select}
    here = fit_many(plain, grid, X, y, **how)
    device = emulate(monkeypatch, memory)
    there = fit_many(plain, grid, X, y, engine="cuda", **how)
    assert 0 < device.least < memory
    assert len(here) == len(there) == 10
    for one, other in zip(here, there, strict=True):
        assert one.get_params() == other.get_params()
        assert getattr(one, "selected_", None) == pytest.approx(getattr(other, "selected_", None))
        for mine, theirs in zip(one.policies_, other.policies_, strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-5)
        np.testing.assert_allclose(one.history_["mean_reward"], other.history_["mean_reward"], atol=1e-5)


@pytest.mark.parametrize("engine", ["cpu", "cuda"])
@pytest.mark.parametrize("select", [None, "delta"])
def test_a_model_that_diverges_is_named_and_the_others_are_kept(select, engine, monkeypatch):
    X, y, s = make_arrays(100)
    plain = CooperativeBandits(steps=200, checkpoint_every=100, optimizer="sgd", batch_size=1)
    grid = {"learning_rate": [0.01, 1e30], "random_state": [0]}
    if engine == "cuda":
        emulate(monkeypatch)
    how = {"sensitive_features": s, "cv": 2, "select": select, "engine": engine}
    with pytest.raises(TrainingDivergedError, match="Training diverged at step") as raised:
        fit_many(plain, grid, X, y, **how)
    point = "{'learning_rate': 1e+30, 'random_state': 0}"
    assert raised.value.__notes__ == [f"This happened with {point} in split 0 of cv (the first is 0)."]
    with pytest.warns(
        FitFailedWarning, match="2 of 4 models are not fitted, because their training diverged:"
    ) as told:
        models = fit_many(plain, grid, X, y, on_divergence="warn", **how)
    assert f"{point} in split 1 of cv (the first is 0): Training diverged at step" in str(told[0].message)
    assert told[0].filename == __file__
    assert [hasattr(model, "policies_") for model in models] == [True, False, True, False]
    assert models[1].get_params() == models[3].get_params()
