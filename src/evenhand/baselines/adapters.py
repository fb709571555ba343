"""Methods of fairlearn and OxonFair, with the interface of the other baselines."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from evenhand.arrays import Array, Codes, Floats
from evenhand.baselines._base import Baseline, Callback, dense, two_columns, wants_to_stop
from evenhand.checks import integer, number
from evenhand.metrics.bootstrap import generator


class Randomised(Baseline):
    """A randomised classifier: its guarantee holds for decisions drawn with its probabilities."""

    _two_labels_only = True

    def sample_actions(self, X: Any, *, sensitive_features: Any = None, random_state: Any = None) -> Array:
        """Draw each person's action, as in the published method."""
        positive = self.predict_proba(X, sensitive_features=sensitive_features)[:, 1]
        drawn = generator(random_state).random(len(positive)) < positive
        return np.asarray(self.classes_[drawn.astype(np.int64)])

    def draws_differ(self, X: Any, *, sensitive_features: Any = None) -> float:
        """Return the expected share of people whose decision differs between two draws."""
        positive = self.predict_proba(X, sensitive_features=sensitive_features)[:, 1]
        return float(np.mean(2 * positive * (1 - positive)))


class ExponentiatedGradientClassifier(Randomised):
    """fairlearn's reductions (Agarwal et al. 2018) with demographic parity: a random mixture of classifiers.

    The mixture doesn't see the group, so given the features, no decision depends on it. The guarantee holds
    for decisions drawn from the mixture (`sample_actions`). `predict` returns the decision of the mixture's
    majority, so a person always gets the same one; its discrimination can exceed the bound.

    Parameters
    ----------
    estimator : classifier, optional
        A scikit-learn classifier that accepts sample weights; LogisticRegression(max_iter=500) by default.
    difference_bound : float
        The largest difference between a group's positive rate and that of everybody.
    eps : float
        fairlearn's `eps`: how accurately the game is solved.
    max_iter : int
        The largest number of rounds. A round is a step. The callback is called once, at the end.

    Examples
    --------
    >>> X, y, s = [[0.0], [1.0], [2.0], [3.0]] * 5, ["no", "no", "yes", "yes"] * 5, ["f", "m", "f", "m"] * 5
    >>> model = ExponentiatedGradientClassifier().fit(X, y, sensitive_features=s)
    >>> model.predict([[0.0], [3.0]])
    array(['no', 'yes'], dtype='<U3')
    """

    def __init__(
        self, estimator: Any = None, *, difference_bound: float = 0.01, eps: float = 0.01, max_iter: int = 50
    ) -> None:
        self.estimator = estimator
        self.difference_bound = difference_bound
        self.eps = eps
        self.max_iter = max_iter

    @property
    def _uses_group(self) -> bool:
        return False

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, callback: Callback = None) -> Self:
        """Run fairlearn's ExponentiatedGradient, and keep it as `mitigator_`."""
        bound = number("difference_bound", self.difference_bound, low=0, open_low=True)
        eps, max_iter = number("eps", self.eps, low=0, open_low=True), integer("max_iter", self.max_iter)
        X, labels, codes = self._admit(X, y, sensitive_features)
        try:
            from fairlearn.reductions import DemographicParity, ExponentiatedGradient
        except ImportError as error:
            raise _not_installed("ExponentiatedGradientClassifier", "fairlearn") from error
        parity = DemographicParity(difference_bound=bound)
        base = _or_logistic(self.estimator)
        self.mitigator_ = ExponentiatedGradient(base, parity, eps=eps, max_iter=max_iter)
        with warnings.catch_warnings():
            # caused by fairlearn's own use of pandas
            warnings.simplefilter("ignore", DeprecationWarning)
            self.mitigator_.fit(dense(X), labels, sensitive_features=codes)
        self.n_steps_ = int(self.mitigator_.last_iter_) + 1
        wants_to_stop(callback, self.n_steps_, self)
        return self

    def _probabilities(self, X: Any, codes: Codes) -> Floats:
        rows, positive = dense(X), np.zeros(X.shape[0])
        for at, weight in self.mitigator_.weights_.items():
            if weight > 0:
                positive += weight * self.mitigator_.predictors_[at].predict(rows)
        return two_columns(np.clip(positive, 0, 1))


