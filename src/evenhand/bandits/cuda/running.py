"""Trains many runs on a GPU, and keeps the last step or the best checkpoint of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from evenhand.bandits.cuda import packing
from evenhand.bandits.cuda.fleet import Fleet
from evenhand.bandits.cuda.watching import Asked, Watch, Watched
from evenhand.bandits.cuda.waves import Plan
from evenhand.bandits.training import Run
from evenhand.metrics.selection import Criterion
from evenhand.progress import Progress, or_nothing

STEPS_A_LAUNCH = 100_000  # keeps launches short, since a display may use the same GPU


def train_all(runs: Sequence[Run], progress: Progress | None = None) -> list[Exception | None]:
    """Train all runs to their end, and write the results into them; return the errors of those that fail."""
    plan, errors = Plan(runs), {}
    with _telling(plan, runs, progress) as tell:
        for wave in plan.waves():
            errors.update(_trained(wave, tell))
            wave.clear()  # frees the memory for the next
    return [errors[id(run.training)] for run in runs]


def _trained(fleets: list[Fleet], tell: Callable[[int], None]) -> dict[int, Exception | None]:
    while going := [fleet for fleet in fleets if (fleet.steps < fleet.ends).any()]:
        # Launches return at once, so fleets are trained side by side.
        made = [fleet.advance(np.minimum(fleet.steps + STEPS_A_LAUNCH, fleet.ends)) for fleet in going]
        for fleet, steps in zip(going, made, strict=True):
            fleet.stream.synchronize()
            tell(steps)
    return {
        id(run.training): error
        for fleet in fleets
        for run, error in zip(fleet.runs, fleet.finish(), strict=True)
    }


def train_and_select(
    runs: Sequence[Run], asked: Sequence[Asked], criterion: Criterion, progress: Progress | None = None
) -> list[Watched]:
    """Train all runs to their end, like `train_all`; return the best checkpoint or the error of each."""
    of_run = {id(run.training): one for run, one in zip(runs, asked, strict=True)}
    plan, found = Plan(runs, [one.rows for one in asked], copies=1), {}
    with _telling(plan, runs, progress) as tell:
        for wave in plan.waves():
            found.update(_watched(wave, of_run, criterion, tell))
            wave.clear()
    return [found[id(run.training)] for run in runs]


def _watched(
    fleets: list[Fleet], asked: Mapping[int, Asked], criterion: Criterion, tell: Callable[[int], None]
) -> dict[int, Watched]:
    watches = [Watch(fleet, [asked[id(run.training)] for run in fleet.runs], [criterion]) for fleet in fleets]
    while going := [watch for watch in watches if watch.going]:
        made = [watch.advance() for watch in going]  # side by side
        for watch, steps in zip(going, made, strict=True):
            watch.score()
            tell(steps)
    return {
        id(run.training): watched
        for watch in watches
        for run, watched in zip(watch.fleet.runs, watch.finish(), strict=True)
    }


@contextmanager
def _telling(plan: Plan, runs: Sequence[Run], progress: Progress | None) -> Iterator[Callable[[int], None]]:
    """Compile the kernels before the progress bar starts; yield the function that reports steps to it."""
    plan.compile()
    total = sum(run.options.end - run.training.step for run in runs)
    try:
        with or_nothing(progress).stage("Steps", total) as done:
            yield lambda steps: done("on the GPU", pieces=steps)
    finally:
        packing.every_column.cache_clear()
