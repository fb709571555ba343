"""Trials with two more measurements: the seconds of the thread that fits, not of the clock, and calibration."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np

from evenhand.metrics import calibration_error
from evenhand.protocol.sweep import Sweep
from evenhand.protocol.trial import Prepared, Result, Trial


class Measured(Trial):
    """A trial whose seconds are the thread's own, in `fit` alone, and whose probabilities are held against the labels."""

    def run(self, prepared: Prepared) -> Result:
        made: list[Any] = []

        def make(seed: int, **point: Any) -> Any:
            made.append(timed(self.method.make(seed, **point)))
            return made[0]

        plain = Trial(self.key, self.data, self.dataset, self.seed, replace(self.method, make=make), self.point, self.criteria)  # fmt: skip
        result = plain.run(prepared)
        if result.trained is None:
            return result
        # A model with checkpoints is not the one that was chosen; drawn decisions are no probabilities.
        if result.trained["checkpoints"] == 1 and "draws_differ" not in (result.trained["curve"] or {}):
            error = calibration(made[0], prepared)
            for picked in result.trained["criteria"].values():
                picked["test"]["calibration_error"] = error
        return Result(result.trained, None, made[0].seconds_)


def timed(model: Any) -> Any:
    """The same model, which keeps how many seconds of its thread's time `fit` took."""
    fit = model.fit

    @wraps(fit)
    def fit_timed(*arguments: Any, **named: Any) -> Any:
        started = time.thread_time()
        fitted = fit(*arguments, **named)
        model.seconds_ = time.thread_time() - started
        return fitted

    model.fit = fit_timed
    return model


def calibration(model: Any, prepared: Prepared) -> float:
    """The expected calibration error on the test part, ten bins."""
    answers = prepared.test.ask(model)
    return calibration_error(answers.y == answers.pos_label, np.asarray(answers.probability))


class MeasuredSweep(Sweep):
    """A sweep of such trials."""

    def _trial(self, *of: Any) -> Trial:
        return Measured(**vars(super()._trial(*of)))
