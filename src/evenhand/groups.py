"""Groups: the distinct values of the sensitive features, or of their combinations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.arrays import Array, Codes, Flags
from evenhand.checks import did_you_mean
from evenhand.frames import as_pandas
from evenhand.wording import listed

EVERYONE = "everyone"  # the only group if there are no sensitive features
JOINT = " & "  # joins the values of several unnamed sensitive features into a group's name
NAMED = ", "  # joins the values of named ones, as in 'sex=f, senior=0'


def large_enough(sizes: npt.ArrayLike, least: int) -> Flags:
    """Return which groups have at least `least` people; if fewer than two do, all that have any people.

    >>> large_enough([500, 400, 4], 30).tolist(), large_enough([500, 4], 30).tolist()
    ([True, True, False], [True, True])
    """
    counts = np.asarray(sizes)
    enough: Flags = counts >= least
    return enough if enough.sum() > 1 else counts > 0


class Groups(NamedTuple):
    """Each person's group as an integer, and the groups' names in sorted order."""

    codes: Codes
    names: Array


def encode_groups(sensitive_features: Any, n_people: int) -> Groups:
    """Return each person's group as a number, and the groups' names.

    The values of one column keep their type; several columns are combined. None puts everybody in one group
    named 'everyone'.

    >>> encode_groups(["f", "m", "f"], 3)
    Groups(codes=array([0, 1, 0]), names=array(['f', 'm'], dtype=object))
    >>> encode_groups({"sex": ["f", "m", "f"], "old": [0, 0, 1]}, 3).names.tolist()
    ['sex=f, old=0', 'sex=f, old=1', 'sex=m, old=0']
    """
    values = group_values(sensitive_features, n_people)
    names, codes = sorted_unique(values)
    return Groups(codes, names)


def groups_by_name(sensitive_features: Any, X: Any) -> tuple[Any, list[str]]:
    """Return the columns of X that `sensitive_features` names, and their names; anything else unchanged.

    >>> people = pd.DataFrame({"age": [25, 31, 47], "sex": ["f", "m", "f"]})
    >>> found, names = groups_by_name("sex", people)
    >>> found.tolist(), names, groups_by_name(["f", "m", "f"], people)[1]
    (['f', 'm', 'f'], ['sex'], [])
    """
    columns = getattr(X, "columns", None)
    one = isinstance(sensitive_features, str)
    names = [sensitive_features] if one else sensitive_features
    if one and columns is None:
        raise ValueError(f"Got sensitive_features={sensitive_features!r}, but no X with such a column.")
    several = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    several = several and len(set(names)) == len(names)  # else they are people's groups, if too few
    if columns is None or not (one or (several and len(names) < len(X))):
        return sensitive_features, []
    for name in names:
        check_column("sensitive_features", name, columns)
    return (X[names[0]] if len(names) == 1 else X[list(names)]), list(names)


def check_column(argument: str, name: Any, columns: Any) -> None:
    """Raise if X has no column that an argument names."""
    if name not in columns:
        hint = did_you_mean(name, columns)
        raise ValueError(f"Got {argument}={name!r}, but X has no such column.{hint}")


def column_names(sensitive_features: Any) -> list[str] | None:
    """Return the names of several columns; None for one column, and for columns without names.

    >>> column_names({"sex": ["f", "m"], "old": [0, 1]})
    ['sex', 'old']
    >>> column_names([["f", 0], ["m", 1]])
    """
    return None if sensitive_features is None else _names_of_several(as_columns(sensitive_features))


def column_called(sensitive_features: Any) -> str:
    """Return the name of the one sensitive column; 'group' if it has none, or if there are several.

    >>> column_called({"sex": [0, 1]}), column_called([0, 1])
    ('sex', 'group')
    """
    names = as_columns(sensitive_features).columns.tolist()
    return names[0] if len(names) == 1 and isinstance(names[0], str) else "group"


def group_values(
    sensitive_features: Any, n_people: int, columns: list[str] | None = None, *, named: bool = True
) -> Array:
    """Return one group value per person; raise if their number is wrong or one is missing.

    `columns` are the names that `fit` saw. Several columns are joined in that order, whatever their order
    here, and with their names if `named` is true.
    """
    if sensitive_features is None:
        return np.full(n_people, EVERYONE, dtype=object)
    frame = _in_order(as_columns(sensitive_features), columns)
    if len(frame) != n_people:
        raise ValueError(
            f"Got sensitive_features for {len(frame)} people, but expected one value for each of {n_people}."
        )
    for column in frame.columns:
        missing = int(frame[column].isna().sum())
        if missing:
            where = "" if frame.shape[1] == 1 else f" in column {column!r}"
            raise missing_groups(missing, where)
    if frame.shape[1] == 1:
        return np.asarray(frame.iloc[:, 0].to_numpy(dtype=object))
    texts = [frame.iloc[:, position].astype(str).to_numpy(dtype=object) for position in range(frame.shape[1])]
    joined = np.asarray(join_values(texts, _names_of_several(frame) if named else None))
    _check_one_name_each(texts, joined)
    return joined


def missing_groups(missing: int, where: str) -> ValueError:
    """Return the error for people without a group."""
    return ValueError(
        f"sensitive_features has {missing} missing values{where}; expected a group for every person. "
        "Drop these people, or give the missing values a name of their own."
    )


def no_groups(names: Array, then: str = "") -> ValueError:
    """Return the error for groups that were not passed; `then` is more advice."""
    return ValueError(
        f"Got no sensitive_features, but expected each person's group, one of {listed(names)}.{then}"
    )


def join_values(columns: Sequence[Any], names: Sequence[str] | None = None) -> Any:
    """Join the values of several text columns into group names; the values of one column stay as they are.

    >>> join_values([pd.Series(["f", "m"]), pd.Series(["0", "1"])]).tolist()
    ['f & 0', 'm & 1']
    >>> join_values([pd.Series(["f", "m"]), pd.Series(["0", "1"])], ["sex", "senior"]).tolist()
    ['sex=f, senior=0', 'sex=m, senior=1']
    """
    if names is None or len(columns) == 1:
        return reduce(lambda joined, column: joined + JOINT + column, columns)
    told = [f"{name}=" + column for name, column in zip(names, columns, strict=True)]
    return reduce(lambda joined, column: joined + NAMED + column, told)


def _check_one_name_each(texts: list[Array], joined: Array) -> None:
    """Raise if two combinations get the same name: 'x & y' with 'z', and 'x' with 'y & z'."""
    if not any("&" in value or "," in value for text in texts for value in pd.unique(text)):
        return
    combinations = pd.DataFrame(dict(enumerate(texts))).assign(joined=joined).drop_duplicates()
    twice = combinations[combinations["joined"].duplicated(keep=False)]
    if len(twice):
        name = twice["joined"].iloc[0]
        same = twice.loc[twice["joined"] == name].drop(columns="joined").to_numpy().tolist()
        raise ValueError(
            f"Got the combinations {same[0]} and {same[1]} in sensitive_features, which are both named "
            f"{name!r}; expected values that stay apart when they are joined. Rename some of them."
        )


def codes_of(sensitive_features: Any, n_people: int, names: Array, columns: list[str] | None = None) -> Codes:
    """Return each person's group as its position in `names`, the groups that `fit` saw; others are an error.

    `columns` are the `column_names` that `fit` saw.
    """
    # Group names hold no column names if `fit` got none, or was that of an earlier version.
    named = any("=" in str(name) for name in names)
    values = group_values(sensitive_features, n_people, columns, named=named)
    position = {name: code for code, name in enumerate(names)}
    seen, inverse = sorted_unique(values)
    unknown = [name for name in seen if name not in position]
    if unknown:
        if sensitive_features is None:
            raise no_groups(names)
        saw = f"fit saw only {listed(names)}"
        if list(names) == [EVERYONE]:
            saw = "the model was fitted without sensitive_features; expected none"
        raise ValueError(f"Got group {unknown[0]!r} in sensitive_features, but {saw}.")
    return np.asarray([position[name] for name in seen], dtype=np.int64)[inverse]


def sorted_unique(values: Array) -> tuple[Array, Codes]:
    """Return the distinct values in order, and each value's position; mixed types are sorted as text."""
    codes, found = pd.factorize(values)
    try:
        order = sorted(range(len(found)), key=lambda at: found[at])
    except TypeError:
        order = sorted(range(len(found)), key=lambda at: str(found[at]))
    rank = np.empty(len(found), dtype=np.int64)
    rank[order] = np.arange(len(found))
    names = np.empty(len(found), dtype=object)
    names[:] = [found[at] for at in order]
    return names, rank[codes]


