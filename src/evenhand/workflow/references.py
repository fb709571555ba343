"""Models to compare the trade-off with: two usual ones that never see the group, on the same people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from evenhand.metrics.measures import Measure, measure
from evenhand.tables.preprocessing import Parts
from evenhand.workflow.candidates import answers_of

FAMILY = "blind to the group"


@dataclass(frozen=True)
class Reference:
    """A model for comparison only, and its measures on the validation part."""

    name: str
    model: Any
    validation: dict[str, Measure]
    family: str = FAMILY


class _Trees(LGBMClassifier):
    """Boosted trees that take sparse arrays; LightGBM takes only sparse matrices without a warning."""

    def predict_proba(self, X: Any, *arguments: Any, **options: Any) -> Any:
        """Return the probability of each label for each person."""
        taken: Any = sparse.csr_matrix(X) if isinstance(X, sparse.csr_array) else X
        return super().predict_proba(taken, *arguments, **options)


def references_for(parts: Parts, seed: int) -> Iterator[Reference]:
    """Train a logistic regression and boosted trees, with their libraries' defaults, on the same rows."""
    blind = {
        "logistic regression, blind": LogisticRegression(max_iter=500),
        "boosted trees, blind": _Trees(n_jobs=1, random_state=seed, verbose=-1),
    }
    labels = np.asarray(parts.train.y.tolist())  # neither accepts labels of type object
    for name, model in blind.items():
        model.fit(parts.train.X, labels, sample_weight=parts.train.w)
        yield Reference(name, model, measure(answers_of(model, parts.validation, parts), intervals=False))
