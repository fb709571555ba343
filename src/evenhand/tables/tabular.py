"""A scikit-learn classifier for raw tables with text, dates and gaps; groups are routed automatically."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from evenhand.arrays import Array, Floats
from evenhand.frames import as_pandas
from evenhand.groups import EVERYONE, groups_by_name
from evenhand.tables.columns import kinds_of_columns, tidy_columns
from evenhand.tables.files import read_table
from evenhand.tables.matching import contexts_of
from evenhand.tables.preprocessing import check_preprocessor, encode, make_preprocessor
from evenhand.tables.roles import named_columns
from evenhand.wording import listed

_ROUTED = {"sensitive_features": True}


def tabular(
    estimator: Any, *, drop: str | Sequence[str] = (), categorical: str | Sequence[str] = ()
) -> TabularClassifier:
    """Return a classifier that takes a raw DataFrame and passes `sensitive_features` on to `estimator`.

    Text becomes one-hot categories, dates become days since 1970, and numbers are standardised. A missing
    number becomes the mean; if `fit` saw some, a feature marks them. A missing category is the category
    'missing'. A category that `fit` did not see is all zeros, or counts as a rare one if a column has more
    than 100. Identifiers and constant columns are left out, and `notes_` says so. The classifier works with
    `clone`, `GridSearchCV`, `evenhand.save` and `evenhand.audit`.

    Parameters
    ----------
    estimator : classifier
        A `CooperativeBandits`, or any other scikit-learn classifier.
    drop : str or list of str
        Columns that are not features.
    categorical : str or list of str
        Columns whose numbers are codes, not amounts.

    Examples
    --------
    >>> from evenhand import CooperativeBandits, tabular
    >>> people = pd.DataFrame({"age": [25, 31, 47, None] * 9, "job": list("abc") * 12})
    >>> people["sex"] = list("ffmm") * 9
    >>> hired = ["no", "yes", "yes", "no"] * 9
    >>> model = tabular(CooperativeBandits(1.0, epochs=300, random_state=0))
    >>> model.fit(people, hired, sensitive_features=people["sex"]).predict(people[:4]).tolist()
    ['no', 'yes', 'yes', 'no']
    """
    return TabularClassifier(estimator, drop=drop, categorical=categorical)


def _has(method: str) -> Callable[[TabularClassifier], bool]:
    """Return a test of whether the wrapped estimator has a method, or will have it after `fit`."""
    return lambda model: hasattr(getattr(model, "estimator_", model.estimator), method)


class TabularClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier on raw tables: preprocessing, then any estimator; see `tabular`.

    scikit-learn's metadata routing passes `sensitive_features` to it without a request. Columns of X with the
    name or the values of `sensitive_features` are never features. If `predict` gets no `sensitive_features`,
    it takes the columns that `fit` was given by name, or that had the same values, from X.

    Attributes
    ----------
    estimator_ : classifier
        The fitted estimator; `encode` returns the features that it takes.
    preprocessor_ : ColumnTransformer
        The fitted preprocessing.
    columns_ : dict
        Each feature's kind: 'number', 'category' or the format of a date.
    sensitive_columns_ : list of str
        The columns of X that hold the groups; empty if not all of them are in X.
    notes_ : list of str
        What was left out or changed.
    """

    __metadata_request__fit = _ROUTED
    __metadata_request__predict = _ROUTED
    __metadata_request__predict_proba = _ROUTED
    __metadata_request__score = _ROUTED

    def __init__(
        self, estimator: Any, *, drop: str | Sequence[str] = (), categorical: str | Sequence[str] = ()
    ) -> None:
        self.estimator = estimator
        self.drop = drop
        self.categorical = categorical

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None) -> Self:
        """Fit the preprocessing and the estimator.

        Parameters
        ----------
        X : DataFrame
            One row per person (pandas, Polars, Arrow, or anything that `pandas.DataFrame` takes).
        y : array
            The labels.
        sensitive_features : array, Series, DataFrame, str or list of str, optional
            Each person's group, or the names of columns of X that hold it.

        Raises
        ------
        ValueError
            If X holds the label, a named column does not exist, or no feature is left.
        """
        frame, y = _as_frame(X), as_pandas(y)
        sensitive_features, named = groups_by_name(as_pandas(sensitive_features), frame)
        dropped = named_columns("drop", self.drop, frame, "X")
        codes = named_columns("categorical", self.categorical, frame, "X")
        for name in set(_names(y)) & set(frame.columns) - set(dropped):
            raise ValueError(
                f"X has a column {name!r}, which is also the label's name; expected features only. If it is "
                f"the label, leave it out: tabular(..., drop={name!r})."
            )
        self.notes_: list[str] = []
        found, telling = _columns_of_groups(frame, sensitive_features)
        self.sensitive_columns_ = named or found
        self.notes_ += [f"{name!r} reveals the group, so it is not a feature." for name in telling]
        contexts, dates = tidy_columns(frame.drop(columns=[*dropped, *telling]), self.notes_, codes=codes)
        if contexts.shape[1] == 0:
            raise ValueError(f"X has no column left to learn from. {' '.join(self.notes_)}".strip())
        self.columns_ = kinds_of_columns(contexts, dates)
        self.feature_names_in_ = np.asarray(list(self.columns_), dtype=object)
        self.n_features_in_ = len(self.columns_)
        self.preprocessor_ = make_preprocessor(contexts).fit(contexts)
        estimator = clone(self.estimator)
        if sensitive_features is not None:
            _check_passes_groups(estimator)
        routed = _passed(estimator.fit, sensitive_features)
        self.estimator_ = estimator.fit(encode(self.preprocessor_, contexts), np.asarray(y), **routed)
        self.classes_ = self.estimator_.classes_
        return self

    def encode(self, X: Any) -> Any:
        """Return the features that `estimator_` takes, as a dense or sparse array."""
        check_is_fitted(self, "estimator_")
        return encode(self.preprocessor_, contexts_of(_as_frame(X), self.columns_, self.preprocessor_))

    def predict(self, X: Any, *, sensitive_features: Any = None) -> Array:
        """Return each person's decision, under their own group's policy if there is one per group."""
        return np.asarray(self._ask("predict", X, sensitive_features))

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return the probability of each label for each person."""
        return np.asarray(self._ask("predict_proba", X, sensitive_features))

    @available_if(_has("probabilities_by_group"))  # type: ignore[untyped-decorator]
    def probabilities_by_group(self, X: Any) -> Floats:
        """Return what each group's policy says about each person: (people, groups, labels)."""
        return np.asarray(self.estimator_.probabilities_by_group(self.encode(X)))

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """Return the accuracy."""
        decided = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(as_pandas(y), decided, sample_weight=sample_weight))

    @available_if(_has("compress"))  # type: ignore[untyped-decorator]
    def compress(self, group: Any) -> TabularClassifier:
        """Return the same preprocessing with one group's policy for everyone, which needs no groups."""
        check_is_fitted(self, "estimator_")
        single = copy.copy(self)
        single.estimator = single.estimator_ = self.estimator_.compress(group)
        single.sensitive_columns_ = []
        return single

    @property
    def groups_(self) -> Array:
        """The groups' names; 'everyone' alone if the fitted estimator does not use the group."""
        if not _takes_groups(self.estimator_.predict):
            return np.asarray([EVERYONE], dtype=object)
        return np.asarray(self.estimator_.groups_)

    @property
    def sensitive_names_(self) -> list[str] | None:
        """The names of the sensitive columns, if there are several; their combinations are the groups."""
        return getattr(self.estimator_, "sensitive_names_", None)

    def check_loaded(self) -> None:
        """Raise if this model, read from a file, is damaged."""
        if hasattr(self, "preprocessor_"):
            check_preprocessor(self.preprocessor_)
            self.encode(pd.DataFrame({name: [None] for name in self.columns_}, dtype=object))
        check = getattr(getattr(self, "estimator_", None), "check_loaded", None)
        if check is not None:
            check()

    def _ask(self, method: str, X: Any, sensitive_features: Any) -> Any:
        frame = _as_frame(X)
        features = self.encode(frame)
        sensitive_features, _ = groups_by_name(as_pandas(sensitive_features), frame)
        held = self.sensitive_columns_
        lacking = [name for name in held if name not in frame.columns]
        if sensitive_features is None and held and not lacking:
            sensitive_features = frame[held]
        ask = getattr(self.estimator_, method)
        try:
            return ask(features, **_passed(ask, sensitive_features))
        except ValueError as error:
            if sensitive_features is None and lacking:
                error.add_note(f"The groups are in {listed(lacking)}, which X lacks.")
            raise


