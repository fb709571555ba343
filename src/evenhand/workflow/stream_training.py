"""Train all networks at once on a stream of people; a killed run continues where it stopped."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from evenhand.bandits.cooperative import CooperativeBandits
from evenhand.bandits.fitting import people_met
from evenhand.bandits.pieces import begin, meet
from evenhand.progress import Progress
from evenhand.tables.preprocessing import Parts
from evenhand.workflow.candidates import CURVE_POINTS, Curve, Networks, Pair, Settings, model_for
from evenhand.workflow.persistence import load, save
from evenhand.workflow.streamed import Stream

EVERY = 20.0  # seconds between saved states; writing one takes about a second


def train_networks(
    stream: Stream, parts: Parts, settings: Settings, pairs: Sequence[Pair], *, jobs: int, tell: Progress,
    state: Path | None,
) -> Networks:  # fmt: skip
    """Train the networks of some λ, with or without parity; return them and their curves.

    Each bucket of people is read once for all networks. A killed run continues from the file `state`.
    """
    if not pairs:
        return {}
    models = [model_for(parts, settings, "networks", *pair) for pair in pairs]
    begin(models, parts.train.X.shape[1], stream.classes, stream.groups)
    curves = [Curve(parts) for _ in models]
    visits = people_met(settings.epochs, int(stream.total.sum()))
    done, models = _before(state, models, curves)
    written = time.monotonic()
    with tell.stage("Training networks on a stream of people", visits) as tick:
        tick("", pieces=models[0]._training.step)
        for X, labels, groups, weights in islice(stream.buckets(settings.seed), done, None):
            step = models[0]._training.step
            if step >= visits:
                break
            meet(models, X, labels, groups, stream.total, weights=weights, n_jobs=jobs)
            met, done = models[0].n_steps_, done + 1
            if met == visits or met * CURVE_POINTS // visits > step * CURVE_POINTS // visits:
                for curve, model in zip(curves, models, strict=True):
                    curve(met, model)
            if state is not None and (met == visits or time.monotonic() - written >= EVERY):
                _keep(state, done, curves, models)
                written = time.monotonic()
            tick(f"{met:,} visits", pieces=met - step)
    found = zip(models, (curve.found for curve in curves), strict=True)
    return dict(zip(pairs, found, strict=True))


def _before(
    state: Path | None, models: list[CooperativeBandits], curves: list[Curve]
) -> tuple[int, list[CooperativeBandits]]:
    """Return the number of buckets that a killed run had read, and its models; otherwise 0 and `models`."""
    if state is None or not state.is_file():
        return 0, models
    try:
        done, found, *trained = load(state)
        for model in trained:
            model.check_loaded()
    except (ValueError, OSError):  # damaged: train them again
        return 0, models
    for curve, values in zip(curves, found, strict=True):
        curve.found = values
    return done, trained


def _keep(state: Path, done: int, curves: list[Curve], models: list[Any]) -> None:
    """Save the state of the training; do nothing if it can't be written."""
    try:
        save([done, [curve.found for curve in curves], *models], state)
    except OSError:
        return
