"""The people for whom the group matters most, and the neighbours with different decisions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Array, Codes, Floats
from evenhand.metrics.answers import Answers
from evenhand.metrics.gower import Neighbours
from evenhand.wording import as_plain, brief

PAIR_COLUMNS = ["person", "neighbour", "similarity", "group", "neighbour_group", "decision"]
PAIR_COLUMNS += ["neighbour_decision", "differ_in"]


def people_apart(
    frame: pd.DataFrame | None, answers: Answers, divergence: str, n_listed: int
) -> pd.DataFrame:
    """Return the people whose decision flips, then the others, each with the largest gaps first.

    People without a flip or a gap are not listed.
    """
    y, flips, decided = answers.y, answers.flips, answers.decisions_by_group
    if flips is None or decided is None:
        return pd.DataFrame()
    gaps, every = answers.gaps(divergence), answers.probabilities_by_group
    far = flips.astype(float) if gaps is None else gaps
    at = np.lexsort((np.arange(len(far)), -far, -flips.astype(int)))[:n_listed]
    at = at[(far[at] > 0) | flips[at]]
    listed: dict[str, Any] = {
        "group": [answers.groups[code] for code in answers.own[at]],
        "label": None if y is None else y[at],
        "decision": answers.decisions[at],
        "flips": flips[at],
    }
    if gaps is not None:
        listed["gap"] = gaps[at]
    for code, group in enumerate(answers.groups):
        listed[f"decided as {group}"] = decided[at, code]
        if every is not None:
            for action, label in enumerate(answers.labels):
                if len(answers.labels) > 2 or action == 1:
                    listed[f"P({label}) as {group}"] = every[at, code, action]
    found = pd.DataFrame(listed, index=at)
    return found if frame is None else beside_features(found, frame.iloc[at].set_axis(at))


def neighbour_pairs(
    frame: pd.DataFrame, answers: Answers, asked: Array, near: Neighbours, n_listed: int
) -> pd.DataFrame:
    """Return the most similar pairs with different decisions, each pair once; people are positions in X."""
    codes, decisions = answers.decided_own, answers.decisions
    rows, ranks = np.nonzero(codes[near.indices] != codes[asked][:, None])
    one, other = asked[rows], near.indices[rows, ranks]
    similarity = near.similarity[rows, ranks]
    pairs: dict[tuple[int, int], tuple[Any, ...]] = {}
    for at in np.lexsort((one, np.minimum(one, other), -similarity)):
        i, j = int(one[at]), int(other[at])
        if len(pairs) == n_listed:
            break
        groups = (answers.groups[answers.own[who]] for who in (i, j))
        pair = (i, j, similarity[at], *groups, decisions[i], decisions[j])
        pairs.setdefault((min(i, j), max(i, j)), (*pair, differences(frame.iloc[i], frame.iloc[j])))
    return pd.DataFrame(list(pairs.values()), columns=PAIR_COLUMNS)


def differences(mine: pd.Series[Any], theirs: pd.Series[Any]) -> str:
    """Return how two people differ: 'age 30 | 31, job cook | clerk'."""
    apart = [
        f"{name} {' | '.join(_both(mine[name], theirs[name]))}"
        for name in mine.index
        if not _same(mine[name], theirs[name])
    ]
    return ", ".join(apart) if apart else "nothing"


def _same(one: Any, other: Any) -> bool:
    missing = pd.isna(one), pd.isna(other)  # first: pd.NA is neither equal nor different
    return all(missing) if any(missing) else bool(one == other)


def _both(one: Any, other: Any) -> tuple[str, str]:
    """Return two different values as text that differs, with all digits if it takes them."""
    both = in_words(one), in_words(other)
    return both if both[0] != both[1] else (str(one), str(other))


def in_words(value: Any) -> str:
    """Return a value as text: dates without midnight, numbers without a .0, others with at most 5 digits.

    >>> [in_words(value) for value in (31, 31.0, 0.5, pd.Timestamp("2024-03-02"), float("nan"))]
    ['31', '31', '0.5', '2024-03-02', 'missing']
    >>> [in_words(value) for value in (3695.3350830078125, 123456.7, 0.000123456)]
    ['3695.3', '123457', '0.00012346']
    """
    if pd.isna(value):
        return "missing"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, float | np.floating):
        return brief(float(value))
    midnight = isinstance(value, pd.Timestamp) and value == value.normalize()
    return str(value.date() if midnight else value)


def in_full(value: Any) -> str:
    """Return a value as text that has all its digits: a person who is made up may lie beside a boundary.

    >>> [in_full(value) for value in (31.0, 3695.3350830078125, "cook")]
    ['31', '3695.3350830078125', 'cook']
    """
    whole = not isinstance(value, float | np.floating) or pd.isna(value) or float(value).is_integer()
    return in_words(value) if whole else repr(float(value))


def in_fewer_digits(row: pd.DataFrame) -> pd.DataFrame:
    """Return a person, a table of one row, 17 times: with numbers of 1, 2, … and of all 17 digits.

    >>> person = pd.DataFrame({"pay": [2052.290161132813], "share": [0.19700000000000006], "age": [31.0]})
    >>> in_fewer_digits(person).iloc[[1, 4, 16]].to_numpy().tolist()
    [[2100.0, 0.2, 31.0], [2052.3, 0.197, 31.0], [2052.290161132813, 0.19700000000000006, 31.0]]
    """
    shorter = {}
    for name in row.select_dtypes("float").columns:
        value = float(row[name].iloc[0])
        if not math.isnan(value) and not value.is_integer():
            shorter[name] = [float(f"{value:.{digits}g}") for digits in range(1, 18)]
    return row.iloc[np.zeros(17, dtype=np.int64)].reset_index(drop=True).assign(**shorter)


def with_values(row: pd.DataFrame, names: Sequence[Any], values: Floats) -> pd.DataFrame:
    """Return a person, a table of one row, once for each row of values, with these in the named columns.

    >>> person = pd.DataFrame({"pay": [2052.3], "job": ["cook"]})
    >>> with_values(person, ["pay"], np.array([[1.0], [2.0]])).to_numpy().tolist()
    [[1.0, 'cook'], [2.0, 'cook']]
    """
    people = row.iloc[np.zeros(len(values), dtype=np.int64)].reset_index(drop=True)
    return people.assign(**dict(zip(names, values.T, strict=True)))


def with_rows(table: pd.DataFrame, columns: Sequence[str], rows: Codes) -> pd.DataFrame:
    """Return a table with people's positions replaced by row numbers; -1 (not a real person) stays."""
    if table.empty:
        return table
    at = {name: table[name].to_numpy(dtype=np.int64) for name in columns}
    return table.assign(**{name: np.where(who < 0, -1, rows[who]) for name, who in at.items()})


def beside_features(found: pd.DataFrame, features: pd.DataFrame) -> pd.DataFrame:
    """Return findings about people with their features; names already taken get a trailing blank."""
    taken = {"person", *found.columns}  # the index is later turned into a column named person
    return found.join(features.rename(columns=lambda name: f"{name} " if name in taken else name))


def as_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a table's rows as JSON values."""
    return [plain(row) for row in frame.to_dict("records")]


def plain(value: Any) -> Any:
    """Return a value as a JSON value; dates and other types become text."""
    if isinstance(value, dict | pd.Series):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    value = as_plain(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return None if pd.isna(value) else in_words(value)
