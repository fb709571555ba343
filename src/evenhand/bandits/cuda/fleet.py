"""Training runs of the same spec on one GPU, side by side, one warp or more per model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from evenhand.bandits.cuda import packing
from evenhand.bandits.cuda.spec import NOWHERE, Spec
from evenhand.bandits.kernels.structs import People, Rows
from evenhand.bandits.training import Run, diverged
from evenhand.cuda import cupy
from evenhand.network import Network

JUDGES, JUDGING = 256, 8  # threads per block, and blocks per model, when checkpoints are scored


@cache
def compiled(kernel: str, spec: Spec) -> Any:
    """Return a kernel for this spec; CuPy caches compiled kernels on disk."""
    cp = cupy()
    module = cp.RawModule(code=spec.source(kernel), options=("--std=c++17", "--use_fast_math"))
    function = module.get_function(kernel)
    # The maximum per block: fleets with the same kernel need different amounts.
    most = cp.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
    function.max_dynamic_shared_size_bytes = most - function.shared_size_bytes
    function.preferred_shared_memory_carveout = 100
    return function


class Tables:
    """People on the device. Each table is sent once, however many models are trained on it."""

    def __init__(self) -> None:
        self._kept: dict[Any, tuple[Any, Any]] = {}  # with their sources: keys are ids, which must stay valid
        self._lock = Lock()

    def matrix(self, rows: Rows, n_features: int) -> Any:
        """Return rows as a CSR matrix on the host."""
        return self._once(("matrix", id(rows.values)), rows, lambda: packing.canonical(rows, n_features))

    def table(self, matrix: Any, width: int) -> packing.Table:
        """Return rows on the device."""

        def make() -> packing.Table:
            pairs, starts = packing.table_of(matrix, width)
            return packing.Table(_sent(pairs), _sent(starts))

        found: packing.Table = self._once(("table", id(matrix), width), matrix, make)
        return found

    def people(self, people: People) -> tuple[Any, Any]:
        """Return each person's group and label, and their weights, on the device."""
        key = ("people", id(people.groups), id(people.labels), id(people.weights))
        found: tuple[Any, Any] = self._once(
            key, people, lambda: (_sent(packing.who_of(people)), _sent(packing.counts_of(people)))
        )
        return found

    def _once(self, key: Any, source: Any, make: Callable[[], Any]) -> Any:
        with self._lock:  # fleets train in threads
            if key not in self._kept:
                self._kept[key] = make(), source
            return self._kept[key][0]


