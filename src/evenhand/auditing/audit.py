"""The audit itself: ask, measure, and list who and where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from evenhand.auditing.labels import check_known
from evenhand.auditing.near_copies import shadows
from evenhand.auditing.people import PAIR_COLUMNS, neighbour_pairs, people_apart
from evenhand.auditing.predictions import MOST_DECISIONS, read_predictions
from evenhand.auditing.result import Audit
from evenhand.auditing.subgroups import COLUMNS, find_subgroups
from evenhand.auditing.table import MetricTable
from evenhand.checks import did_you_mean, integer, number
from evenhand.metrics.asking import respond
from evenhand.metrics.bootstrap import generator
from evenhand.metrics.counts import count, encode_labels
from evenhand.metrics.divergence import divergence as divergence_named
from evenhand.metrics.gower import as_frame, gower_neighbours
from evenhand.metrics.group_columns import sensitive_columns
from evenhand.metrics.individual import disagreement, person_flips, person_gaps


def audit(
    model_or_predictions: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    pos_label: Any = None,
    threshold: float | None = None,
    epsilon: float = 0.05,
    divergence: str = "kl",
    k: int = 5,
    weights: Any = None,
    categorical: Any = None,
    neighbour_people: int = 10_000,
    min_count: int = 30,
    n_listed: int = 20,
    n_bootstrap: int = 1000,
    confidence: float = 0.95,
    random_state: Any = 0,
) -> Audit:
    """Measure how a model treats people, groups, and people as members of other groups.

    Parameters
    ----------
    model_or_predictions : fitted classifier, or array
        Our estimators, any scikit-learn classifier or pipeline, fairlearn's mitigators. Or predictions: one
        decision a person, one score (see `threshold`), or a probability for each label, in columns with the
        labels' names or else in sorted order. Decisions that are no labels are an error, unless y may just
        lack them: see `evenhand.auditing.labels.check_known`.
    X : table of people
        What the model takes; the original features, for neighbours and subgroups to be understood. None
        with bare predictions leaves neighbours and subgroups out.
    y : labels
        What turned out, or was right. None leaves out all that compares decisions with it.
    sensitive_features : array, Series, DataFrame, or the name(s) of columns of X
        The groups. Columns of X that tell the group are found, and set to every other group's values to see
        whether a decision changes.
    pos_label : label
        The second of two by default. With more labels and none named, differences are the largest over
        labels.
    threshold : float
        From where on a bare score is a positive decision; 0.5 for probabilities.
    epsilon, divergence
        From where on a gap between the groups' probabilities counts as large, and how each person's is
        measured. The table has the shares of every divergence; in words it is total variation's, for which
        0.05 is 5 points of probability.
    k, weights, categorical
        Neighbours by Gower's similarity on X without the sensitive columns; see `gower_neighbours`.
    neighbour_people : int
        If there are more people, the neighbours of so many, drawn at random, are found (among all).
    min_count : int
        Fewer people of a group make no subgroup.
    n_listed : int
        How many people, pairs and subgroups are listed.
    n_bootstrap, confidence, random_state
        The intervals.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = pd.DataFrame({"man": [0, 1] * 50, "age": np.arange(100) % 7})
    >>> model = DecisionTreeClassifier(max_depth=1).fit(X, X["man"])
    >>> found = audit(model, X, X["man"], sensitive_features="man")
    >>> found.value("flip_rate"), found.value("discrimination")
    (1.0, 1.0)
    """
    epsilon = number("epsilon", epsilon, low=0)
    number("confidence", confidence, low=0, high=1, open_low=True)
    integer("n_bootstrap", n_bootstrap)
    integer("min_count", min_count)
    integer("n_listed", n_listed)
    integer("neighbour_people", neighbour_people)
    divergence_named(divergence)
    frame, y = None if X is None else as_frame(X), None if y is None else np.asarray(y)
    if frame is not None and y is not None and len(frame) != len(y):
        raise ValueError(f"Got X of {len(frame)} people and y of {len(y)}; expected as many.")
    sensitive = _groups_by_name(sensitive_features, frame)
    rng = generator(random_state)
    strange = ""
    if not hasattr(model_or_predictions, "predict"):
        said = read_predictions(
            model_or_predictions, y, sensitive_features=sensitive, pos_label=pos_label, threshold=threshold
        )
    elif X is None:
        raise ValueError("Got a model and X=None, but a model needs X to be asked about.")
    elif threshold is not None:
        raise ValueError(f"Got a model and threshold={threshold!r}, but a model decides by itself.")
    else:
        seed = int(rng.integers(2**31))
        said = respond(model_or_predictions, X, sensitive_features=sensitive, random_state=seed)
        labels = said.labels if y is None else encode_labels(y, y)[2]
        if y is None and len(labels) > MOST_DECISIONS:
            raise ValueError(
                f"Got a model of {len(labels)} different answers and no labels (y=None), but without labels "
                f"expected decisions of at most {MOST_DECISIONS} kinds."
            )
        if hasattr(model_or_predictions, "classes_"):
            strange = check_known(labels, said.labels, "labels", "the model's decisions")
        else:
            strange = check_known(said.labels, labels, "decisions", "the labels")
    if pos_label is None and len(said.labels) == 2:
        pos_label = said.labels[1]
    if frame is not None and len(frame) != len(said.decisions):
        raise ValueError(f"Got X of {len(frame)} people and {len(said.decisions)} predictions.")
    counts = count(said.decisions if y is None else y, said.decisions, sensitive, pos_label)
    n_people = len(said.decisions)
    table = MetricTable(n=n_bootstrap, confidence=confidence, random_state=rng)
    notes = table.decisions(y, said, counts, pos_label) + table.scores(y, said, pos_label)
    notes += [note for note in (said.note, strange) if note]
    flips = None if said.decisions_by_group is None else person_flips(said.decisions_by_group, said.own)
    gaps = None
    if said.probabilities_by_group is not None:
        gaps = person_gaps(said.probabilities_by_group, said.own, divergence=divergence)
    table.persons(said, flips, epsilon)
    others = None if frame is None else frame.drop(columns=sensitive_columns(frame, sensitive, said.own))
    pairs, subgroups, examined = pd.DataFrame(columns=PAIR_COLUMNS), pd.DataFrame(columns=COLUMNS), 0
    if others is None or others.shape[1] == 0:
        notes.append("There are no features, so that neighbours and subgroups were left out.")
    else:
        telling = shadows(others, said.decisions) if said.how == "given" else []
        if telling:
            notes.append(
                f"The decision can nearly be read from {', '.join(map(repr, telling))}: if that was made by "
                "or from the decision, leave it out, for neighbours and subgroups mean little with it."
            )
        asked = np.arange(n_people)
        if n_people > neighbour_people:
            asked = np.sort(rng.choice(n_people, neighbour_people, replace=False))
            notes.append(f"The neighbours are those of {neighbour_people:,} people drawn by lot, among all.")
        near = gower_neighbours(others, k, weights=weights, categorical=categorical, people=asked)
        codes = pd.factorize(said.decisions)[0]
        table.mean("consistency", 1 - disagreement(codes, near.indices, asked))
        pairs = neighbour_pairs(others, said, codes, asked, near, n_listed)
        if pos_label is None and y is None:
            notes.append("Without labels and a positive one among the decisions, subgroups were left out.")
        else:
            subgroups, examined = find_subgroups(
                others,
                said.decisions == (y if pos_label is None else pos_label),
                said.own,
                said.groups,
                rate="right" if pos_label is None else f"decided {pos_label!r}",
                min_count=min_count,
                confidence=confidence,
                n_listed=n_listed,
            )
    sizes = np.bincount(said.own, minlength=len(said.groups)).tolist()
    about = {
        "people": n_people,
        "labelled": y is not None,
        "groups": dict(zip(said.groups, sizes, strict=True)),
        "decisions": pd.Series(said.decisions).value_counts(sort=False).to_dict(),
        "labels": counts.labels,
        "positive": pos_label,
        "label_rate": None if pos_label is None or y is None else float((y == pos_label).mean()),
        "how": said.how,
        "sensitive_columns": said.columns,
        "epsilon": epsilon,
        "divergence": divergence,
        "k": k,
        "confidence": confidence,
        "n_bootstrap": n_bootstrap,
        "min_count": min_count,
        "subgroups_examined": examined,
    }
    people = people_apart(frame, y, said, flips, gaps, n_listed)
    return Audit(table.frame(), people, pairs, subgroups, notes, about)


def _groups_by_name(sensitive_features: Any, frame: pd.DataFrame | None) -> Any:
    """Return the columns that were named; anything else is the groups themselves."""
    if sensitive_features is None:
        raise ValueError("Got sensitive_features=None, but an audit needs the groups to compare.")
    one = isinstance(sensitive_features, str)
    names = [sensitive_features] if one else sensitive_features
    if frame is None or (not one and not isinstance(names, list | tuple)):
        if one:
            raise ValueError(f"Got sensitive_features={sensitive_features!r}, but no X with such a column.")
        return sensitive_features
    if one or (len(names) < len(frame) and all(isinstance(name, str) for name in names)):
        for name in names:
            if name not in frame.columns:
                hint = did_you_mean(name, frame.columns)
                raise ValueError(f"Got sensitive_features={name!r}, but X has no such column.{hint}")
        return frame[names[0]] if len(names) == 1 else frame[list(names)]
    return sensitive_features
