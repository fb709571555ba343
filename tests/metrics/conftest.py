"""Small models whose decision depends on the group in a way that can be read off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

THRESHOLD = {"f": 0.6, "m": 0.4, "x": 0.5}


class Told(ClassifierMixin, BaseEstimator):
    """Says yes above a threshold that depends on the group it is told."""

    def fit(self, X: Any, y: Any, sensitive_features: Any = None) -> Told:
        self.classes_ = np.array(["no", "yes"])
        self.n_features_in_ = np.asarray(X).shape[1]
        return self

    def predict(self, X: Any, *, sensitive_features: Any) -> np.ndarray:
        bar = np.array([THRESHOLD[group] for group in np.asarray(sensitive_features).ravel()])
        return np.where(np.asarray(X, dtype=float)[:, 0] > bar, "yes", "no")


class Policies(Told):
    """The same as one policy a group, each with probabilities."""

    groups_ = np.array(["f", "m", "x"], dtype=object)

    def probabilities_by_group(self, X: Any) -> np.ndarray:
        first = np.asarray(X, dtype=float)[:, 0]
        yes = np.stack([np.clip(first - THRESHOLD[group] + 0.5, 0, 1) for group in self.groups_], axis=1)
        return np.stack([1 - yes, yes], axis=2)

    def predict_proba(self, X: Any, *, sensitive_features: Any) -> np.ndarray:
        own = [list(self.groups_).index(group) for group in np.asarray(sensitive_features)]
        return self.probabilities_by_group(X)[np.arange(len(own)), own]


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def policies() -> Policies:
    return Policies()