def as_columns(sensitive_features: Any) -> pd.DataFrame:
    """Return sensitive features of any type as columns of a DataFrame."""
    sensitive_features = as_pandas(sensitive_features)
    if isinstance(sensitive_features, pd.DataFrame):
        frame = sensitive_features
    elif isinstance(sensitive_features, pd.Series):
        frame = sensitive_features.to_frame()
    else:
        try:
            frame = pd.DataFrame(sensitive_features)
        except ValueError as error:
            raise ValueError(
                "Got sensitive_features that are neither a column nor a table; "
                f"expected one value per person, or one column per sensitive feature ({error})."
            ) from error
    if frame.shape[1] == 0:
        raise ValueError("Got sensitive_features with no column, but expected at least one.")
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise ValueError(
            f"Got several columns named {twice[0]!r} in sensitive_features, but expected each name once."
        )
    return frame


def _names_of_several(frame: pd.DataFrame) -> list[str] | None:
    several = frame.shape[1] > 1 and all(isinstance(name, str) for name in frame.columns)
    return list(frame.columns) if several else None


def _in_order(frame: pd.DataFrame, columns: list[str] | None) -> pd.DataFrame:
    """Return named columns in the order that `fit` saw; give the same number of unnamed ones these names."""
    came = _names_of_several(frame)
    if columns is not None and came is None and frame.shape[1] == len(columns):
        return frame.set_axis(columns, axis=1)
    if columns is None or came is None:
        return frame
    if sorted(came) != sorted(columns):
        raise ValueError(
            f"Got sensitive_features with the columns {listed(came)}, but fit saw {listed(columns)}."
        )
    return frame[columns]
