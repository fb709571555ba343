"""Train, validation and test: the seeded split, and the preprocessing that only training people move."""

from __future__ import annotations

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

from evenhand.checks import integer, number, one_of
from evenhand.contexts import SPARSE_BELOW
from evenhand.datasets.base import Dataset
from evenhand.groups import encode_groups, sorted_unique

Indices = npt.NDArray[np.int64]
FRACTIONS = (0.70, 0.15, 0.15)
_MOST_CATEGORIES = 100  # of one column; beyond that the rarest in the training part share one


class Split(NamedTuple):
    """Row numbers of the three parts, each in a random order."""

    train: Indices
    validation: Indices
    test: Indices


class Part(NamedTuple):
    """One part made ready: features, labels, groups, and the contexts as they were (Gower's similarity)."""

    X: npt.NDArray[np.float32] | sparse.csr_array
    y: npt.NDArray[Any]
    s: npt.NDArray[Any]
    contexts: pd.DataFrame


@dataclass(frozen=True)
class Parts:
    """The three parts, and the preprocessor that the training part fitted."""

    train: Part
    validation: Part
    test: Part
    preprocessor: ColumnTransformer
    pos_label: Any


def split(
    dataset: Dataset | int,
    *,
    seed: int,
    fractions: tuple[float, float, float] = FRACTIONS,
    stratify: Any = None,
) -> Split:
    """Split people at random: 70 % to train, 15 % to validate, 15 % to test. Same seed, same split, anywhere.

    Parameters
    ----------
    dataset : Dataset or int
        The data set, or only the number of people.
    seed : int
        Of NumPy's PCG64 generator.
    fractions : three floats
        They add up to 1.
    stratify : array, 'label', 'group' or 'both', optional
        Keep the share of each value in each part, to within two people; the names need a data set.

    Examples
    --------
    >>> split(10, seed=0).test.tolist()
    [5]
    """
    people = integer("the number of people", dataset) if not isinstance(dataset, Dataset) else len(dataset)
    integer("seed", seed, low=0)
    shares = _checked(fractions)
    random = np.random.Generator(np.random.PCG64(seed))
    order = random.permutation(people)
    if stratify is not None:
        order = order[np.argsort(_strata(dataset, stratify, people)[order], kind="stable")]
    train = _dealt(people, shares[0])
    rest = order[~train]
    validation = _dealt(len(rest), shares[1] / (shares[1] + shares[2]))
    parts = Split(*(random.permutation(rows) for rows in (order[train], rest[validation], rest[~validation])))
    for part, rows in zip(Split._fields, parts, strict=True):
        if len(rows) == 0:
            raise ValueError(f"{people} people are too few: the {part} part of {fractions!r} would be empty.")
    return parts


def published_split(dataset: Dataset, seed: int) -> Split:
    """Split with the published test part where one is known; elsewhere 70/15/15 at random, as the paper says.

    The validation part is then 15/85 of the people outside the test part, at random.

    >>> from evenhand.datasets import load_german
    >>> [len(part) for part in published_split(load_german(rows="published"), seed=0)]
    [659, 141, 200]
    """
    if dataset.test_rows is None:
        return split(dataset, seed=seed)
    integer("seed", seed, low=0)
    others = np.random.Generator(np.random.PCG64(seed)).permutation(np.flatnonzero(~dataset.test_rows))
    train = round(len(others) * FRACTIONS[0] / (FRACTIONS[0] + FRACTIONS[1]))
    return Split(others[:train], others[train:], np.flatnonzero(dataset.test_rows))


def make_preprocessor(contexts: pd.DataFrame) -> ColumnTransformer:
    """Return the paper's preprocessing, not yet fitted: categories one-hot, numbers z-scored.

    A missing number becomes the mean and gets a column that says so; a category that `fit` never saw becomes
    all zeros; the rarest of more than 100 categories share a column. The output is
    float32, sparse where that pays.

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

    >>> from evenhand.datasets import load_german
    >>> german = load_german()
    >>> prepare(german, split(german, seed=0)).train.X.shape
    (700, 57)
    """
    training = dataset.contexts.iloc[parts.train]
    preprocessor = make_preprocessor(training).fit(training)
    label = dataset.label.to_numpy(dtype=object if not is_number(dataset.label) else None)
    groups = encode_groups(dataset.sensitive_features, len(dataset))
    s = groups.names[groups.codes]

    def ready(rows: Indices) -> Part:
        contexts = dataset.contexts.iloc[rows].reset_index(drop=True)
        return Part(_features(preprocessor.transform(contexts)), label[rows], s[rows], contexts)

    train, validation, test = map(ready, parts)
    return Parts(train, validation, test, preprocessor, dataset.pos_label)


def is_number(column: pd.Series[Any]) -> bool:
    """Whether a column is treated as an amount; True and False are categories."""
    return pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)


def as_float32(columns: Any) -> npt.NDArray[np.float32]:
    """Return numbers as float32, with NaN for the missing; a step of the preprocessing."""
    return np.asarray(pd.DataFrame(columns).to_numpy(dtype=np.float32, na_value=np.nan))


def _features(transformed: Any) -> Any:
    return transformed if isinstance(transformed, np.ndarray) else sparse.csr_array(transformed)


def _checked(fractions: tuple[float, float, float]) -> npt.NDArray[np.float64]:
    if len(fractions) != 3:
        raise ValueError(f"Got fractions={fractions!r}, but expected three: train, validation, test.")
    shares = np.asarray([number("fractions", share, low=0, high=1, open_low=True) for share in fractions])
    if not np.isclose(shares.sum(), 1):
        raise ValueError(f"Got fractions={fractions!r}, which add up to {shares.sum():g}, but expected 1.")
    return shares


def _dealt(people: int, share: float) -> npt.NDArray[np.bool_]:
    """Deal a share of the places out evenly along a line: any stretch of it gets its share, to within one."""
    so_far = np.floor(share * np.arange(people + 1) + 0.5)
    return np.asarray(np.diff(so_far) > 0)


def _strata(dataset: Dataset | int, stratify: Any, people: int) -> Indices:
    if not isinstance(stratify, str):
        return encode_groups(stratify, people).codes
    one_of("stratify", stratify, ("label", "group", "both"))
    if not isinstance(dataset, Dataset):
        raise ValueError(
            f"Got stratify={stratify!r} with a number of people, but expected a data set or an array."
        )
    label = sorted_unique(dataset.label.to_numpy(dtype=object))[1]
    group = encode_groups(dataset.sensitive_features, people).codes
    both = label * len(np.unique(group)) + group
    return {"label": label, "group": group, "both": both}[stratify]
