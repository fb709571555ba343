"""Trains models on people who arrive in pieces, with one learning-rate schedule for all pieces."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import joblib
import numpy as np

from evenhand.arrays import Array, Codes, Floats
from evenhand.bandits.cautions import Caution, kept, warn
from evenhand.bandits.contexts import as_rows
from evenhand.bandits.cooperative import CooperativeBandits
from evenhand.bandits.kernels.structs import People, Rows
from evenhand.bandits.weighing import as_they_cost, as_they_weigh


def begin(models: Sequence[CooperativeBandits], n_features: int, classes: Array, groups: Array) -> None:
    """Initialise the policies of models that will be trained in pieces."""
    for model in models:
        model.classes_, model.groups_, model.sensitive_names_ = classes, groups, None
        model.sensitive_columns_, model.n_features_in_ = [], n_features
        model._begin(n_features, len(groups))


def meet(
    models: Sequence[CooperativeBandits], X: Any, labels: Codes, groups: Codes, total: Codes, *,
    weights: Floats | None = None, n_jobs: int = 1,
) -> None:  # fmt: skip
    """Train models on one piece: float32 contexts, and the codes of labels and groups.

    `total` is the number of people of each group in all pieces together, over which `weights` have mean 1.
    The result is that of `partial_fit`, which would check the people again for each model.
    """
    people, heavy = as_they_weigh(People(groups, labels), weights)
    if not heavy.any():
        return
    rows = as_rows(X if heavy.all() else X[heavy])
    # Threads: the training loop releases the GIL, and nothing has to be copied.
    cautions = joblib.Parallel(n_jobs=n_jobs, require="sharedmem")(
        joblib.delayed(_meet)(model, rows, people, total) for model in models
    )
    for caution in chain.from_iterable(cautions):
        warn(*caution)  # not in threads, so that it points to the user's own call


def _meet(model: CooperativeBandits, rows: Rows, people: People, total: Codes) -> list[Caution]:
    with kept() as cautions:
        people = as_they_cost(people, model.class_weight, model.classes_)
        run = model._ready_to_run(rows, people, decays=False, total=np.asarray(total))
        run.training.run(*run[1:5], remedy=run.remedy)
        model._has_run(run, None, model._looked_at(run))
    return cautions
