"""The columns of a table that a metric needs, by name; a table not in memory is counted where it is."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand.arrays import Codes, Floats
from evenhand.checks import did_you_mean
from evenhand.frames import as_lazy, as_pandas
from evenhand.groups import missing_groups


class Repeats(NamedTuple):
    """For rows that stand for several people: the number of people, and the sum of their squared weights."""

    people: Codes
    squares: Floats | None = None


class Columns(NamedTuple):
    """The columns that a metric's arguments name; with `repeats`, rows stand for several identical people."""

    y_true: Any
    y_pred: Any
    sensitive_features: Any
    sample_weight: Any
    repeats: Repeats | None = None


def columns_of(
    data: Any, y_true: Any, y_pred: Any, sensitive_features: Any, sample_weight: Any, *, count: bool = True
) -> Columns:
    """Return the columns of a table that the arguments name.

    A table that is not in memory is counted where it is. If the metric needs individual people (`count` is
    False), only these columns are loaded.

    >>> people = {"paid": [0, 1], "decision": [0, 0], "sex": ["f", "m"]}
    >>> columns_of(pd.DataFrame(people), "paid", "decision", "sex", None).sensitive_features.tolist()
    ['f', 'm']
    """
    groups = [] if sensitive_features is None else sensitive_features
    groups = [groups] if isinstance(groups, str) else list(groups)
    given = {"y_true": y_true, "y_pred": y_pred, "sample_weight": sample_weight}
    named = {name: of for name, of in given.items() if of is not None}
    named |= {f"sensitive_features {at}": name for at, name in enumerate(groups)}
    lazy = as_lazy(data)
    there = list((as_pandas(data) if lazy is None else lazy.collect_schema()).keys())
    for argument, name in named.items():
        if not isinstance(name, str) or name not in there:
            raise ValueError(
                f"Got {argument.split()[0]} {name!r} and data, but expected the name of a column of data."
                f"{did_you_mean(name, there)}"
            )
    if lazy is None or not count:
        frame = as_pandas(data if lazy is None else lazy.select(*dict.fromkeys(named.values())))
        taken = {argument: frame[name] for argument, name in named.items()}
        return Columns(taken["y_true"], taken["y_pred"], _joint(taken, groups), taken.get("sample_weight"))
    from evenhand.metrics.engine import MOST_CELLS, PEOPLE, Engine  # with narwhals, only where it is needed

    engine = Engine(lazy)
    keys = {argument: name for argument, name in named.items() if argument != "sample_weight"}
    rows = engine.people({key: engine.column(name) for key, name in keys.items()}, sample_weight, MOST_CELLS)
    for key in keys:
        if missing := int(rows.loc[rows[key].isna(), PEOPLE].sum()):
            if key in given:
                raise ValueError(f"Got {missing} missing labels in {key}, but expected one per person.")
            raise missing_groups(missing, "" if len(groups) == 1 else f" in column {keys[key]!r}")
    taken, weighted = {key: rows[key] for key in keys}, sample_weight is not None
    repeats = Repeats(rows[PEOPLE].to_numpy(), rows["squares"].to_numpy(dtype=float) if weighted else None)
    weights = rows["weight"] if weighted else None
    return Columns(taken["y_true"], taken["y_pred"], _joint(taken, groups), weights, repeats)


def _joint(taken: dict[str, Any], groups: list[str]) -> Any:
    """Return the groups in the form that sensitive features have when they are passed directly."""
    columns = [np.asarray(taken[f"sensitive_features {at}"]) for at in range(len(groups))]
    if not columns:
        return None
    return columns[0] if len(columns) == 1 else pd.DataFrame(dict(zip(groups, columns, strict=True)))
