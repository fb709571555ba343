"""Many training runs on one GPU: models of one spec side by side, one warp each; more than fit are queued."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from evenhand.bandits.cuda import packing
from evenhand.bandits.cuda.spec import NOWHERE, Spec, spec_of
from evenhand.bandits.kernels.structs import People, Rows
from evenhand.bandits.training import Run, diverged
from evenhand.cuda import cupy
from evenhand.network import Network

STEPS_A_LAUNCH = 100_000  # so that no launch takes long: a screen may hang on the same GPU
KEPT = 3  # copies of a model that is watched: the best by as many criteria
MEMORY_SHARE = 0.5  # of the free memory that models in training may take
JUDGES, JUDGING = 256, 8  # threads of a block, and blocks of a model, that decide about people side by side


@cache
def compiled(kernel: str, spec: Spec) -> Any:
    """Return a kernel for this spec; CuPy keeps what it compiled on disk."""
    cp = cupy()
    module = cp.RawModule(code=spec.source(kernel), options=("--std=c++17", "--use_fast_math"))
    function = module.get_function(kernel)
    # All that a block may have: fleets that share the kernel need more or less of it.
    most = cp.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
    function.max_dynamic_shared_size_bytes = most - function.shared_size_bytes
    function.preferred_shared_memory_carveout = 100
    return function


class Tables:
    """People on the device, each table once, however many models learn from it."""

    def __init__(self) -> None:
        self._kept: dict[Any, tuple[Any, Any]] = {}  # beside what it was made of, which must not go meanwhile
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
    """Runs of one spec, on the device from their start to their end."""

    def __init__(self, spec: Spec, runs: Sequence[Run], tables: Tables) -> None:
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
        self._kept: dict[str, Any] = {}
        self.stream = cp.cuda.Stream()  # which waits for what was sent before

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

    def advance(self, stops: Any) -> None:
        """Train every model up to its stop; those that are there already rest."""
        going = np.flatnonzero(self.steps < stops)
        models = self._models[going].copy()
        models["first"], models["stop"] = self.steps[going], stops[going]
        if not len(going):
            return
        kernel = compiled("train", self.spec)
        with self.stream:
            self._told = _sent(models.view(np.uint8))  # kept until the kernel has read it
            mates = min(self.spec.MATES, -(-len(going) // _multiprocessors()))
            blocks, threads = -(-len(going) // mates), 32 * self.spec.WARPS * mates
            told = self._told, np.int32(len(going)), np.int32(self._shared // 4)
            kernel((blocks,), (threads,), told, shared_mem=mates * self._shared)
        self.steps[going] = stops[going]

    def judges(self, judged: Sequence[tuple[Any, Any]]) -> Callable[[Any], Any]:
        """Return a function that says how some of the models decide about other people, as they are then.

        `judged` has, for each model, a CSR matrix on the scale of its rows, and the people's groups and
        labels. What comes back has a row per model asked: counts by group, label and decision; then flips.
        """
        cp, spec = cupy(), self.spec
        cells = spec.G * spec.K**2 + 1
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
        """Keep policies as they are now, by each criterion those of models that it says are better."""
        cp = cupy()
        with self.stream:
            if not self._kept:
                self._kept = {
                    name: cp.zeros((len(better), *self.on_device[name].shape), self.on_device[name].dtype)
                    for name in ("policies", "state")
                }
            self._better = _sent(better[:, :, None])  # kept until it was read
            for name, kept in self._kept.items():
                cp.copyto(kept, self.on_device[name][None], where=self._better)

    def kept(self) -> list[list[Network]]:
        """Return what was kept: for each criterion, all models' policies."""
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
        """Write what the models have become into their runs; return the errors of those that diverged."""
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


def fleets_of(runs: Sequence[Run], beside: Sequence[Any] = ()) -> Iterator[Fleet]:
    """Yield the runs in fleets: of one spec each, and as many as half of the free memory has room for.

    `beside` has, for each run, the rows that its models will be asked about, if any.
    """
    tables, cp = Tables(), cupy()
    room = cp.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
    found = []
    for at, run in enumerate(runs):
        options, policies = run.options, run.training.policies
        run.training.make_room(n_rate_terms=len(run.terms.rates.bound), buffers=False)
        asked = [tables.matrix(run.rows, policies.W1.shape[1]), *beside[at : at + 1]]
        columns = max(packing.most_columns(matrix) for matrix in asked)
        found.append(
            (spec_of(policies, run.people, run.terms, options, most_columns=columns, room=room), run)
        )
    groups = [
        (spec, [run for _, run in each])
        for spec, each in itertools.groupby(sorted(found, key=lambda one: one[0]), key=lambda one: one[0])
    ]
    # Those that take longest begin first: no long one is left alone in the end.
    groups.sort(key=lambda group: -max(map(_work, group[1])))
    for spec, alike in groups:
        d = max(run.training.policies.W1.shape[1] for run in alike)
        copies = 1 + (spec.OPT > 0) + (KEPT if beside else 0)
        numbers = copies * spec.policies(d) + spec.moments(d)
        most = max(1, int(MEMORY_SHARE * cp.cuda.Device().mem_info[0] / (4 * numbers)))
        for start in range(0, len(alike), most):
            yield Fleet(spec, alike[start : start + most], tables)


def _work(run: Run) -> int:
    return int((run.options.end - run.training.step) * run.training.policies.W1[0].size)


def train_all(runs: Sequence[Run]) -> None:
    """Train all runs to their end, and write into each what it has become."""
    fleets = list(fleets_of(runs))
    while any((fleet.steps < fleet.ends).any() for fleet in fleets):
        for fleet in fleets:  # launches come back at once: fleets train side by side
            fleet.advance(np.minimum(fleet.steps + STEPS_A_LAUNCH, fleet.ends))
    for error in (error for fleet in fleets for error in fleet.finish()):
        if error is not None:
            raise error


@cache
def _multiprocessors() -> int:
    return int(cupy().cuda.Device().attributes["MultiProcessorCount"])


def _sent(array: Any) -> Any:
    return cupy().asarray(array.view(np.uint8) if array.dtype.names else array)