def _passed(method: Any, sensitive_features: Any) -> dict[str, Any]:
    """Return the groups as a keyword argument, if the method takes it; a plain classifier doesn't."""
    taken = sensitive_features is not None and _takes_groups(method)
    return {"sensitive_features": sensitive_features} if taken else {}


def _check_passes_groups(estimator: Any) -> None:
    """Raise if groups would get lost on their way to an estimator inside a pipeline or a search."""
    piped = isinstance(estimator, Pipeline)
    inner: Any = estimator.steps[-1][1] if piped else getattr(estimator, "estimator", None)
    if hasattr(inner, "fit") and _takes_groups(inner.fit) and not _takes_groups(estimator.fit):
        raise ValueError(
            f"Got a {type(estimator).__name__} around {type(inner).__name__}, which would not get the "
            "groups; expected the estimator itself. Put tabular(...) inside the search or the pipeline."
        )


def _takes_groups(method: Any) -> bool:
    return "sensitive_features" in inspect.signature(method).parameters


def _as_frame(X: Any) -> pd.DataFrame:
    plain = isinstance(X, (np.ndarray, dict, list))
    return read_table(pd.DataFrame(X) if plain else X).frame.rename(columns=str)


def _names(values: Any) -> list[str]:
    """Return the names that a Series or several columns have."""
    columns = getattr(
        values, "columns", values if isinstance(values, dict) else [getattr(values, "name", "")]
    )
    return [str(name) for name in columns if name is not None and name != ""]


def _columns_of_groups(frame: pd.DataFrame, sensitive_features: Any) -> tuple[list[str], list[str]]:
    """Return the columns of X that hold the groups, [] if not all are there, and all that reveal a group.

    A column holds the groups if it has the same values. One with the name of the groups also reveals them:
    they may have been made from it.
    """
    if sensitive_features is None:
        return [], []
    if isinstance(sensitive_features, dict) or hasattr(sensitive_features, "columns"):
        names = getattr(sensitive_features, "columns", sensitive_features)
        columns = [np.asarray(sensitive_features[name]) for name in names]
    else:
        values = np.asarray(sensitive_features)
        columns = list(values.T) if values.ndim == 2 else [values]
    same = [_with_values(frame, pd.Series(column).astype(str)) for column in columns]
    telling = {*_names(sensitive_features), *(name for found in same for name in found)}
    held = [found[0] for found in same if found]
    return held if len(held) == len(same) else [], [name for name in frame.columns if name in telling]


def _with_values(frame: pd.DataFrame, values: pd.Series[Any]) -> list[str]:
    distinct = values.nunique()
    likely = [name for name in frame.columns if frame[name].nunique() == distinct]
    return [name for name in likely if frame[name].astype(str).tolist() == values.tolist()]
