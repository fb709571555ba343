"""Who: the people whose group matters most, and the neighbours who were treated differently."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.metrics.answers import Answers
from evenhand.metrics.gower import Neighbours

Array = npt.NDArray[Any]

PAIR_COLUMNS = [
    "person",
    "neighbour",
    "similarity",
    "group",
    "neighbour_group",
    "decision",
    "neighbour_decision",
    "differ_in",
]


def people_apart(
    frame: pd.DataFrame | None,
    y: Array | None,
    said: Answers,
    flips: Array | None,
    gaps: Array | None,
    n_listed: int,
) -> pd.DataFrame:
    """Return the people whose decision flips, then the others, the largest gap first in both.

    Nobody without a flip or a gap is listed.
    """
    if flips is None or said.decisions_by_group is None:
        return pd.DataFrame()
    far = flips.astype(float) if gaps is None else gaps
    at = np.lexsort((np.arange(len(far)), -far, -flips.astype(int)))[:n_listed]
    at = at[(far[at] > 0) | flips[at]]
    listed: dict[str, Any] = {
        "group": [said.groups[code] for code in said.own[at]],
        "label": None if y is None else y[at],
        "decision": said.decisions[at],
        "flips": flips[at],
    }
    if gaps is not None:
        listed["gap"] = gaps[at]
    for code, group in enumerate(said.groups):
        listed[f"decided as {group}"] = said.decisions_by_group[at, code]
        if said.probabilities_by_group is not None:
            for action, label in enumerate(said.labels):
                if len(said.labels) > 2 or action == 1:
                    listed[f"P({label}) as {group}"] = said.probabilities_by_group[at, code, action]
    found = pd.DataFrame(listed, index=at)
    if frame is None:
        return found
    features = frame.iloc[at].set_axis(at)
    taken = {"person", *found.columns}  # the index is called person where it becomes a column
    return found.join(features.rename(columns=lambda name: f"{name} " if name in taken else name))


def neighbour_pairs(
    frame: pd.DataFrame, said: Answers, codes: Array, asked: Array, near: Neighbours, n_listed: int
) -> pd.DataFrame:
    """Return the most similar pairs with different decisions, each once; persons are positions in X."""
    rows, ranks = np.nonzero(codes[near.indices] != codes[asked][:, None])
    one, other = asked[rows], near.indices[rows, ranks]
    similarity = near.similarity[rows, ranks]
    order = np.lexsort((one, np.minimum(one, other), -similarity))
    pairs: dict[tuple[int, int], dict[str, Any]] = {}
    for at in order:
        i, j = int(one[at]), int(other[at])
        if len(pairs) == n_listed:
            break
        pairs.setdefault(
            (min(i, j), max(i, j)),
            {
                "person": i,
                "neighbour": j,
                "similarity": similarity[at],
                "group": said.groups[said.own[i]],
                "neighbour_group": said.groups[said.own[j]],
                "decision": said.decisions[i],
                "neighbour_decision": said.decisions[j],
                "differ_in": _differences(frame, i, j),
            },
        )
    return pd.DataFrame(list(pairs.values()), columns=PAIR_COLUMNS)


def _differences(frame: pd.DataFrame, i: int, j: int) -> str:
    """Return what tells two people apart: 'age 30 | 31, job cook | clerk'."""
    mine, theirs = frame.iloc[i], frame.iloc[j]
    apart = [
        f"{name} {told(mine[name])} | {told(theirs[name])}"
        for name in frame.columns
        if not (mine[name] == theirs[name] or (pd.isna(mine[name]) and pd.isna(theirs[name])))
    ]
    return ", ".join(apart) if apart else "nothing"


def told(value: Any) -> str:
    """Return one of a person's values in words, a date without the midnight that pandas adds.

    >>> [told(value) for value in (31, pd.Timestamp("2024-03-02"), float("nan"))]
    ['31', '2024-03-02', 'missing']
    """
    if pd.isna(value):
        return "missing"
    midnight = isinstance(value, pd.Timestamp) and value == value.normalize()
    return str(value.date() if midnight else value)
