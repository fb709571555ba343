"""Inputs and outputs of every estimator: it checks inputs, turns them into numbers, and draws actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from evenhand import checks
from evenhand.arrays import Codes, Floats
from evenhand.bandits import offpolicy
from evenhand.bandits.contexts import gaps, name_bad_columns
from evenhand.bandits.kernels.structs import People
from evenhand.bandits.offpolicy import ValueEstimate, chances, finite, one_each
from evenhand.bandits.sparse_input import check_sparse, without_duplicates
from evenhand.frames import as_pandas
from evenhand.groups import Groups, sorted_unique
from evenhand.wording import listed

_FEW = 1000  # for at most this many people, checks take longer than predictions
Callback = Callable[[int, Any], bool | None] | None


class Doors(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Checks contexts, labels and logs; draws actions; estimates a policy's value from a log."""

    class_weight: Any = None  # absent in older model files
    _accepted: ClassVar[dict[str, Any]] = {"accept_sparse": "csr", "dtype": np.float32, "order": "C"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _contexts(self, X: Any, *, reset: bool) -> Any:
        if not reset and (ready := self._ready(X)) is not None:
            return ready
        X = as_pandas(X)
        check_sparse(X)
        name_bad_columns(X)
        return self._validated(X, reset=reset)

    def _validated(self, *given: Any, reset: bool) -> Any:
        try:
            found = validate_data(self, *given, **self._accepted, reset=reset)
        except ValueError as error:
            if str(error).startswith("Input X contains NaN"):
                raise gaps() from None
            raise
        return (without_duplicates(found[0]), *found[1:]) if len(given) > 1 else without_duplicates(found)

    def _ready(self, X: Any, *, gaps: bool = False) -> Any:
        """Return a few clean rows as `validate_data` does, ten times faster; None if they need its checks."""
        values = X.data if type(X) is sparse.csr_array else X
        if type(values) is not np.ndarray or hasattr(self, "feature_names_in_"):
            return None
        if X.ndim != 2 or not 1 <= X.shape[0] <= _FEW or X.shape[1] != self.n_features_in_:
            return None
        if X.dtype != np.float32 and (X is not values or X.dtype != np.float64):
            return None
        with np.errstate(over="ignore"):
            ready = X if X is not values else np.ascontiguousarray(X, dtype=np.float32)
        check_sparse(ready)
        if X is not values and not X.has_canonical_format:
            return None  # see without_duplicates
        values = ready.data if X is not values else ready
        return None if (np.isinf(values) if gaps else ~np.isfinite(values)).any() else ready

    def _contexts_and_labels(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        X, y = as_pandas(X), as_pandas(y)
        check_sparse(X)
        name_bad_columns(X)
        no_missing_labels(y)
        X, y = self._validated(X, y, reset=reset)
        check_classification_targets(pd.unique(y))
        return X, y

    def _learn_classes(self, labels: Any) -> Codes:
        codes, found = pd.factorize(labels)  # hashing is faster than sorting, as np.unique does
        order = np.argsort(found)
        self.classes_ = found[order]
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class only, {listed(self.classes_.tolist())}, but expected at least two to tell "
                "apart."
            )
        ranks = np.empty(len(found), dtype=np.int64)
        ranks[order] = np.arange(len(found))
        return ranks[codes]

    def _known_codes(self, values: Any, what: str) -> Codes:
        values, known = np.asarray(values), self.classes_.tolist()
        try:
            at: Codes = np.searchsorted(self.classes_, values).clip(max=len(known) - 1)
            unknown = values[self.classes_[at] != values].tolist()
        except TypeError:  # None, or another type that can't be compared with the classes
            unknown = [value for value in values.tolist() if value not in known]
            if not unknown:
                raise
        if unknown:
            raise ValueError(f"Got {what} {unknown[0]!r}, but fit saw only the classes {listed(known)}.")
        return at.astype(np.int64)

    def _forget(self) -> None:
        """Remove the policies before a new fit: if it fails, old policies must not remain with new labels."""
        self.__dict__.pop("policies_", None)
        self._forget_origin()

    def _forget_origin(self) -> None:
        """Remove what is only true of the policies that were published before."""
        for name in ("engine_", "selected_"):
            self.__dict__.pop(name, None)

    def _settle_classes(self, first: bool, classes: Any) -> None:
        """Set the classes in the first partial_fit or update; later calls may omit or repeat them."""
        if classes is None:
            if first:
                raise ValueError(
                    "Got no classes in the first call, but expected every class there will ever be."
                )
            return
        came = distinct_classes(classes)
        if first:
            self.classes_ = came
        elif came.tolist() != self.classes_.tolist():
            raise ValueError(
                f"Got classes={came.tolist()}, but expected those known so far, {self.classes_.tolist()}: "
                "a model has an action for these only."
            )

    def _log(
        self, X: Any, actions: Any, rewards: Any, propensities: Any, groups: Codes, *, own: bool = False
    ) -> People:
        """Return a log as people; only a log of the policy's `own` actions may lack propensities."""
        if propensities is None and not own:
            raise ValueError(
                "Got no propensities, but expected the probability with which each action was taken: the "
                "log is another policy's."
            )
        n_people = X.shape[0]
        one_each("actions", actions, n_people)
        codes = self._known_codes(actions, "action")
        paid = finite("rewards", rewards, n_people)
        taken = np.zeros(0) if propensities is None else chances(propensities, n_people)
        labels = np.full(n_people, -1, dtype=np.int64)
        return People(groups, labels, codes, paid, taken)

    def estimate_value(
        self,
        X: Any,
        actions: Any,
        rewards: Any,
        propensities: Any,
        *,
        sensitive_features: Any = None,
        method: str = "doubly_robust",
        clip: float = np.inf,
    ) -> ValueEstimate:
        """Estimate from another policy's log what this policy would have earned per person.

        Use a log that this policy was not trained on (with `fit_logged` or `update`); otherwise the estimate
        is too high.

        Parameters
        ----------
        X, actions, rewards, propensities : array-like
            The log, as for `fit_logged`.
        sensitive_features : array-like, optional
            Each person's group; `by_group` of the result then has an estimate for each group.
        method : {'doubly_robust', 'inverse_propensity', 'self_normalised', 'direct'}
            'doubly_robust' predicts rewards with a cross-fitted ridge regression, and corrects them with the
            log. 'direct' uses the regression alone. Its bias is unknown, so its standard error is NaN. The
            other two methods weight the logged rewards, without a regression.
        clip : float
            The largest importance weight.

        Returns
        -------
        ValueEstimate
            The mean reward per person, its standard error and, if groups are known, the same by group.
        """
        checks.one_of("method", method, offpolicy.METHODS)
        X = as_pandas(X)
        policy, groups = self._policy_of(X, sensitive_features)
        X = self._regressors(X)
        log = self._log(X, actions, rewards, propensities, np.zeros(len(policy), dtype=np.int64))
        if method in ("inverse_propensity", "self_normalised"):
            taken, steady = policy[np.arange(len(policy)), log.actions], method == "self_normalised"
            return offpolicy.value_by_group(
                lambda rows: offpolicy.inverse_propensity_value(
                    taken[rows], log.rewards[rows], log.propensities[rows], clip=clip, self_normalised=steady
                ),
                groups,
            )
        predicted = offpolicy.cross_fitted_rewards(X, log.actions, log.rewards, policy.shape[1])
        parts = policy, log.actions, log.rewards, log.propensities, predicted
        clip = 0 if method == "direct" else clip
        return offpolicy.value_by_group(
            lambda rows: offpolicy.doubly_robust_value(*(part[rows] for part in parts), clip=clip), groups
        )

    def _policy_of(self, X: Any, sensitive_features: Any) -> tuple[Floats, Groups | None]:
        """Return each person's action probabilities, and their group if it is known."""
        raise NotImplementedError

    def _regressors(self, X: Any) -> Any:
        """Return contexts as finite numbers, for a regression of rewards."""
        return self._contexts(X, reset=False)

    def _sample(self, probabilities: Floats, random_state: Any) -> tuple[Any, Floats]:
        draws = check_random_state(random_state).uniform(size=(len(probabilities), 1))
        codes = (probabilities.cumsum(1) < draws).sum(1).clip(max=probabilities.shape[1] - 1)
        return self.classes_[codes], probabilities[np.arange(len(codes)), codes]


def no_missing_labels(y: Any) -> None:
    """Raise if labels of any type are missing: scikit-learn notices only missing numbers."""
    if y is not None:
        missing = int(np.sum(pd.isna(np.asarray(y, dtype=object))))
        if missing:
            raise ValueError(
                f"Input y contains NaN: {missing} labels are missing, but expected one per person."
            )


def all_finite(said: Floats) -> Floats:
    """Return the policies' probabilities, (people, groups, actions); raise if any of them is not finite."""
    if not np.isfinite(said).all():
        row = int(np.argmin(np.isfinite(said).all(axis=(1, 2))))
        raise ValueError(
            f"The policies give no finite probability in row {row}: its numbers are too large to compute "
            "with. Scale the columns of X to unit variance, or leave such rows out."
        )
    return said


def distinct_classes(classes: Any) -> Any:
    """Return the sorted classes, without duplicates; raise if there are fewer than two."""
    found = sorted_unique(np.asarray(classes).astype(object))[0]
    if len(found) < 2:
        raise ValueError(f"Got classes={found.tolist()}, but expected at least two different ones.")
    try:
        return np.unique(np.asarray(classes))
    except TypeError:
        raise ValueError(
            f"Got classes {listed(found)} of different types, or missing ones; expected one type."
        ) from None
