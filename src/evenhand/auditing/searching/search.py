"""The search for people whose decision changes when only the group changes, for any model."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evenhand.auditing.alignment import check_order
from evenhand.auditing.predictions import check_is_model
from evenhand.auditing.searching.members import BATCH, Found, Members, children
from evenhand.auditing.searching.possible import possible_people
from evenhand.auditing.searching.result import FlipSearch, people_table
from evenhand.checks import integer, number
from evenhand.frames import as_pandas
from evenhand.groups import column_called, groups_by_name
from evenhand.metrics.asking import question
from evenhand.metrics.bootstrap import generator
from evenhand.metrics.classifiers import classifier
from evenhand.metrics.gower import as_frame
from evenhand.wording import listed

NEEDED = "a search", "it asks the model about people who are not in the table"
_NOTHING = "A search needs a model that uses the group, two groups, and columns that don't reveal them."
_IDLE = 20  # rounds without new people, after which the search ends
_MOST = 16 * BATCH  # the largest number of people to make others from


def search_flips(
    model: Any,
    X: Any,
    *,
    sensitive_features: Any,
    pos_label: Any = None,
    ranges: Mapping[Any, Any] | None = None,
    together: Sequence[Sequence[Any]] = (),
    max_predictions: int = 100_000,
    time_limit: float = 60.0,
    n_listed: int = 20,
    random_state: Any = 0,
) -> FlipSearch:
    """Search for possible people whose decision changes when only the group changes.

    The search starts from the people in X and changes their values, one at a time or by mixing two people. It
    continues from people who are near a different decision, and from people whose probabilities are farthest
    apart. It works for any classifier that uses the group, and proves nothing about people it did not find.

    Parameters
    ----------
    model : fitted classifier
        As in `evenhand.audit`.
    X : table of people
        The model's input. Numbers stay between the lowest and highest in their column, and categories are
        those that the column has.
    sensitive_features : array, Series, DataFrame, or the name(s) of columns of X
        The groups. A model that takes the group gets each group in turn. Columns of X that reveal the group
        are set to the values that are most frequent in each group.
    pos_label : label
        The label whose probabilities are given; the last by default.
    ranges : dict, optional
        Columns with other ranges, `{"age": (18, 70)}`, or fewer categories, `{"job": ["cook", "clerk"]}`.
    together : lists of columns
        Columns that form one feature: people only get combinations of their values that somebody in X has.
        One-hot columns are found automatically.
    max_predictions : int
        The largest number of predictions: one for each person and group.
    time_limit : float
        The time limit in seconds. The same seed finds the same people unless the limit is reached.
    n_listed : int
        The largest number of people to list, at most one for each person in X that they were made from.
    random_state : int, RandomState, Generator or None
        The seed for the people to start from, and for the changes.

    Returns
    -------
    FlipSearch
        The people found, each with the model's predictions as a member of every group.

    Raises
    ------
    TypeError
        If `model` has no `predict`.
    ValueError
        If the settings don't fit the model or X.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = pd.DataFrame({"man": [0, 1] * 50, "age": np.arange(100) // 2})
    >>> model = DecisionTreeClassifier().fit(X, (X["age"] > 40) & (X["man"] == 1))
    >>> found = search_flips(model, X, sensitive_features="man")
    >>> found.n_found, sorted(found.people["age"])
    (9, [41, 42, 43, 44, 45, 46, 47, 48, 49])
    """
    began = time.monotonic()
    integer("max_predictions", max_predictions)
    integer("n_listed", n_listed)
    number("time_limit", time_limit, low=0)
    check_is_model(model, *NEEDED)
    check_order(X=X, sensitive_features=sensitive_features)
    X = as_pandas(X)
    given, _ = groups_by_name(as_pandas(sensitive_features), as_frame(X))
    asked, column = question(classifier(model), X, given, 0), column_called(given)
    names = asked.groups.names.tolist()
    features = [name for name in asked.seen if name not in asked.columns]
    if not features or not (asked.told or asked.columns) or len(names) < 2:
        note = asked.note or _NOTHING
        return FlipSearch(pd.DataFrame(), pd.DataFrame(), 0, 0, 0.0, names, pos_label, note, column)
    possible = possible_people(asked.frame[features], together, ranges)
    members = Members(asked, possible, max_predictions, began + time_limit)
    search(members, generator(random_state))
    predictions, label = members.predictions, _label(members.labels, pos_label)
    people = people_table(members, *members.listed(n_listed), label)
    people = people[people.pop("flips")].reset_index(drop=True)
    farthest = people_table(members, *members.farthest(), label).drop(columns="flips")
    seconds = time.monotonic() - began
    found = members.n_found
    return FlipSearch(people, farthest, found, predictions, seconds, names, label, asked.note, column)


def _label(labels: list[Any], wanted: Any) -> Any:
    if wanted is not None and labels and wanted not in labels:
        raise ValueError(f"Got pos_label={wanted!r}, but the model's labels are {listed(labels, most=10)}.")
    return labels[-1] if wanted is None and labels else wanted


def search(members: Members, rng: np.random.Generator) -> None:
    """Predict real people, then others made from the best so far, until the budget is spent."""
    real = members.possible.real
    start = rng.permutation(len(real))[: max(1, members.people_left // 10)]
    pool, idle, n = members.ask(real[start], start), 0, BATCH
    while idle < _IDLE and members.people_left:
        new = members.ask(*children(pool.best(n), members.possible, n, rng))
        idle = 0 if len(new.gap) else idle + 1
        # If most people were already predicted, make more, and from more people.
        n = min(2 * n, _MOST) if len(new.gap) < BATCH / 2 else max(BATCH, n // 2)
        pool = Found.joined([pool, new]).best(_MOST)
