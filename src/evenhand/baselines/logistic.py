"""LR: scikit-learn's logistic regression, with the interface of the other methods."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from evenhand.arrays import Codes, Floats
from evenhand.baselines._base import Baseline, Callback, wants_to_stop


class LR(Baseline):
    """Logistic regression without any fairness constraint: the reference for accuracy.

    Parameters
    ----------
    C : float
        The inverse of the regularisation strength, as in scikit-learn.
    aware : bool
        Whether the person's group is a feature, with one column per group. If not, decisions do not depend on
        the group (the flip rate is 0), but other features can be proxies for it.
    max_iter : int
        The largest number of iterations of L-BFGS. An iteration is a step. The callback is called once, at
        the end.

    Examples
    --------
    >>> X, y, s = [[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"], ["f", "m", "f", "m"]
    >>> LR(aware=True).fit(X, y, sensitive_features=s).probabilities_by_group([[1.5]]).round(2)
    array([[[0.47, 0.53],
            [0.53, 0.47]]])
    """

    def __init__(self, C: float = 1.0, *, aware: bool = False, max_iter: int = 500) -> None:
        self.C = C
        self.aware = aware
        self.max_iter = max_iter

    @property
    def _uses_group(self) -> bool:
        return self.aware

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, callback: Callback = None) -> Self:
        """Fit scikit-learn's LogisticRegression (`estimator_`); see `Baseline.fit`."""
        X, labels, codes = self._admit(X, y, sensitive_features)
        self.estimator_ = LogisticRegression(C=self.C, max_iter=self.max_iter)
        self.estimator_.fit(self._features(X, codes), labels)
        self.n_steps_ = int(np.max(self.estimator_.n_iter_))
        wants_to_stop(callback, self.n_steps_, self)
        return self

    def _probabilities(self, X: Any, codes: Codes) -> Floats:
        return np.asarray(self.estimator_.predict_proba(self._features(X, codes)))

    def _features(self, X: Any, codes: Codes) -> Any:
        if not self.aware:
            return X
        columns = np.eye(len(self.groups_))[codes]
        if isinstance(X, np.ndarray):
            return np.hstack([X, columns])
        return sparse.hstack([X, sparse.csr_array(columns)], format="csr")
