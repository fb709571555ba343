"""Twins: people whose counterpart in another group gets a different decision, and the columns responsible.

This is FlipTest (Black, Yeom and Fredrikson, 2020) with a null distribution. Matching is never perfect, so
some counterparts get a different decision by chance alone. We estimate how many by assigning the groups at
random.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Codes
from evenhand.auditing.alignment import check_order
from evenhand.auditing.carriers import Search
from evenhand.auditing.causal import GROUP, by_graph
from evenhand.auditing.counterparts import by_transport, find_flips, flips_table
from evenhand.auditing.hybrids import Ask, Model, Surrogate, carriers_of
from evenhand.auditing.predictions import read_predictions
from evenhand.auditing.twin_result import AboutTwins, Twins
from evenhand.checks import MIN_GROUP, check_columns, integer, number, one_of
from evenhand.frames import as_pandas
from evenhand.groups import column_called, encode_groups, groups_by_name
from evenhand.metrics.answers import Answers
from evenhand.metrics.asking import answer
from evenhand.metrics.bootstrap import generator
from evenhand.metrics.classifiers import classifier
from evenhand.metrics.gower import as_frame, gower_distances
from evenhand.metrics.group_columns import sensitive_columns
from evenhand.metrics.weights import check_weights
from evenhand.wording import listed

MOST_BATCH = 10_000
MOST_PAIRS = 20  # the most pairs that an audit lists per group and group of counterparts
MOST_GROUPS = 6  # the most groups to compare
NULL_PAIRS = 40  # the number of flipped pairs per draw and direction whose columns are examined
COLUMNS = [
    "group",
    "counterpart_group",
    "column",
    "share",
    "low",
    "high",
    "points",
    "by_chance",
    "p_value",
    "clear",
]


@dataclass(frozen=True)
class Settings:
    """The options of the search for twins; see `twins`."""

    edges: Sequence[str] = ()
    together: Sequence[Sequence[Any]] = ()
    weights: Any = None
    categorical: Any = None
    min_group: int = MIN_GROUP
    batch: int = 1000
    repeats: int = 1
    n_null: int = 39
    n_pairs: int = 200
    n_orders: int = 8
    n_listed: int = 20
    n_bootstrap: int = 1000
    confidence: float = 0.95

    def __post_init__(self) -> None:
        for name in ("min_group", "batch", "repeats", "n_pairs", "n_orders", "n_listed", "n_bootstrap"):
            integer(name, getattr(self, name))
        number("confidence", self.confidence, low=0, high=1, open_low=True)
        number("batch", self.batch, low=2, high=MOST_BATCH)
        fewest = int(np.ceil(1 / (1 - min(self.confidence, 0.999)) - 1e-9)) - 1
        if integer("n_null", self.n_null) < fewest:
            raise ValueError(
                f"Got n_null={self.n_null}, but expected at least {fewest}: with fewer draws nothing can "
                f"be clearly above chance at a confidence of {self.confidence:g}."
            )


def settings_of(defaults: Mapping[str, Any], options: Mapping[str, Any]) -> Settings:
    """Return settings with these defaults and options; raise if an option has an unknown name."""
    for name in options:
        one_of("the options of twins", name, [field.name for field in fields(Settings)])
    return Settings(**{**defaults, **options})


def twins(
    model_or_predictions: Any,
    X: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
    edges: Sequence[str] = (),
    together: Sequence[Sequence[Any]] = (),
    weights: Any = None,
    categorical: Any = None,
    min_group: int = MIN_GROUP,
    batch: int = 1000,
    repeats: int = 1,
    n_null: int = 39,
    n_pairs: int = 200,
    n_orders: int = 8,
    n_listed: int = 20,
    n_bootstrap: int = 1000,
    confidence: float = 0.95,
    random_state: Any = 0,
) -> Twins:
    """Find people whose counterpart in another group gets a different decision, and the columns responsible.

    Each person is matched with a counterpart in every other group, by optimal transport on the features
    without the sensitive columns (POT; `pip install 'evenhand[audit]'`). Even a model that doesn't use the
    group may decide differently about the two, because other columns are correlated with the group.

    Parameters
    ----------
    model_or_predictions : fitted classifier, or array
        As in `evenhand.audit`; predictions must be decisions. For predictions, the columns responsible are
        found with a surrogate, boosted trees fitted to the decisions.
    X : table of people
        The model's input.
    sensitive_features : array, Series, DataFrame, or the name(s) of columns of X
        The groups.
    sample_weight : array
        The number of people that each person stands for, in the matching and in shares.
    pos_label : label
        The positive label; the second of two by default. With more labels and none named, any different
        decision counts.
    edges : list of str
        A causal graph, like ['sex->hours', 'hours->income']. With a graph, nobody is matched: a counterpart
        is the same person with the columns changed that the group affects; see `evenhand.auditing.causal`.
    together : lists of columns
        Columns that form one feature and are exchanged together. One-hot columns are found automatically.
    weights, categorical
        Options of the Gower distance used for matching; see `evenhand.metrics.gower_neighbours`.
    min_group : int
        Groups of fewer people are left out.
    batch : int
        Groups of up to this many people are matched exactly, and larger groups in random batches. Needs about
        40 bytes × batch² of memory.
    repeats : int
        How often to match larger groups, each time in other batches; people keep all their counterparts.
    n_null : int
        How often to match people again with the groups assigned at random.
    n_pairs, n_orders : int
        The number of pairs for the Shapley values, and of orders of the columns for each pair.
    n_listed : int
        The largest number of pairs to list per group and group of counterparts.
    n_bootstrap, confidence, random_state
        As in `evenhand.audit`. Shares are tested against chance at this confidence, for all rows at once.

    Returns
    -------
    Twins
        The findings. Counterparts are statistical: they show what is correlated with the group in this data,
        not what the group causes.

    Raises
    ------
    ModuleNotFoundError
        If people are to be matched, and POT is not installed.
    ValueError
        If fewer than two groups have `min_group` people, or the settings don't fit X.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 400)
    >>> X = pd.DataFrame({"hours": rng.normal(30 + 8 * (sex == "m"), 4), "age": rng.integers(20, 60, 400)})
    >>> model = DecisionTreeClassifier(max_depth=1).fit(X, X["hours"] > 34)
    >>> found = twins(model, X, sensitive_features=sex)
    >>> found.flips["clear"].tolist(), found.columns["column"][found.columns["clear"]].tolist()
    ([True, False], ['hours'])
    """
    named = {"predictions": model_or_predictions, "sensitive_features": sensitive_features}
    check_order(X=X, **named, sample_weight=sample_weight)
    X = as_pandas(X)
    frame = as_frame(X)
    given, _ = groups_by_name(as_pandas(sensitive_features), frame)
    if hasattr(model_or_predictions, "predict"):
        answers = answer(model_or_predictions, X, sensitive_features=given)
    else:
        answers = read_predictions(model_or_predictions, None, sensitive_features=given)
    if len(answers) != len(frame):
        raise ValueError(f"Got X of {len(frame)} people and {len(answers)} predictions; expected one each.")
    if pos_label is None and len(answers.labels) == 2:
        pos_label = answers.labels[1]
    settings = Settings(
        edges, together, weights, categorical, min_group, batch, repeats, n_null, n_pairs, n_orders,
        n_listed, n_bootstrap, confidence,
    )  # fmt: skip
    shares = None if sample_weight is None else check_weights(sample_weight, len(answers))
    answers = replace(answers, pos_label=pos_label, weights=shares)
    return find_twins(model_or_predictions, X, answers, given, settings, generator(random_state))


def find_twins(
    model: Any, X: Any, answers: Answers, given: Any, settings: Settings, rng: np.random.Generator
) -> Twins:
    """Find twins, given the predictions of a model or of an unknown source; see `twins`."""
    if X is None:
        raise ValueError("Got X=None, but finding counterparts needs the features.")
    frame, decided, positive = as_frame(X), answers.decided_own, answers.positive
    groups = encode_groups(given, len(frame))
    sensitive = sensitive_columns(frame, given, groups.codes)
    others = frame.drop(columns=sensitive)
    check_columns("together", itertools.chain(*settings.together), frame.columns, "X has")
    called, names = _called(given), groups.names.tolist()
    compared, notes = compared_groups(np.bincount(groups.codes), names, settings.min_group)
    ask: Ask | None = None
    if settings.edges:
        ask = _asked(model, X, frame, given, groups.codes, answers, notes, rng)
        match = by_graph(
            frame, groups.codes, compared, settings.edges, sensitive=sensitive, group=called, ask=ask,
            weights=answers.weights,
        )  # fmt: skip
    else:
        distances = gower_distances(others, weights=settings.weights, categorical=settings.categorical)
        match = by_transport(
            frame, groups.codes, decided, compared, distances,
            batch=settings.batch, repeats=settings.repeats, weights=answers.weights,
        )  # fmt: skip
    found = find_flips(
        match, groups.codes, compared, positive, n_null=settings.n_null, n_sampled=NULL_PAIRS, rng=rng
    )
    resampling: dict[str, Any] = {"confidence": settings.confidence, "n": settings.n_bootstrap}
    flips = flips_table(found, names, rng=rng, **resampling)
    clear = np.flatnonzero(flips["clear"])
    columns, people, steps = pd.DataFrame(columns=COLUMNS), pd.DataFrame(), pd.DataFrame()
    if len(clear):
        ask = ask or _asked(model, X, frame, given, groups.codes, answers, notes, rng)
        carriers = carriers_of(ask, frame, sensitive, ", ".join(called) or GROUP, settings.together)
        search = Search(ask, carriers, found, answers.labels, names, positive, rng)
        limits = {name: getattr(settings, name) for name in ("n_pairs", "n_orders", "n_listed")}
        columns, people, steps = search.tables(clear, **limits, **resampling)
    sizes = np.bincount(groups.codes)
    about: AboutTwins = {
        "people": len(frame),
        "groups": dict(zip(names, sizes.tolist(), strict=True)),
        "column": column_called(given),
        "compared": [names[code] for code in compared],
        "positive": answers.pos_label,
        "columns": [str(name) for name in others.columns],
        "edges": list(settings.edges),
        "batch": settings.batch,
        "batches": bool(sizes[compared].max() > settings.batch),
        "n_null": settings.n_null,
        "n_pairs": settings.n_pairs,
        "n_orders": settings.n_orders,
        "confidence": settings.confidence,
        "surrogate": ask.fidelity if isinstance(ask, Surrogate) else None,
    }
    return Twins(flips, columns, people, steps, notes, about)


def compared_groups(sizes: Codes, names: list[Any], min_group: int) -> tuple[Codes, list[str]]:
    """Return the groups to compare, at most MOST_GROUPS, and a note on the others."""
    order = np.argsort(-sizes, kind="stable")
    kept = np.sort(order[sizes[order] >= min_group][:MOST_GROUPS])
    if len(kept) < 2:
        raise ValueError(
            f"Got {len(kept)} groups of at least {min_group} people, but expected two to compare: a "
            "counterpart is a member of another group."
        )
    left = [name for code, name in enumerate(names) if code not in kept]
    if not left:
        return kept, []
    return kept, [
        f"Left out of the twins as too small, or beyond the {MOST_GROUPS} largest: {listed(left, most=6)}."
    ]


def _called(given: Any) -> list[str]:
    """Return the names of the sensitive features, if they have names."""
    names = getattr(given, "columns", [getattr(given, "name", None)])
    return [str(name) for name in names if name is not None]


def _asked(
    model: Any, X: Any, frame: pd.DataFrame, given: Any, own: Codes, answers: Answers, notes: list[str],
    rng: np.random.Generator,
) -> Ask:  # fmt: skip
    """Return what predicts mixed people: the model, or a surrogate, with a note added that says so."""
    if hasattr(model, "predict"):
        return Model(classifier(model), X, frame, given, own, answers.labels)
    surrogate = Surrogate(frame, own, answers.decided_own, len(answers.labels), rng)
    notes.append(
        "There is no model to ask about mixed people, so boosted trees stand in for it. On people that they "
        f"were not fitted to, they reproduce {100 * surrogate.fidelity:.1f} % of the decisions."
    )
    return surrogate
