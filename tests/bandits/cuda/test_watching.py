"""Checkpoints on a GPU are scored as the metrics score them, and the best one is the model."""

import numpy as np
import pytest
from sklearn.base import clone

from devices import needs_device
from emulated import pretend
from evenhand import CooperativeBandits, TrainingDivergedError, fit_many
from evenhand.bandits.cuda import fleet, packing
from evenhand.bandits.cuda.watching import scores_of
from evenhand.bandits.scaling import Scaling
from evenhand.bandits.training import diverged
from evenhand.metrics import Answers
from evenhand.metrics.selection import scores_of as measured
from evenhand.progress import Progress
from factories import make_arrays


@pytest.mark.parametrize("sizes", [(90, 60), (90, 60, 4), (90, 4, 3), (90, 60, 0)], ids=str)
def test_counts_make_the_scores_that_decisions_make(sizes):
    """Small groups are filled up alike; one that has nobody is left out."""
    n_groups, rng = len(sizes), np.random.default_rng(0)
    own = np.repeat(np.arange(n_groups), sizes)
    y, decided = rng.integers(0, 2, len(own)), rng.integers(0, 2, (len(own), n_groups))
    y[:5] = 2  # a label that the model does not know
    counts = np.zeros((n_groups, 3, 2), np.uint32)
    np.add.at(counts, (own, y, decided[np.arange(len(own)), own]), 1)
    flips = (decided != decided[:, :1]).any(1).sum()
    (found,) = scores_of(np.append(counts, flips)[None], n_groups, 2, np.array([1]))
    answers = Answers([0, 1], list(range(n_groups)), own, y=y, decided=decided)
    np.testing.assert_allclose(found, measured(answers))


class Told(Progress):
    def __init__(self):
        self.total = self.pieces = 0

    def start(self, what, total=None, work=None):
        self.total = total

    def done(self, label, work=None, pieces=1):
        self.pieces += pieces


@pytest.mark.parametrize("select", [None, "delta"])
def test_fit_many_on_a_pretended_device_tells_of_every_step(select, monkeypatch):
    pretend(monkeypatch)
    X, y, s = make_arrays(200)
    plain, told = CooperativeBandits(steps=1000, checkpoint_every=300, random_state=0), Told()
    grid = {"divergence_weight": [0, 5], "hidden": [3, 40]}
    models = fit_many(
        plain, grid, X, y, sensitive_features=s, cv=3, select=select, engine="cuda", progress=told
    )
    assert len(models) == 12
    assert {model.engine_ for model in models} == {"cuda"}
    assert told.pieces == told.total == 12 * 1000
    # Nothing is computed there, so that all checkpoints are alike, and the first is the best.
    steps = {getattr(model, "selected_", {"step": None})["step"] for model in models}
    assert steps == ({None} if select is None else {300})
    # So that the policies are those that a model begins with, for rows as they come.
    ends = fit_many(plain, grid, X, y, sensitive_features=s, cv=3, engine="cuda")
    for model, end in zip(models, ends, strict=True):
        np.testing.assert_array_equal(model.policies_.b1, end.policies_.b1)
        assert np.abs(model.policies_.b1).max() > 0
    model = models[0].fit(X, y, sensitive_features=s)
    assert not hasattr(model, "engine_")
    assert not hasattr(model, "selected_")


def test_long_histories_count_as_memory(monkeypatch):
    device = pretend(monkeypatch, memory=3_000_000)
    X, y, s = make_arrays(200)
    plain = CooperativeBandits(steps=1000, checkpoint_every=1)
    fit_many(plain, {"random_state": list(range(300))}, X, y, sensitive_features=s, engine="cuda")
    assert 0 < device.least < device.memory / 2


