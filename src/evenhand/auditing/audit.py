"""The audit function: it checks its options, then measures people in memory or counts them in their table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evenhand.auditing.about import Plan
from evenhand.auditing.alignment import check_order
from evenhand.auditing.in_memory import audit_people
from evenhand.auditing.result import Audit, Settings
from evenhand.auditing.twins import MOST_PAIRS, settings_of
from evenhand.checks import MIN_GROUP, integer, number
from evenhand.cuda import check_engine
from evenhand.frames import as_lazy, as_pandas
from evenhand.metrics.bootstrap import generator
from evenhand.metrics.divergence import divergence as divergence_named


def audit(
    model_or_predictions: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
    threshold: float | None = None,
    epsilon: float = 0.05,
    divergence: str = "kl",
    k: int = 5,
    weights: Any = None,
    categorical: Any = None,
    neighbour_people: int = 10_000,
    min_group: int = MIN_GROUP,
    min_count: int = 30,
    n_listed: int = 20,
    n_bootstrap: int = 1000,
    confidence: float = 0.95,
    twins: bool | Mapping[str, Any] = False,
    certify: bool | Mapping[str, Any] = False,
    search: bool | Mapping[str, Any] = False,
    random_state: Any = 0,
    engine: str = "cpu",
) -> Audit:
    """Measure how a model treats people, groups, and people as members of other groups.

    Parameters
    ----------
    model_or_predictions : fitted classifier, array, or the name of a column of X
        One of our estimators, any scikit-learn classifier or pipeline, or one of fairlearn's mitigators. Or
        predictions: one decision per person, one score per person (see `threshold`), or one probability per
        label, in columns that are named like the labels or in sorted order. A decision that is not a label
        raises an error, unless y may just lack it: see `evenhand.auditing.predictions.check_known`. If
        predictions are a column of X, it is not used as a feature.
    X : table of people
        The model's input. Use the original features, so that neighbours and subgroups can be understood. With
        predictions, None leaves out neighbours and subgroups. A table that is not in memory (a lazy Polars,
        Dask or Spark frame, a DuckDB relation, an Arrow data set) is counted where it is, if predictions, y
        and groups are names of its columns; see the notes.
    y : labels, or the name of a column of X
        The true labels. None leaves out everything that needs them.
    sensitive_features : array, Series, DataFrame, or the name(s) of columns of X
        The groups. The audit finds columns of X that reveal the group, and sets them to every other group's
        values to see whether a decision changes.
    sample_weight : array, or the name of a column of X
        The number of people that each person stands for. Shares, means and differences are weighted, and
        intervals allow for unequal weights (see `bootstrap_interval`). Subgroups and the lists of people and
        neighbours are not weighted. If the weights are a column of X, it is not used as a feature.
    pos_label : label
        The positive label; by default the second of two. With more labels and none named, differences are the
        largest over the labels.
    threshold : float
        A score of at least this is a positive decision; 0.5 by default for scores from 0 to 1.
    epsilon : float
        A gap of at least this, between the groups' probabilities for one person, counts as large. The summary
        uses total variation, for which 0.05 is 5 percentage points; the table has every divergence.
    divergence : str
        The divergence of each person's gap: 'kl', 'jensen_shannon', 'total_variation' or 'hellinger'.
    k : int
        The number of neighbours to compare each person with, by Gower's similarity on X without the sensitive
        columns. Among 5 people or fewer, neighbours are left out by default.
    weights, categorical
        Options of Gower's similarity, for neighbours and twins; see `gower_neighbours`.
    neighbour_people : int
        If there are more people, neighbours are found for this many people, drawn at random; anybody can be
        their neighbour. For a table that is counted where it is, the number of people to draw from it.
    min_group : int
        When groups are compared, a group of fewer people counts as if it had this many, and as if the missing
        people had the average rate of everybody. Otherwise a handful of people could decide the largest
        difference. If fewer than two groups are this large, all groups count as they are.
    min_count : int
        A group is compared within a subgroup only if it has at least this many people there. Subgroups of at
        least 95 % of the people are examined, but not listed: they hardly differ from everybody.
    n_listed : int
        The largest number of people, pairs and subgroups to list.
    n_bootstrap : int
        The number of resamples for intervals.
    confidence : float
        The share of samples of people in which an interval should contain the true value.
    twins : bool or mapping
        Whether to find people whose counterpart in another group gets a different decision, and the columns
        that explain it. A mapping gives options of `evenhand.twins`, like {'edges': ['sex->hours']}.
    certify : bool or mapping
        Whether to find the worst possible person, and bound how far apart two groups' policies can be. A
        mapping gives options of `evenhand.certify`, like {'time_limit': 300}.
    search : bool or mapping
        Whether to search for possible people whose decision changes with the group. A mapping gives options
        of `evenhand.search_flips`, like {'max_predictions': 1_000_000}.
    random_state : int, RandomState, Generator or None
        The same seed gives the same audit.
    engine : {'cpu', 'cuda'}
        Where the search for neighbours runs. 'cuda' is a GPU and needs `evenhand[cuda]`. Both give the same
        result.

    Returns
    -------
    Audit
        The findings: `summary()` gives them in words, `to_frame()` as a table, `to_html(path)` as a page.

    Raises
    ------
    TypeError
        If `certify` or `search` is asked for, but not possible for this kind of model.
    ValueError
        If the predictions, labels, groups or settings don't fit each other, or pandas objects have the same
        index labels in different orders: rows belong together by their position.

    Notes
    -----
    A table that is counted where it is gives the same metrics, intervals, subgroups and statutory tables as
    a table in memory. Consistency, neighbours, AUC and calibration are measured on people drawn from it (see
    `neighbour_people`), in proportion from each group, label and decision. Twins are measured on about the
    same number of people from each group. The intervals include the error of the draw, and notes say so.

    The interval of consistency allows for people being each other's neighbours; see `evenhand.metrics.dyads`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = pd.DataFrame({"man": [0, 1] * 50, "age": np.arange(100) % 7})
    >>> model = DecisionTreeClassifier(max_depth=1).fit(X, X["man"])
    >>> found = audit(model, X, X["man"], sensitive_features="man")
    >>> found.value("flip_rate"), found.value("discrimination")
    (1.0, 1.0)
    """
    epsilon = number("epsilon", epsilon, low=0)
    number("confidence", confidence, low=0, high=1, open_low=True)
    divergence_named(divergence)
    check_engine(engine)
    check_order(
        X=X, predictions=model_or_predictions, y=y, sensitive_features=sensitive_features,
        sample_weight=sample_weight,
    )  # fmt: skip
    rng = generator(random_state)
    settings: Settings = {
        "epsilon": epsilon, "divergence": divergence, "k": k, "confidence": confidence,
        "n_bootstrap": n_bootstrap, "min_group": min_group, "min_count": min_count,
    }  # fmt: skip
    sizes = {"n_listed": n_listed, "neighbour_people": neighbour_people, **settings}
    for name in ("n_bootstrap", "min_group", "min_count", "n_listed", "neighbour_people"):
        integer(name, sizes[name])
    near: dict[str, Any] = {"k": k, "weights": weights, "categorical": categorical, "engine": engine}
    of_twins, of_worst, of_search = map(_options, (twins, certify, search))
    common = {"n_bootstrap": n_bootstrap, "min_group": min_group, "confidence": confidence}
    common |= {"weights": weights, "categorical": categorical, "n_listed": min(n_listed, MOST_PAIRS)}
    counterparts = None if of_twins is None else settings_of(common, of_twins)
    plan = Plan(pos_label, threshold, n_listed, neighbour_people, near, counterparts, rng, settings)
    named = model_or_predictions, y, sensitive_features, sample_weight
    if isinstance(model_or_predictions, str) and (there := as_lazy(X)) is not None:
        if of_worst is not None or of_search is not None:
            raise ValueError(
                "Got certify or search, but these need the model itself, not predictions, and X in memory."
            )
        from evenhand.auditing.counted import audit_counted  # with narwhals, only where it is needed

        found = audit_counted(there, named, plan)
    else:
        found = audit_people(as_pandas(X), named, plan, of_worst, of_search)
    return replace(found, label=_label(y, model_or_predictions))


def _label(y: Any, model: Any) -> str | None:
    """Return the name of the label: that of y, else the one that the model knows."""
    if isinstance(y, str):
        return y
    named = getattr(as_pandas(y), "name", None)
    if named is None and hasattr(model, "predict"):
        named = getattr(model, "label", None)
    return str(named) if isinstance(named, str | int) else None


def _options(asked: bool | Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the options of an optional finding; None if it is not wanted."""
    return None if asked is False else {} if asked is True else dict(asked)
