"""The audit itself: ask the model, measure its answers, and list whom and where they concern most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Array, Codes
from evenhand.auditing.about import copies_note, counted, on_weights, rate_searched
from evenhand.auditing.certificate.certify import worst_possible
from evenhand.auditing.certificate.held import bounded_policies
from evenhand.auditing.near_copies import near_copies
from evenhand.auditing.people import PAIR_COLUMNS, neighbour_pairs, people_apart
from evenhand.auditing.predictions import MOST_DECISIONS, check_known, read_predictions
from evenhand.auditing.result import About, Audit, Settings
from evenhand.auditing.searching.search import check_predicts, found_by_search
from evenhand.auditing.subgroups import COLUMNS, find_subgroups
from evenhand.auditing.table import MetricTable
from evenhand.auditing.tally import tally
from evenhand.auditing.thresholds import along_threshold
from evenhand.auditing.twins import MOST_PAIRS, find_twins, settings_of
from evenhand.checks import MIN_GROUP, integer, number
from evenhand.cuda import check_engine
from evenhand.frames import as_lazy, as_pandas
from evenhand.groups import check_column, groups_by_name
from evenhand.metrics.answers import Answers
from evenhand.metrics.asking import respond
from evenhand.metrics.bootstrap import generator
from evenhand.metrics.counts import encode_labels
from evenhand.metrics.divergence import divergence as divergence_named
from evenhand.metrics.gower import as_frame, gower_neighbours
from evenhand.metrics.group_columns import sensitive_columns
from evenhand.metrics.weights import check_weights


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
    gower: dict[str, Any] = {"weights": weights, "categorical": categorical}
    options: dict[str, Any] = {"n_listed": min(n_listed, MOST_PAIRS), "n_bootstrap": n_bootstrap, **gower}
    options |= {"min_group": min_group, "confidence": confidence}
    how = None if twins is False else settings_of(options, {} if twins is True else twins)
    if isinstance(model_or_predictions, str) and (there := as_lazy(X)) is not None:
        if certify is not False or search is not False:
            raise ValueError("Got certify or search, but these ask a model; expected one, and X in memory.")
        from evenhand.auditing.counted import audit_counted  # with narwhals, only where it is needed

        return audit_counted(
            there, (model_or_predictions, y, sensitive_features, sample_weight), pos_label=pos_label,
            threshold=threshold, n_listed=n_listed, n_drawn=neighbour_people,
            near={"k": k, "engine": engine, **gower}, twins=how, rng=rng, settings=settings,
        )  # fmt: skip
    X = as_pandas(X)
    X, model_or_predictions = _taken(X, "predictions", model_or_predictions)
    X, y = _taken(X, "y", y)
    X, sample_weight = _taken(X, "sample_weight", sample_weight)
    frame, truth = None if X is None else as_frame(X), None if y is None else np.asarray(y)
    if frame is not None and truth is not None and len(frame) != len(truth):
        raise ValueError(f"Got X of {len(frame)} people and y of {len(truth)}; expected as many.")
    if sensitive_features is None:
        raise ValueError("Got sensitive_features=None, but an audit needs the groups to compare.")
    if certify is not False:  # what would be refused in the end is refused before anything is measured
        bounded_policies(model_or_predictions, None if certify is True else certify.get("radius"))
    if search is not False:
        check_predicts(model_or_predictions)
    groups, _ = groups_by_name(as_pandas(sensitive_features), frame)
    answers = _answers(model_or_predictions, X, truth, groups, pos_label, threshold, rng)
    if frame is not None and len(frame) != len(answers):
        raise ValueError(f"Got X of {len(frame)} people and {len(answers)} predictions.")
    shares = None if sample_weight is None else check_weights(sample_weight, len(answers))
    answers = replace(answers, min_group=min_group, weights=shares)
    table = MetricTable(answers, n=n_bootstrap, confidence=confidence, random_state=rng)
    notes = [*on_weights(answers), *table.decisions(), *table.scores(), *answers.note.splitlines()]
    table.persons(epsilon)
    others = None if frame is None else frame.drop(columns=sensitive_columns(frame, groups, answers.own))
    pairs, subgroups, examined = pd.DataFrame(columns=PAIR_COLUMNS), pd.DataFrame(columns=COLUMNS), 0
    if others is None or others.shape[1] == 0:
        notes.append("There are no features, so neighbours and subgroups were left out.")
    else:
        asked, warned = _asked(others, answers, neighbour_people, rng)
        near = gower_neighbours(others, k, **gower, people=asked, engine=engine)
        table.consistency(near.indices, asked)
        pairs = neighbour_pairs(others, answers, asked, near, n_listed)
        subgroups, examined, lacking = _subgroups(others, answers, min_count, confidence, n_listed)
        notes += warned + lacking
    about: About = {**counted(answers), **settings, "subgroups_examined": examined}
    people = people_apart(frame, answers, divergence, n_listed)
    found = Audit(table.frame(), people, pairs, subgroups, notes, about, along_threshold(answers))
    if how is not None:
        found = replace(found, twins=find_twins(model_or_predictions, X, answers, groups, how, rng))
    worst = worst_possible(model_or_predictions, X, certify, rng)
    options = {"pos_label": answers.pos_label, "n_listed": n_listed, "random_state": rng}
    flips = found_by_search(model_or_predictions, X, groups, search, options)
    return replace(found, tally=tally(answers, groups), worst=worst, search=flips)


def _taken(X: Any, argument: str, given: Any) -> tuple[Any, Any]:
    """Return X without the column that an argument names, and its values; else both as they are."""
    if not isinstance(given, str):
        return X, given
    frame = pd.DataFrame() if X is None else as_frame(X)
    check_column(argument, given, frame.columns)
    return frame.drop(columns=given), frame[given].to_numpy()


def _answers(
    model: Any, X: Any, y: Array | None, groups: Any, pos_label: Any, threshold: float | None,
    rng: np.random.Generator,
) -> Answers:  # fmt: skip
    """Return what a model, or bare predictions, say about everybody, with the truth beside it."""
    if hasattr(model, "predict"):
        answers = _ask(model, X, y, groups, threshold, int(rng.integers(2**31)))
    else:
        given = {"sensitive_features": groups, "pos_label": pos_label, "threshold": threshold}
        answers = read_predictions(model, y, **given)
    if pos_label is None and len(answers.labels) == 2:
        pos_label = answers.labels[1]
    bar = answers.threshold
    if bar is not None and getattr(model, "pos_label", pos_label) != pos_label:
        bar = 1 - bar  # the model's threshold is for the other label
    return replace(answers, y=y, pos_label=pos_label, threshold=bar)


def _ask(model: Any, X: Any, y: Array | None, groups: Any, threshold: float | None, seed: int) -> Answers:
    """Return a model's answers; their note says which labels only the model or only y has."""
    if X is None:
        raise ValueError("Got a model and X=None, but a model needs X to be asked about.")
    if threshold is not None:
        raise ValueError(f"Got a model and threshold={threshold!r}, but a model decides by itself.")
    answers = respond(model, X, sensitive_features=groups, random_state=seed)
    labels = answers.labels if y is None else encode_labels(y, y)[2]
    if y is None and len(labels) > MOST_DECISIONS:
        raise ValueError(
            f"Got a model of {len(labels)} different answers and no labels (y=None), but without labels "
            f"expected decisions of at most {MOST_DECISIONS} kinds."
        )
    if hasattr(model, "classes_"):
        strange = check_known(labels, answers.labels, "labels", "the model's decisions")
    else:
        strange = check_known(answers.labels, labels, "decisions", "the labels")
    return replace(answers, note="\n".join(note for note in (answers.note, strange) if note))


def _asked(
    others: pd.DataFrame, answers: Answers, most: int, rng: np.random.Generator
) -> tuple[Codes, list[str]]:
    """Return the people whose neighbours are looked for, and notes on how far these can be relied on."""
    notes = copies_note(near_copies(others, answers.decisions) if answers.how == "given" else [])
    asked = np.arange(len(answers))
    if len(asked) > most:
        asked = np.sort(rng.choice(len(asked), most, replace=False))
        notes.append(f"The neighbours are those of {len(asked):,} people drawn at random, among all.")
    return asked, notes


def _subgroups(
    others: pd.DataFrame, answers: Answers, min_count: int, confidence: float, n_listed: int
) -> tuple[pd.DataFrame, int, list[str]]:
    """Return the subgroups, how many were examined, and a note if none could be."""
    rate, outcome, notes = rate_searched(answers)
    if outcome is None:
        return pd.DataFrame(columns=COLUMNS), 0, notes
    limits: dict[str, Any] = {"min_count": min_count, "confidence": confidence, "n_listed": n_listed}
    return *find_subgroups(others, outcome, answers.own, answers.groups, rate=rate, **limits), []
