"""Rows of several tables belong together by their position, which pandas' own labels may contradict."""

from __future__ import annotations

from typing import Any

import pandas as pd


def check_order(**given: Any) -> None:
    """Raise if pandas objects have the same index labels in different orders.

    >>> y = pd.Series([0, 1])
    >>> check_order(X=pd.DataFrame({"age": [25, 31]}), y=y)
    >>> check_order(X=pd.DataFrame({"age": [25, 31]}), y=y[::-1])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: Got y with the index of X in another order; expected one order, since rows go by ...
    """
    kinds = (pd.DataFrame, pd.Series)
    labelled = {name: values for name, values in given.items() if isinstance(values, kinds)}
    if not labelled:
        return
    first, *others = labelled
    mine = labelled[first].index
    for name in others:
        theirs = labelled[name].index
        if len(mine) != len(theirs) or mine.nlevels != theirs.nlevels or mine.equals(theirs):
            continue
        if mine.is_unique and theirs.is_unique and len(mine.intersection(theirs)) == len(mine):
            raise ValueError(
                f"Got {name} with the index of {first} in another order; expected one order, since rows go "
                f"by position. Use {name}.loc[{first}.index], or {name}.to_numpy() if the rows are in order."
            )