class ThresholdOptimizerClassifier(Randomised):
    """fairlearn's post-processing (Hardt et al. 2016) with demographic parity: thresholds for each group.

    A group can have two thresholds. Decisions between them are random (`sample_actions`); `predict` returns
    the more probable one. Decisions depend on the group by design.

    Parameters
    ----------
    estimator : classifier, optional
        A scikit-learn classifier with `predict_proba`; LogisticRegression(max_iter=500) by default.
    difference_bound : float
        The largest difference between the groups' positive rates.

    Notes
    -----
    There is one step, and the callback is called once, at the end.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]] * 5, ["no", "no", "yes", "yes"] * 5
    >>> model = ThresholdOptimizerClassifier().fit(X, y)  # with one group there is nothing to even out
    >>> model.predict([[0.0], [3.0]])
    array(['no', 'yes'], dtype='<U3')
    """

    def __init__(self, estimator: Any = None, *, difference_bound: float = 0.0) -> None:
        self.estimator = estimator
        self.difference_bound = difference_bound

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, callback: Callback = None) -> Self:
        """Fit the estimator (`estimator_`), then fairlearn's ThresholdOptimizer (`optimizer_`)."""
        bound = number("difference_bound", self.difference_bound, low=0)
        X, labels, codes = self._admit(X, y, sensitive_features)
        self.estimator_ = _or_logistic(self.estimator).fit(X, labels)
        self.optimizer_ = None
        if len(self.groups_) > 1:
            try:
                from fairlearn.postprocessing import ThresholdOptimizer
            except ImportError as error:
                raise _not_installed("ThresholdOptimizerClassifier", "fairlearn") from error
            self.optimizer_ = ThresholdOptimizer(
                estimator=self.estimator_, prefit=True, predict_method="predict_proba", tol=bound or None
            ).fit(dense(X), labels, sensitive_features=codes)
        self.n_steps_ = 1
        wants_to_stop(callback, self.n_steps_, self)
        return self

    def _probabilities(self, X: Any, codes: Codes) -> Floats:
        if self.optimizer_ is None:
            return np.asarray(self.estimator_.predict_proba(X))
        return np.asarray(self.optimizer_._pmf_predict(dense(X), sensitive_features=codes))


class OxonFairClassifier(Baseline):
    """OxonFair (Delaney et al. 2024): one threshold per group, chosen for accuracy within a parity bound.

    Decisions depend on the group by design: two people who differ only in their group can get different
    decisions. The thresholds are chosen on the training data. A probability is OxonFair's normalised score:
    it is above 0.5 if the threshold is exceeded.

    Parameters
    ----------
    estimator : classifier, optional
        A scikit-learn classifier with `predict_proba`; LogisticRegression(max_iter=500) by default.
    difference_bound : float
        The largest accepted mean difference between the groups' positive rates.

    Notes
    -----
    There is one step, and the callback is called once, at the end.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]] * 5, ["no", "no", "yes", "yes"] * 5
    >>> model = OxonFairClassifier().fit(X, y)  # with one group there is nothing to even out
    >>> model.predict([[0.0], [3.0]])
    array(['no', 'yes'], dtype='<U3')
    """

    _two_labels_only = True

    def __init__(self, estimator: Any = None, *, difference_bound: float = 0.02) -> None:
        self.estimator = estimator
        self.difference_bound = difference_bound

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, callback: Callback = None) -> Self:
        """Fit the estimator (`estimator_`), then OxonFair's `offsets_`, one per group."""
        bound = number("difference_bound", self.difference_bound, low=0)
        X, labels, codes = self._admit(X, y, sensitive_features)
        self.estimator_ = _or_logistic(self.estimator).fit(X, labels)
        self.offsets_ = np.zeros(len(self.groups_))
        if len(self.groups_) > 1:
            try:
                from oxonfair import FairPredictor
                from oxonfair.utils import group_metrics
            except ImportError as error:
                raise _not_installed("OxonFairClassifier", "oxonfair") from error
            known = {"data": self.estimator_.predict_proba(X), "target": labels, "groups": codes}
            predictor = FairPredictor(None, known)
            predictor.fit(group_metrics.accuracy, group_metrics.demographic_parity, bound)
            self.offsets_ = np.asarray(predictor.offset, dtype=np.float64).ravel()
        self.n_steps_ = 1
        wants_to_stop(callback, self.n_steps_, self)
        return self

    def _probabilities(self, X: Any, codes: Codes) -> Floats:
        offsets = self.offsets_[codes]
        scores: Floats = np.array(self.estimator_.predict_proba(X), dtype=np.float64)
        scores += np.column_stack([np.maximum(-offsets, 0), np.maximum(offsets, 0)])
        scores /= scores.sum(axis=1, keepdims=True)
        return scores


def _or_logistic(estimator: Any) -> Any:
    return LogisticRegression(max_iter=500) if estimator is None else clone(estimator)


def _not_installed(name: str, package: str) -> ImportError:
    return ImportError(f"{name} needs the package {package}, which is not installed. pip install {package}")
