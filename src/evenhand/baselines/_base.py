"""The base class of all baselines: input checks, predictions by group, checkpoints, collapse warnings."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from evenhand.arrays import Array, Codes, Floats
from evenhand.frames import as_pandas
from evenhand.groups import codes_of, column_names, encode_groups
from evenhand.metrics.collapse import CollapseWarning, one_decision
from evenhand.wording import listed

Callback = Callable[[int, Any], bool | None] | None
VARIANTS = ("literature", "authors")  # as originally published, or as in the code of Hu and Rangwala


class Baseline(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose probabilities may depend on the person's group.

    Subclasses implement `fit` and `_probabilities`, and set the two flags below.
    """

    _two_labels_only = False

    @property
    def _uses_group(self) -> bool:
        """Whether a prediction depends on the group."""
        return True

    @property
    def n_iter_(self) -> int:
        """`n_steps_`, under the name that scikit-learn expects next to `max_iter`."""
        return int(self.n_steps_)

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, callback: Callback = None) -> Self:
        """Train on people, their labels and their groups.

        Parameters
        ----------
        X : array or sparse array of shape (people, features)
            The contexts, without the sensitive features.
        y : array of shape (people,)
            The labels.
        sensitive_features : array or DataFrame, optional
            Each person's group; with None, everybody is in one group.
        callback : callable, optional
            Called as `callback(step, model)` every `checkpoint_every` steps and at the end; it may return
            True to stop early.
        """
        raise NotImplementedError

    def _probabilities(self, X: Any, codes: Codes) -> Floats:
        """Return every action's probability for checked rows, each as a member of the given group."""
        raise NotImplementedError

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return each person's action probabilities, (people, actions), in the order of `classes_`."""
        X = self._rows(X)
        return self._probabilities(X, self._codes(sensitive_features, X.shape[0]))

    def predict(self, X: Any, *, sensitive_features: Any = None) -> Array:
        """Return each person's most probable action."""
        probabilities = self.predict_proba(X, sensitive_features=sensitive_features)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """Return the accuracy of `predict`."""
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(as_pandas(y), predicted, sample_weight=sample_weight))

    def probabilities_by_group(self, X: Any) -> Floats:
        """Return each person's action probabilities as a member of every group: (people, groups, actions)."""
        X = self._rows(X)
        n_people, n_groups = X.shape[0], len(self.groups_)
        if not self._uses_group:
            alone = self._probabilities(X, np.zeros(n_people, dtype=np.int64))
            return np.repeat(alone[:, None, :], n_groups, axis=1)
        every = [self._probabilities(X, np.full(n_people, code, dtype=np.int64)) for code in range(n_groups)]
        return np.stack(every, axis=1)

    def _admit(self, X: Any, y: Any, sensitive_features: Any) -> tuple[Any, Codes, Codes]:
        """Check the arguments of `fit`; return rows, labels and groups, the last two as codes."""
        # If this fit fails, the earlier model must not remain with new labels.
        self.__dict__.pop("n_steps_", None)
        X, y = validate_data(self, as_pandas(X), as_pandas(y), accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"Got 1 class in y, {self.classes_.tolist()[0]!r}, but expected at least 2.")
        if self._two_labels_only and len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: "
                f"got {len(self.classes_)} labels, but {type(self).__name__} expected 2."
            )
        codes, self.groups_ = encode_groups(sensitive_features, X.shape[0])
        self.sensitive_names_ = column_names(sensitive_features)
        return X, labels.astype(np.int64), codes

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self, "n_steps_")
        return validate_data(self, as_pandas(X), accept_sparse="csr", dtype=np.float64, reset=False)

    def _codes(self, sensitive_features: Any, n_people: int) -> Codes:
        if not self._uses_group:
            return np.zeros(n_people, dtype=np.int64)
        if sensitive_features is None and len(self.groups_) > 1:
            raise ValueError(
                "Got no sensitive_features, but expected each person's group: fit saw "
                f"{listed(self.groups_)}, and the prediction depends on it."
            )
        columns = getattr(self, "sensitive_names_", None)  # absent in older model files
        return codes_of(sensitive_features, n_people, self.groups_, columns)

    def _warn_if_collapsed(self, probabilities: Floats, weight: str) -> None:
        """Warn if everybody gets the same decision, and name the weight that is the most likely cause."""
        action = one_decision(probabilities)
        if action is not None:
            fairness = getattr(self, weight)
            remedy = f"Lower {weight} (now {fairness:g})" if fairness > 0 else "Raise classifier_weight"
            warnings.warn(
                f"The representation collapsed: {type(self).__name__} decides "
                f"{self.classes_.tolist()[action]!r} for all {len(probabilities)} people it learned from. "
                f"{remedy}.",
                CollapseWarning,
                stacklevel=3,
            )

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that sparse rows are accepted, and whether more than two labels are."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = not self._two_labels_only
        return tags


def wants_to_stop(callback: Callback, step: int, model: Any) -> bool:
    """Call the callback, if there is one; return whether to stop training."""
    return callback is not None and bool(callback(step, model))


def two_columns(positive: Floats) -> Floats:
    """Return the probabilities of both actions, given that of the second.

    >>> two_columns(np.array([0.25]))
    array([[0.75, 0.25]])
    """
    return np.column_stack([1 - positive, positive])


def dense(X: Any) -> Floats:
    """Return rows as a dense array."""
    rows: Floats = X if isinstance(X, np.ndarray) else X.toarray()
    return rows
