"""Preprocessing, fitted on the training part alone: categories one-hot, numbers standardised."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from evenhand.arrays import Array, Codes, Flags
from evenhand.checks import MIN_GROUP
from evenhand.groups import encode_groups
from evenhand.tables.columns import is_number
from evenhand.tables.dataset import Dataset
from evenhand.tables.splits import Split

# Below this share of nonzeros, sparse rows are faster than dense ones (benchmarks/training.py shows both).
SPARSE_BELOW = 0.3
FARTHEST = 1e20  # standard deviations from the mean: beyond this, single precision may overflow
_MOST_CATEGORIES = 100  # of one column; with more, the rarest in the training part share a feature


class Part(NamedTuple):
    """One part, preprocessed: features, labels, groups, and the contexts (for Gower's similarity)."""

    X: npt.NDArray[np.float32] | sparse.csr_array
    y: Array
    s: Array
    contexts: pd.DataFrame
    w: Array | None = None  # how many people each person stands for


@dataclass(frozen=True)
class Parts:
    """The three parts, the preprocessor fitted on the training part, and how models are measured."""

    train: Part
    validation: Part
    test: Part
    preprocessor: ColumnTransformer
    pos_label: Any
    min_group: int = MIN_GROUP  # people; smaller groups are filled up to this when compared
    threshold: float | None = None  # the lowest probability at which `pos_label` is decided


def make_preprocessor(contexts: pd.DataFrame) -> ColumnTransformer:
    """Return the paper's preprocessing, not yet fitted: categories one-hot, numbers standardised.

    A missing number becomes the mean; if `fit` saw some, a feature marks them. The rarest of more than 100
    categories share a feature. A category that `fit` did not see counts as one of these, or is all zeros if
    there are none. The output is float32, and sparse if that is faster.

    Parameters
    ----------
    contexts : DataFrame
        Numbers and categories; only the kinds of the columns are used.

    Returns
    -------
    ColumnTransformer

    Examples
    --------
    >>> people = pd.DataFrame({"age": [20.0, 40.0], "sex": ["f", "m"]})
    >>> make_preprocessor(people).fit_transform(people).tolist()
    [[-1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """
    numeric = [name for name in contexts.columns if is_number(contexts[name])]
    categorical = [name for name in contexts.columns if name not in set(numeric)]
    numbers = make_pipeline(
        FunctionTransformer(as_float32, feature_names_out="one-to-one"),
        SimpleImputer(strategy="mean", add_indicator=True, keep_empty_features=True),
        StandardScaler(),
    )
    categories = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=_MOST_CATEGORIES, dtype=np.float32
    )
    return ColumnTransformer(
        [("numbers", numbers, numeric), ("categories", categories, categorical)],
        sparse_threshold=SPARSE_BELOW,
        verbose_feature_names_out=False,
    )


def prepare(
    dataset: Dataset, parts: Split, *, min_group: int = MIN_GROUP, fitted: ColumnTransformer | None = None
) -> Parts:
    """Fit the preprocessing on the training part alone, and apply it to all three parts.

    Parameters
    ----------
    dataset : Dataset
        The people.
    parts : Split
        Who is in which part.
    min_group : int
        When groups are compared, a smaller one is filled up to this number of people (see `explore`).
    fitted : ColumnTransformer, optional
        A preprocessor that was fitted on more of the training part than these people.

    Returns
    -------
    Parts

    Examples
    --------
    >>> from evenhand.datasets import load_german
    >>> from evenhand.tables.splits import split
    >>> german = load_german()
    >>> prepare(german, split(german, seed=0)).train.X.shape
    (700, 57)
    """
    training = dataset.contexts.iloc[parts.train]
    preprocessor = make_preprocessor(training).fit(training) if fitted is None else fitted
    label = dataset.label.to_numpy(dtype=None if pd.api.types.is_numeric_dtype(dataset.label) else object)
    groups = encode_groups(dataset.sensitive_features, len(dataset))
    s = groups.names[groups.codes]

    def ready(rows: Codes) -> Part:
        contexts = dataset.contexts.iloc[rows].reset_index(drop=True)
        w = None if dataset.weights is None else dataset.weights.to_numpy()[rows]
        return Part(encode(preprocessor, contexts), label[rows], s[rows], contexts, w)

    train, validation, test = map(ready, parts)
    return Parts(train, validation, test, preprocessor, dataset.pos_label, min_group)


