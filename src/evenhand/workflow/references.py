"""What to hold the trade-off against: two usual models that never see the group, on the same people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.linear_model import LogisticRegression

from evenhand.metrics.measures import Measure, measure
from evenhand.tables.preprocessing import Parts
from evenhand.workflow.candidates import answers_of

FAMILY = "blind to the group"


@dataclass(frozen=True)
class Reference:
    """A model that nobody chooses from here, and its measures on the validation part."""

    name: str
    model: Any
    validation: dict[str, Measure]
    family: str = FAMILY


def references_for(parts: Parts, seed: int) -> Iterator[Reference]:
    """Train a logistic regression and boosted trees, with their libraries' defaults, on the same rows."""
    blind = {
        "logistic regression, blind": LogisticRegression(max_iter=500),
        "boosted trees, blind": LGBMClassifier(n_jobs=1, random_state=seed, verbose=-1),
    }
    labels = np.asarray(parts.train.y.tolist())  # neither takes labels of type object
    for name, model in blind.items():
        model.fit(parts.train.X, labels, sample_weight=parts.train.w)
        yield Reference(name, model, measure(answers_of(model, parts.validation, parts), intervals=False))
