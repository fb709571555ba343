"""`fit_many` on a device that computes: the CPU's loop trains, and NumPy decides from the bytes that were sent.

All of the host's half of a GPU's training is as on a device; only the kernels are others.
"""

import copy
import ctypes

import numpy as np
import pytest

from emulated import pretend
from evenhand import CooperativeBandits, fit_many
from evenhand.bandits import kernels
from evenhand.bandits.cuda import fleet, packing
from factories import make_arrays


def at(pointer, count, kind):
    """Return what lies at an address."""
    size = count * np.dtype(kind).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(int(pointer)), kind)


@pytest.fixture
def computing(monkeypatch):
    """Return a function that gives the device some memory and lets it compute."""
    known, make = {}, fleet.Fleet.__init__

    def made(self, *given):
        make(self, *given)
        for model, run in zip(self._models, self.runs, strict=True):
            known[int(model["policies"])] = self.spec, run, copy.deepcopy(run.training)

    def train(grid, block, told, shared_mem):
        for model in np.asarray(told[0]).view(packing.MODEL):
            spec, run, training = known[int(model["policies"])]
            options, first, stop = run.options, int(model["first"]), int(model["stop"])
            assert training.step == first
            kind = "joint" if options.apart > 0 else "adam"
            training.make_room(n_rate_terms=len(run.terms.rates.bound), buffers=True, kind=kind)
            history = np.zeros((-(-(stop - first) // options.interval), 3))
            training.step += kernels.train(
                training.policies, training.moments, run.rows, run.people, run.terms, training.rates, options,
                first, stop - first, history, None,
            )  # fmt: skip
            row = first // options.interval
            there = at(model["history"], 2 * (row + len(history)), np.float64).reshape(-1, 2)
            there[row:] += history[:, :2]
            flat = packing.pack_policies(spec, training.policies)
            at(model["policies"], len(flat), np.float32)[:] = flat

    def judge(grid, block, told, shared_mem):
        for judged in np.asarray(told[0]).view(packing.JUDGED):
            spec, run, _ = known[int(judged["policies"])]
            n, d, groups, labels = int(judged["n"]), int(judged["d"]), spec.G, spec.K
            flat = at(judged["policies"], spec.policies(d), np.float32)
            net = packing.unpack_policies(spec, flat, run.training.policies, np.ones(groups))
            X = np.zeros((n, d + 1), np.float32)
            pairs = at(judged["rows"], n * spec.pitch, packing.PAIR).reshape(n, -1)
            for row, sent in zip(X, pairs, strict=True):
                np.add.at(row, sent["column"], sent["value"])
            hidden = [np.maximum(X[:, :d] @ net.W1[g] + net.b1[g], 0) for g in range(groups)]
            said = [hidden[g] @ net.W2[g].T + net.b2[g] for g in range(groups)]
            decided = np.stack([each.argmax(1) for each in said], 1)
            who = at(judged["who"], n, np.uint32)
            own, label = who & 0xFFFF, who >> 16
            counts = at(judged["counts"], groups * labels**2 + 1, np.uint32)
            np.add.at(counts, (own * labels + label) * labels + decided[np.arange(n), own], 1)
            counts[-1] = (decided != decided[:, :1]).any(1).sum()

    def begin(memory):
        device = pretend(monkeypatch, memory)
        monkeypatch.setattr(fleet.Fleet, "__init__", made)
        monkeypatch.setattr(fleet, "compiled", lambda name, spec: {"train": train, "judge": judge}[name])
        return device

    return begin


@pytest.mark.parametrize("memory", [10**9, 200_000], ids=["at once", "queued"])
@pytest.mark.parametrize("select", [None, "delta"])
@pytest.mark.parametrize("groups", ["fm", "fmx"])
def test_the_host_sends_and_fetches_what_the_cpu_computes(groups, select, memory, computing):
    X, y, s = make_arrays(300, groups=list(groups))
    plain = CooperativeBandits(steps=600, checkpoint_every=150, random_state=0)
    grid = {"divergence_weight": [0, 20], "hidden": [5, 33], "standardize": [True, False]}
    how = {"sensitive_features": s, "cv": 3, "select": select}
    here = fit_many(plain, grid, X, y, **how)
    device = computing(memory)
    there = fit_many(plain, grid, X, y, engine="cuda", **how)
    assert 0 < device.least < memory
    assert len(here) == len(there) == 24
    for one, other in zip(here, there, strict=True):
        assert one.get_params() == other.get_params()
        assert getattr(one, "selected_", None) == pytest.approx(getattr(other, "selected_", None))
        for mine, theirs in zip(one.policies_, other.policies_, strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-6)
        np.testing.assert_allclose(one.history_["mean_reward"], other.history_["mean_reward"], atol=1e-6)