def encode(preprocessor: ColumnTransformer, contexts: pd.DataFrame) -> Any:
    """Return the features of contexts from a fitted preprocessor, as a dense or sparse array.

    There is no warning about categories that training did not see.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Found unknown categories")
        features = preprocessor.transform(contexts)
    return features if isinstance(features, np.ndarray) else sparse.csr_array(features)


def places_of_categories(
    preprocessor: ColumnTransformer, begin: int
) -> tuple[dict[str, tuple[dict[str, int], int]], int]:
    """Return, per column, the feature of each category and that of all others (-1: none); and the width.

    The first of these features has the number `begin`.
    """
    found = {}
    for _, encoder, names in preprocessor.transformers_:
        for at, name in enumerate(names if hasattr(encoder, "categories_") else ()):
            together = getattr(encoder, "infrequent_categories_", None)
            rare = set() if together is None or together[at] is None else set(together[at].tolist())
            own = [category for category in encoder.categories_[at].tolist() if category not in rare]
            found[name] = dict(zip(own, range(begin, begin + len(own)), strict=True)), -1
            begin += len(own)
            if rare:
                found[name] = found[name][0], begin
                begin += 1
    return found, begin


def told_missing(preprocessor: ColumnTransformer) -> set[str]:
    """Return the numeric columns with gaps in training: features mark where these are missing."""
    for _, step, names in preprocessor.transformers_:
        if isinstance(step, Pipeline) and len(names):
            indicator = step[1].indicator_
            return set() if indicator is None else {names[at] for at in indicator.features_}
    return set()


def computable(features: Any) -> Flags:
    """Return which rows a model can compute with: those without numbers that are too large after scaling."""
    if isinstance(features, np.ndarray):
        return np.asarray((np.abs(features) <= FARTHEST).all(axis=1))
    rows = np.repeat(np.arange(features.shape[0]), np.diff(features.indptr))
    good = np.ones(features.shape[0], dtype=np.bool_)
    good[rows[~(np.abs(features.data) <= FARTHEST)]] = False
    return good


def check_preprocessor(preprocessor: Any) -> None:
    """Raise unless a preprocessor from a file is one of ours, with finite arrays of the right shape."""
    if type(preprocessor) is not ColumnTransformer:
        raise ValueError(f"Got a preprocessor of the type {type(preprocessor).__name__}, which is not ours.")
    for _, step, columns in preprocessor.transformers_:
        if len(columns) == 0:  # such a step is never fitted, and never used
            continue
        parts = [part for _, part in step.steps] if type(step) is Pipeline else [step]
        for part in parts:
            _check_part(part, len(columns))


def _check_part(part: Any, n_columns: int) -> None:
    if type(part) is SimpleImputer:
        more = 0 if part.indicator_ is None else len(part.indicator_.features_)
        ours = type(part.indicator_) in (MissingIndicator, type(None)) and 0 <= more <= n_columns
        numbers = [part.statistics_]
    elif type(part) is StandardScaler:
        ours, numbers = bool((part.scale_ > 0).all()), [part.mean_, part.scale_]
    elif type(part) is OneHotEncoder:
        ours, numbers = len(part.categories_) == n_columns, []
    else:
        ours, numbers = part == "drop" or getattr(part, "func", None) is as_float32, []
    if not ours or any(array.ndim != 1 or not np.isfinite(array).all() for array in numbers):
        raise ValueError(f"Got a {type(part).__name__} in the preprocessing that evenhand does not write.")


def as_float32(columns: Any) -> npt.NDArray[np.float32]:
    """Return numbers as float32, with NaN for the missing; a step of the preprocessing."""
    return np.asarray(pd.DataFrame(columns).to_numpy(dtype=np.float32, na_value=np.nan))