class Fleet:
    """Training runs of the same spec, which stay on the device from start to end."""

    def __init__(self, spec: Spec, runs: Sequence[Run], tables: Tables, copies: int = 0) -> None:
        """Put the runs on the device, with room for so many copies of each model's best checkpoints."""
        cp = cupy()
        self.spec, self.runs, self.tables = spec, list(runs), tables
        features = [run.training.policies.W1.shape[1] for run in runs]
        size, memory = (max(each(d) for d in features) for each in (spec.policies, spec.moments))
        starts = np.zeros((len(runs), size), np.float32)
        for row, run in zip(starts, runs, strict=True):
            packed = packing.pack_policies(spec, run.training.policies)
            row[: len(packed)] = packed
        states = [packing.first_state(spec, run.training.rates) for run in runs]
        self._rows = [-(-(run.options.end - run.training.step) // run.options.interval) for run in runs]
        batches = spec.OPT > 0
        self.on_device = {
            "policies": _sent(starts),
            "gradient": cp.zeros((len(runs), size * batches), np.float32),
            "moments": cp.zeros((len(runs), memory), np.float32),
            "state": _sent(np.stack(states)),
            "history": cp.zeros((len(runs), 2 * max(self._rows)), np.float64),
            "done": cp.zeros((len(runs), 1), np.int64),
            "gains": _sent(np.stack([run.terms.correctness.gains.astype(np.float32) for run in runs])),
            "rates": _sent(np.stack([packing.rate_numbers(run.terms.rates) for run in runs])),
        }
        self.steps = np.array([run.training.step for run in runs])
        self.ends = np.array([run.options.end for run in runs])
        self._models = self._described()
        self._shared = max(spec.shared_bytes(d) for d in features)
        self._kept = {
            name: cp.zeros((copies, *self.on_device[name].shape), self.on_device[name].dtype)
            for name in ("policies", "state")
        }
        self.stream = cp.cuda.Stream()  # waits for earlier transfers

    def _described(self) -> Any:
        models = np.zeros(len(self.runs), packing.MODEL)
        for name, array in self.on_device.items():
            models[name] = array.data.ptr + np.arange(len(self.runs)) * array.strides[0]
        for model, run in zip(models, self.runs, strict=True):
            opts, terms, d = run.options, run.terms, run.training.policies.W1.shape[1]
            table = self.tables.table(self.tables.matrix(run.rows, d), self.spec.pitch)
            who, counts = self.tables.people(run.people)
            told: dict[str, Any] = {
                "rows": table.pairs.data.ptr, "starts": table.starts.data.ptr, "who": who.data.ptr,
                "counts": counts.data.ptr, "seed": opts.seed, "end": opts.end, "origin": opts.origin,
                "horizon": opts.horizon, "interval": opts.interval, "n": len(run.people.groups), "d": d,
                "batch": opts.batch_size, "order": opts.order, "schedule": opts.schedule,
                "rate": opts.learning_rate, "apart": opts.apart, "decay": opts.weight_decay,
                "clip": terms.likelihood.clip, "kl": terms.kl.weight, "log_ratio": terms.log_ratio.weight,
                "agreement": terms.agreement.weight, "jensen_shannon": terms.jensen_shannon.weight,
            }  # fmt: skip
            for name, value in told.items():
                model[name] = value
        return models

    def advance(self, stops: Any) -> int:
        """Train every model up to its stop, and return the total number of steps."""
        going = np.flatnonzero(self.steps < stops)
        models = self._models[going].copy()
        models["first"], models["stop"] = self.steps[going], stops[going]
        if not len(going):
            return 0
        kernel = compiled("train", self.spec)
        with self.stream:
            self._told = _sent(models.view(np.uint8))  # kept alive until the kernel has read it
            mates = min(self.spec.MATES, -(-len(going) // _multiprocessors()))
            blocks, threads = -(-len(going) // mates), 32 * self.spec.WARPS * mates
            told = self._told, np.int32(len(going)), np.int32(self._shared // 4)
            kernel((blocks,), (threads,), told, shared_mem=mates * self._shared)
        made = int((stops - self.steps)[going].sum())
        self.steps[going] = stops[going]
        return made

    def judges(self, judged: Sequence[tuple[Any, Any]]) -> Callable[[Any], Any]:
        """Return a function that counts decisions on other people by some models, in their current state.

        `judged` has, for each model, a CSR matrix on the scale of its rows, and the people's groups and
        labels. The function returns one row per model: counts by group, label (unknown ones last) and
        decision, then flips.
        """
        cp, spec = cupy(), self.spec
        cells = spec.G * (spec.K + 1) * spec.K + 1
        counts = cp.zeros((len(self.runs), cells), np.uint32)
        asked = np.zeros(len(self.runs), packing.JUDGED)
        asked["policies"] = self._models["policies"]
        asked["counts"] = counts.data.ptr + np.arange(len(self.runs)) * counts.strides[0]
        for one, (matrix, people) in zip(asked, judged, strict=True):
            table, (who, _) = self.tables.table(matrix, spec.pitch), self.tables.people(people)
            one["rows"], one["starts"], one["who"] = table.pairs.data.ptr, table.starts.data.ptr, who.data.ptr
            one["n"], one["d"] = len(people.labels), matrix.shape[1]
        judging, room = spec.for_judging(), 16 * -(-cells // 4)
        near = 4 * self.on_device["policies"].shape[1] * (spec.PLACED > 0)
        if room + near > cp.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]:
            judging, near = judging._replace(PLACED=NOWHERE), 0
        kernel, room = compiled("judge", judging), room + near

        def judge(which: Any) -> Any:
            with self.stream:
                counts.fill(0)
                sent = _sent(asked[which].view(np.uint8))
                kernel((JUDGING, len(which)), (JUDGES,), (sent,), shared_mem=room)
                return cp.asnumpy(counts)[which]

        return judge

    def keep(self, better: Any) -> None:
        """Copy the current policies of the models that are `better`, by criterion and model."""
        cp = cupy()
        with self.stream:
            self._better = _sent(better[:, :, None])  # kept alive until the device has read it
            for name, kept in self._kept.items():
                cp.copyto(kept, self.on_device[name][None], where=self._better)

    def kept(self) -> list[list[Network]]:
        """Return the kept policies of all models, for each criterion."""
        with self.stream:
            every, states = (cupy().asnumpy(self._kept[name]) for name in ("policies", "state"))
        return [
            [self._policies(at, *each) for at, each in enumerate(zip(flat, state, strict=True))]
            for flat, state in zip(every, states, strict=True)
        ]

    def _policies(self, at: int, flat: Any, state: Any) -> Network:
        n_groups = self.spec.G
        shrunk = state[2 * n_groups : 3 * n_groups]
        return packing.unpack_policies(self.spec, flat, self.runs[at].training.policies, shrunk)

    def _fetch(self, name: str) -> Any:
        with self.stream:
            return cupy().asnumpy(self.on_device[name])

    def finish(self) -> list[Exception | None]:
        """Write the trained models into their runs; return an error for each that diverged, else None."""
        errors: list[Exception | None] = [None] * len(self.runs)
        found = {name: self._fetch(name) for name in ("policies", "state", "history", "done")}
        for at, run in enumerate(self.runs):
            training, first, interval = run.training, run.options.origin, run.options.interval
            policies = self._policies(at, found["policies"][at], found["state"][at])
            rewarded = found["history"][at].reshape(-1, 2)[: self._rows[at]]
            broken = -int(found["done"][at, 0])
            if broken or not all(np.isfinite(part).all() for part in policies):
                errors[at] = diverged(broken or int(self.steps[at]), run.remedy)
                continue
            counts = np.full(len(rewarded), interval)
            counts[-1] = self.steps[at] - first - interval * (len(rewarded) - 1)
            training.rates = packing.rates_in(self.spec, found["state"][at], training.rates)
            training.policies = policies
            training.write_down(np.column_stack([rewarded, counts]))
            training.step = int(self.steps[at])
        return errors


@cache
def _multiprocessors() -> int:
    return int(cupy().cuda.Device().attributes["MultiProcessorCount"])


def _sent(array: Any) -> Any:
    return cupy().asarray(array.view(np.uint8) if array.dtype.names else array)
