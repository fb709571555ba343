"""Preprocessing that only training people move: categories one-hot, numbers z-scored."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from evenhand.arrays import Array, Codes
from evenhand.groups import encode_groups
from evenhand.tables.columns import is_number
from evenhand.tables.dataset import Dataset
from evenhand.tables.splits import Split

# Below this share of nonzeros a sparse row is quicker than a dense one (benchmarks/training.py shows both).
SPARSE_BELOW = 0.3
_MOST_CATEGORIES = 100  # of one column; beyond that the rarest in the training part share one


class Part(NamedTuple):
    """One part made ready: features, labels, groups, and the contexts as they were (Gower's similarity)."""

    X: npt.NDArray[np.float32] | sparse.csr_array
    y: Array
    s: Array
    contexts: pd.DataFrame


@dataclass(frozen=True)
class Parts:
    """The three parts, and the preprocessor that the training part fitted."""

    train: Part
    validation: Part
    test: Part
    preprocessor: ColumnTransformer
    pos_label: Any


def make_preprocessor(contexts: pd.DataFrame) -> ColumnTransformer:
    """Return the paper's preprocessing, not yet fitted: categories one-hot, numbers z-scored.

    A missing number becomes the mean and gets a column that says so; a category that `fit` never saw becomes
    all zeros; the rarest of more than 100 categories share a column. The output is float32, sparse where
    that pays.

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


def prepare(dataset: Dataset, parts: Split) -> Parts:
    """Fit the preprocessing on the training part alone, and make all three parts ready.

    Parameters
    ----------
    dataset : Dataset
        The people.
    parts : Split
        Who is in which part.

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
    preprocessor = make_preprocessor(training).fit(training)
    label = dataset.label.to_numpy(dtype=object if not is_number(dataset.label) else None)
    groups = encode_groups(dataset.sensitive_features, len(dataset))
    s = groups.names[groups.codes]

    def ready(rows: Codes) -> Part:
        contexts = dataset.contexts.iloc[rows].reset_index(drop=True)
        return Part(encode(preprocessor, contexts), label[rows], s[rows], contexts)

    train, validation, test = map(ready, parts)
    return Parts(train, validation, test, preprocessor, dataset.pos_label)


def encode(preprocessor: ColumnTransformer, contexts: pd.DataFrame) -> Any:
    """Return the features that a fitted preprocessor makes of contexts: an array, or a sparse one.

    A category that training never met is all zeros, without a warning.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Found unknown categories")
        features = preprocessor.transform(contexts)
    return features if isinstance(features, np.ndarray) else sparse.csr_array(features)


def as_float32(columns: Any) -> npt.NDArray[np.float32]:
    """Return numbers as float32, with NaN for the missing; a step of the preprocessing."""
    return np.asarray(pd.DataFrame(columns).to_numpy(dtype=np.float32, na_value=np.nan))
