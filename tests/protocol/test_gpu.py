"""Trials on a GPU select the checkpoints, and find the numbers, that threads do."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from devices import needs_device
from emulated import CXX, emulate, pretend
from evenhand import GradientBandit
from evenhand.bandits.cuda.watching import Watch
from evenhand.datasets import Dataset
from evenhand.metrics.selection import CRITERIA
from evenhand.progress import Progress
from evenhand.protocol import gpu
from evenhand.protocol.engines import run_trials
from evenhand.protocol.gpu import networks_among
from evenhand.protocol.grids import Method, grid, make_ccb, make_cured, make_lr
from evenhand.protocol.sweep import Sweep
from evenhand.protocol.trial import make_ready

METHODS = [
    Method("LR", make_lr, grid(C=[1.0], aware=[True])),
    Method("CCB", make_ccb, grid(hidden=[5, 20], divergence_weight=[10, 50])),
    Method("CCB cured", make_cured, grid(reward=["likelihood + log_ratio + parity"], steps=[5000])),
]


class Told(Progress):
    def __init__(self):
        self.labels = []

    def done(self, label, work=None, pieces=1):
        self.labels.append(label)


def people(n=1500):
    rng = np.random.default_rng(0)
    sex, job = rng.choice(["f", "m"], n), rng.choice(["cook", "clerk", "boss"], n)
    skill = rng.normal(size=n)
    hired = pd.Series(
        np.where(skill + 0.5 * (sex == "m") + rng.normal(size=n) / 2 > 0, "yes", "no"), name="hired"
    )
    contexts = pd.DataFrame({"skill": skill, "job": pd.Categorical(job)})
    return Dataset("people", contexts, hired, pd.DataFrame({"sex": sex}), pos_label="yes")


def make_one_policy(seed, **options):
    return GradientBandit(random_state=seed, **options)


def test_networks_of_groups_go_to_the_gpu_and_others_stay():
    methods = [*METHODS, Method("one policy", make_one_policy, grid(hidden=[5]))]
    networks, others = networks_among(iter(Sweep(methods, [people()]).trials))
    assert {trial.method.name for trial, _ in networks} == {"CCB", "CCB cured"}
    assert [trial.method.name for trial in others] == ["LR", "one policy"]


def test_results_are_kept_with_the_code_that_trains_and_scores_on_a_gpu(monkeypatch):
    asked = []
    monkeypatch.setattr("evenhand.protocol.sweep.code_version", lambda *modules: asked.append(modules))
    assert Sweep(METHODS, [people()]).trials
    assert all("evenhand.protocol.gpu" in modules for modules in asked)


@pytest.mark.skipif(CXX is None, reason="no C++ compiler")
def test_labels_that_training_lacks_are_wrong_on_a_gpu_too(monkeypatch):
    data = people(600)
    label = data.label.astype(object)
    label[[1, 2, 3]] = ["perhaps", "never", "soon"]
    data = replace(data, label=label)
    seed = next(
        seed for seed in range(100) if make_ready(data, seed, "random").validation.people.truth.max() > 2
    )
    methods = [Method("CCB cured", make_cured, grid(steps=[1000], checkpoint_every=[200], hidden=[5]))]
    sweep = Sweep(methods, [data], seeds=[seed], split="random")
    here = sweep.run(workers=1)
    emulate(monkeypatch)
    there = Sweep(methods, [data], seeds=[seed], split="random").run(engine="cuda", workers=1)
    assert set(there["engine"]) == {"cuda"}
    for name in ("step", "validation_accuracy", "validation_discrimination", "accuracy"):
        np.testing.assert_allclose(there[name], here[name], atol=1e-6)


def test_without_cupy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    sweep = Sweep(METHODS, [people()])
    data = {trial.data: make_ready(sweep.datasets[0], 0, "random") for trial in sweep.trials}
    with pytest.raises(ImportError, match=r"engine='cuda' needs: pip install 'evenhand\[cuda\]'"):
        list(run_trials(sweep.trials, data, engine="cuda"))


def test_what_runs_side_by_side_comes_as_it_is_done_and_errors_come_through():
    assert sorted(gpu._side_by_side(lambda each: each**2, iter(range(1, 10)))) == [n**2 for n in range(1, 10)]
    begun = []

    def work(each):
        begun.append(each)
        return 1 / (3 - each)

    with pytest.raises(ZeroDivisionError):
        list(gpu._side_by_side(work, iter(range(1000))))
    assert len(begun) < 100  # the rest is not begun

    def given():
        yield 1
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        list(gpu._side_by_side(work, given()))


@pytest.mark.parametrize("many", [1, 10**6], ids=["with processes", "with threads"])
def test_every_trial_of_a_pretended_device_has_a_result(many, monkeypatch):
    order, underway = [], gpu._underway

    def noted(members, *given):
        order.append((members[0][0].dataset, len(members)))
        return underway(members, *given)

    pretend(monkeypatch)
    monkeypatch.setattr(gpu, "_underway", noted)
    monkeypatch.setattr(gpu, "MANY", many)
    monkeypatch.setattr(gpu, "AT_ONCE", 7)
    small, large = people(300), replace(people(600), name="more people")
    told = Told()
    sweep = Sweep(METHODS, [small, large], seeds=2)
    found = sweep.run(engine="cuda", workers=2, progress=told)
    assert sweep.failures().empty
    assert len(found) == 2 * 2 * 3 * len(CRITERIA)
    assert set(found["engine"][found["method"] != "LR"]) == {"cuda"}
    # The largest first, and some at a time.
    assert order == [("more people", 7), ("more people", 3), ("people", 7), ("people", 3)]
    assert len(told.labels) == 24


@pytest.mark.parametrize("many", [1, 10**6], ids=["with processes", "with threads"])
def test_a_network_that_can_not_be_trained_leaves_the_others_alone(many, monkeypatch):
    pretend(monkeypatch)
    monkeypatch.setattr(gpu, "MANY", many)
    bad = [
        Method("CCB cured", make_cured, grid(learning_rate=[0.01, -1.0], steps=[1000])),
        Method("CCB", make_ccb, grid(colour=["red"])),
    ]
    sweep = Sweep(bad, [people(300)])
    found = sweep.run(engine="cuda", workers=1)
    assert len(found) == len(CRITERIA)
    errors = sweep.failures()["error"]
    assert len(errors) == 2
    assert sum("Got learning_rate=-1.0, but expected" in error for error in errors) == 1
    assert sum("colour" in error for error in errors) == 1


@pytest.mark.parametrize("many", [1, 10**6], ids=["with processes", "with threads"])
def test_a_network_that_can_not_be_tested_leaves_the_others_of_its_split_alone(many, monkeypatch):
    finish = Watch.finish

    def spoiled(watch):
        found = finish(watch)
        best = {name: one._replace(kept="no policies") for name, one in found[0].best.items()}
        return [found[0]._replace(best=best), *found[1:]]

    pretend(monkeypatch)
    monkeypatch.setattr(gpu, "MANY", many)
    monkeypatch.setattr(Watch, "finish", spoiled)
    sweep = Sweep([Method("CCB cured", make_cured, grid(learning_rate=[0.01, 0.02, 0.03]))], [people(300)])
    assert len(sweep.run(engine="cuda", workers=1)) == len(CRITERIA)
    assert len(sweep.store) == 3
    (error,) = sweep.failures()["error"]
    assert "in tested" in error


def test_networks_share_their_people_though_one_of_them_can_not_be_trained():
    prepared = make_ready(people(300), 0, "random")
    models = [make_cured(0, learning_rate=rate) for rate in (-1.0, 0.01, 0.02, -2.0, 0.03)]
    bad, one, other, worse, last = gpu._ready(prepared, models, None)
    assert "Got learning_rate=-1.0, but expected" in bad
    assert "Got learning_rate=-2.0, but expected" in worse
    assert one.run.rows is other.run.rows is last.run.rows
    assert one.asked is other.asked is last.asked
    assert [each.model for each in (one, other, last)] == [models[1], models[2], models[4]]


@pytest.mark.device
@needs_device[1]
def test_a_sweep_on_a_gpu_finds_what_threads_find():
    here, there = (Sweep(METHODS, [people()], seeds=2).run(engine=engine) for engine in ("threads", "cuda"))
    assert here["method"].tolist() == there["method"].tolist()
    print(pd.concat([here["step"], there["step"], here["accuracy"], there["accuracy"]], axis=1))
    assert (here["step"] == there["step"]).mean() > 0.8  # a tie may fall either way
    assert (here["parameters"] == there["parameters"]).mean() > 0.8
    assert (here["accuracy"] - there["accuracy"]).abs().median() < 0.01
