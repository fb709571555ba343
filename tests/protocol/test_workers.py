"""Processes do with data sets what threads do."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand import CooperativeBandits
from evenhand.datasets import Dataset
from evenhand.metrics.networks import freeze
from evenhand.metrics.selection import Best, Scores
from evenhand.protocol.gpu import _tested
from evenhand.protocol.trial import make_ready
from evenhand.protocol.workers import pool_of_workers


def test_processes_find_what_threads_find(dataset: Dataset) -> None:
    prepared = make_ready(dataset, 0, "random")
    model = CooperativeBandits(steps=500, random_state=0)
    kept = freeze(model.fit(prepared.X, prepared.y, sensitive_features=prepared.s))
    best = {name: Best((0.5,), 500, Scores(0.8, 0.1, 0.5, 0.0), kept) for name in ("delta", "bounded")}
    spoiled = {"delta": best["delta"]._replace(kept=object())}
    found = []
    for processes in (False, True):
        with pool_of_workers({"one": prepared}, 2, processes=processes) as submit:
            found.append(submit(_tested, "one", [best, spoiled, {}]).result())
            with pytest.raises(TypeError):
                submit(_tested, "one").result()
    (one, wrong, nothing), others = found
    assert others == [one, others[1], nothing]
    assert all("'object' object has no attribute 'predict'" in error for error in (wrong, others[1]))
    assert one["delta"]["test"]["accuracy"] > 0.5
    assert np.isfinite(list(one["bounded"]["test"].values())).all()