@pytest.mark.parametrize("select", [None, "delta"])
def test_models_that_do_not_fit_at_once_are_queued(select, monkeypatch):
    device = pretend(monkeypatch, memory=3_000_000)
    X, y, s = make_arrays(200)
    plain, told = CooperativeBandits(steps=1000, checkpoint_every=500), Told()
    grid = {"hidden": [3, 40], "random_state": list(range(400))}
    how = {"cv": 2, "select": select} if select else {}
    models = fit_many(plain, grid, X, y, sensitive_features=s, engine="cuda", progress=told, **how)
    assert told.pieces == told.total == 1000 * len(models)
    assert 0 < device.least < device.memory / 2
    for model in (models[0], models[-1]):  # nothing is trained there
        alone = clone(model).fit(X, y, sensitive_features=s, callback=lambda step, model: True)
        assert model.policies_.W1.shape == alone.policies_.W1.shape


def test_a_model_that_diverges_has_an_error_and_no_checkpoints(monkeypatch):
    pretend(monkeypatch)
    finish = fleet.Fleet.finish
    monkeypatch.setattr(fleet.Fleet, "finish", lambda self: [diverged(7, "Wait."), *finish(self)[1:]])
    monkeypatch.setattr(Scaling, "folded", lambda *given: pytest.fail("what diverged was folded"))
    X, y, s = make_arrays(200)
    with pytest.raises(TrainingDivergedError, match=r"Training diverged at step 7.*Wait\."):
        fit_many(
            CooperativeBandits(steps=1000),
            {},
            X,
            y,
            sensitive_features=s,
            cv=[(np.arange(100), np.arange(100, 200))],
            select="delta",
            engine="cuda",
        )


def test_checkpoints_are_unpacked_before_the_ends_take_their_place(monkeypatch):
    """Of two labels, the device holds the difference of the weights; their mean is the start's, decayed."""
    pretend(monkeypatch)
    order = []
    for name in ("kept", "finish"):
        usual = getattr(fleet.Fleet, name)
        monkeypatch.setattr(fleet.Fleet, name, lambda self, n=name, u=usual: order.append(n) or u(self))
    X, y, s = make_arrays(100)
    plain = CooperativeBandits(steps=500, weight_decay=0.1)
    fit_many(plain, {}, X, y, sensitive_features=s, cv=2, select="delta", engine="cuda")
    assert order[:2] == ["kept", "finish"]


@pytest.mark.parametrize("select", [None, "delta"])
def test_nothing_of_the_people_stays_in_memory(select, monkeypatch):
    pretend(monkeypatch)
    X, y, s = make_arrays(200)
    how = {"cv": 2, "select": select} if select else {}
    fit_many(CooperativeBandits(steps=100), {}, X, y, sensitive_features=s, engine="cuda", **how)
    assert packing.every_column.cache_info().currsize == 0


def test_weights_of_scored_people_are_refused(monkeypatch):
    pretend(monkeypatch)
    X, y, s = make_arrays(100)
    with pytest.raises(ValueError, match="counts each person once; use engine='cpu'"):
        fit_many(
            CooperativeBandits(),
            {},
            X,
            y,
            np.ones(100),
            sensitive_features=s,
            cv=2,
            select="delta",
            engine="cuda",
        )


@pytest.mark.device
@needs_device[1]
@pytest.mark.parametrize("groups", ["fm", "fmx"])
def test_fit_many_selects_the_checkpoints_of_the_cpu(groups):
    X, y, s = make_arrays(600, groups=list(groups))
    plain = CooperativeBandits(steps=3000, checkpoint_every=250)
    grid = {"divergence_weight": [0.5, 5], "random_state": [0, 1, 2]}
    here, there = (
        fit_many(plain, grid, X, y, sensitive_features=s, cv=3, select="delta", engine=engine)
        for engine in ("cpu", "cuda")
    )
    same = [one.selected_["step"] == other.selected_["step"] for one, other in zip(here, there, strict=True)]
    assert np.mean(same) > 0.8  # a tie may fall either way
    for one, other in zip(np.array(here)[same], np.array(there)[same], strict=True):
        assert one.selected_["accuracy"] == pytest.approx(other.selected_["accuracy"], abs=0.01)
        difference = one.probabilities_by_group(X) - other.probabilities_by_group(X)
        assert np.abs(difference).max() < 1e-3
