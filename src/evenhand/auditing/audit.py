"""The audit: its options, and whether people are measured in memory or counted where their table is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.auditing.about import Plan
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
        One of our estimators, any scikit-learn classifier or pipeline, one of fairlearn's mitigators. Or
        predictions: one decision per person, one score per person (see `threshold`), or one probability per
        label, in columns with the labels' names or else in sorted order. Decisions that are not labels are an
        error, unless y may just lack them: see `evenhand.auditing.predictions.check_known`. A column of X
        that is named is then no feature.
    X : table of people
        What the model takes; the original features, so that neighbours and subgroups can be understood. None
        with bare predictions leaves neighbours and subgroups out. A table that is not in memory (a lazy
        frame of Polars, Dask or Spark, a relation of DuckDB, a data set of Arrow) is counted where it is, if
        predictions, y and groups are names of its columns; see the notes.
    y : labels, or the name of a column of X
        What turned out, or was right. None leaves out everything that compares decisions with it.
    sensitive_features : array, Series, DataFrame, or the name(s) of columns of X
        The groups. Columns of X that reveal the group are found, and set to every other group's values to see
        whether a decision changes.
    sample_weight : array, or the name of a column of X
        How many people each person stands for: all shares, means and differences are of those people. A
        column of X is then no feature. Intervals allow for unequal weights (see `bootstrap_interval`);
        subgroups, and the lists of people and neighbours, count people as they are.
    pos_label : label
        The second of two labels by default. With more labels and none named, differences are the largest over
        the labels.
    threshold : float
        A bare score of at least this much is a positive decision; 0.5 for probabilities.
    epsilon : float
        A gap between the groups' probabilities of at least this much counts as large. The summary's text
        uses total variation, for which 0.05 is 5 percentage points; the table has every divergence.
    divergence : str
        How each person's gap is measured: 'kl', 'jensen_shannon', 'total_variation' or 'hellinger'.
    k : int
        How many neighbours each person is compared with, by Gower's similarity on X without the sensitive
        columns.
    weights, categorical
        Of the neighbours; see `gower_neighbours`.
    neighbour_people : int
        If there are more people, find the neighbours of only this many, drawn at random (among all). Of a
        table that is counted where it is, so many people are drawn for what needs single people.
    min_group : int
        Where groups are compared, one of fewer people counts as if it had so many, those it lacks decided as
        everybody is on average: else a handful of people would decide the largest difference. Fewer than two
        larger groups count as they are.
    min_count : int
        How many people of a group a subgroup needs.
    n_listed : int
        How many people, pairs and subgroups are listed.
    n_bootstrap : int
        How many resamples the intervals take.
    confidence : float
        How often, over samples of people, an interval is to contain the truth.
    twins : bool or mapping
        True also finds people whose counterpart in another group is decided differently, and the columns that
        carry it; a mapping does so with options of `evenhand.twins`, like {'edges': ['sex->hours']}.
    certify : bool or mapping
        True also looks for the worst possible person, and bounds how far apart two groups' policies can be;
        a mapping does so with options of `evenhand.certify`, like {'time_limit': 300}.
    search : bool or mapping
        True also searches for possible people whose decision changes with the group; a mapping does so with
        options of `evenhand.search_flips`, like {'max_predictions': 1_000_000}.
    random_state : int, RandomState, Generator or None
        The same seed gives the same audit.
    engine : {'cpu', 'cuda'}
        Where neighbours are searched; 'cuda' is a GPU and needs `evenhand[cuda]`. Both find the same.

    Raises
    ------
    ValueError
        If the predictions, labels, groups or settings don't fit each other.

    Notes
    -----
    A table that is counted where it is gives the same metrics, intervals, subgroups and statutory tables as
    one in memory. Consistency, neighbours, twins, AUC and calibration are measured on people drawn from it
    (see `neighbour_people`), from every group, label and decision in proportion; twins on about as many from
    each group. Their intervals include the draw, and notes say so.

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
            raise ValueError("Got certify or search, but these ask a model; expected one, and X in memory.")
        from evenhand.auditing.counted import audit_counted  # with narwhals, only where it is needed

        return audit_counted(there, named, plan)
    return audit_people(as_pandas(X), named, plan, of_worst, of_search)


def _options(asked: bool | Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the options of a finding that is asked for; None if it is not."""
    return None if asked is False else {} if asked is True else dict(asked)
