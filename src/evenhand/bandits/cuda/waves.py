"""Decides which runs train together on a GPU. Models that don't fit into its memory at once are queued."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from evenhand.bandits.cuda import fleet, packing
from evenhand.bandits.cuda.spec import spec_of
from evenhand.bandits.training import Run
from evenhand.cuda import cupy

MEMORY_SHARE = 0.5  # of the free memory, for the models of a fleet


class Plan:
    """Runs grouped by spec. The longest come first, so that no long run is left alone at the end.

    `beside` has, for each run, the rows on which its checkpoints will be scored, if any. `copies` is the
    number of checkpoints kept per model.
    """

    def __init__(self, runs: Sequence[Run], beside: Sequence[Any] = (), copies: int = 0) -> None:
        self._tables, self._copies = fleet.Tables(), copies
        room = cupy().cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
        found = []
        for at, run in enumerate(runs):
            policies = run.training.policies
            run.training.make_room(n_rate_terms=len(run.terms.rates.bound), buffers=False)
            asked = [self._tables.matrix(run.rows, policies.W1.shape[1]), *beside[at : at + 1]]
            most = max(packing.most_columns(matrix) for matrix in asked)
            spec = spec_of(policies, run.people, run.terms, run.options, most_columns=most, room=room)
            found.append((spec, run))
        found.sort(key=lambda one: one[0])
        self._groups = [
            (spec, [run for _, run in each])
            for spec, each in itertools.groupby(found, key=lambda one: one[0])
        ]
        self._groups.sort(key=lambda group: -max(map(_work, group[1])))

    def compile(self) -> None:
        """Compile the training kernels, if that is not done yet."""
        for spec, _ in self._groups:
            fleet.compiled("train", spec)

    def waves(self) -> Iterator[list[fleet.Fleet]]:
        """Yield fleets that fit into the memory together. Clear a wave before you ask for the next."""
        wave: list[fleet.Fleet] = []
        for spec, runs in self._groups:
            d = max(run.training.policies.W1.shape[1] for run in runs)
            numbers = (1 + (spec.OPT > 0) + self._copies) * spec.policies(d) + spec.moments(d)
            numbers += 4 * max(-(-run.options.end // run.options.interval) for run in runs)  # of the history
            while runs:
                most = max(1, int(MEMORY_SHARE * _free_memory() / (4 * numbers)))
                if wave and most < len(runs):
                    yield wave
                    wave = []
                    continue
                wave.append(fleet.Fleet(spec, runs[:most], self._tables, self._copies))
                runs = runs[most:]
        if wave:
            yield wave


def _work(run: Run) -> int:
    return int((run.options.end - run.training.step) * run.training.policies.W1[0].size)


def _free_memory() -> int:
    """Return the free bytes of the device, including those that CuPy holds to use again."""
    cp = cupy()
    return int(cp.cuda.Device().mem_info[0] + cp.get_default_memory_pool().free_bytes())
