"""The audit of people in memory: predict, measure the predictions, and list the people most affected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import RegressorMixin

from evenhand.arrays import Array, Codes
from evenhand.auditing.about import Plan, along_threshold, copies_note, counted, on_weights, rate_searched
from evenhand.auditing.certificate.certify import certify as find_worst
from evenhand.auditing.certificate.held import bounded_policies
from evenhand.auditing.near_copies import near_copies
from evenhand.auditing.people import PAIR_COLUMNS, neighbour_pairs, people_apart
from evenhand.auditing.predictions import MOST_DECISIONS, check_is_model, check_known, read_predictions
from evenhand.auditing.result import About, Audit
from evenhand.auditing.searching.search import NEEDED, search_flips
from evenhand.auditing.subgroups import COLUMNS, find_subgroups
from evenhand.auditing.table import MetricTable
from evenhand.auditing.tally import tally
from evenhand.auditing.twins import find_twins
from evenhand.frames import as_pandas
from evenhand.groups import check_column, column_called, groups_by_name
from evenhand.metrics.answers import Answers
from evenhand.metrics.asking import respond
from evenhand.metrics.classifiers import classifier, draws, final_step
from evenhand.metrics.counts import encode_labels
from evenhand.metrics.gower import as_frame, gower_neighbours
from evenhand.metrics.group_columns import sensitive_columns
from evenhand.metrics.weights import check_weights
from evenhand.wording import people

NEIGHBOURS = 5  # of each person, unless another number is asked for; with fewer people, there are none


def audit_people(
    X: Any, named: tuple[Any, Any, Any, Any], plan: Plan, worst: Mapping[str, Any] | None,
    search: Mapping[str, Any] | None,
) -> Audit:  # fmt: skip
    """Audit people in memory; `named` has the model or predictions, the labels, groups and weights."""
    model, y, sensitive_features, sample_weight = named
    rng, settings, n_listed = plan.rng, plan.settings, plan.n_listed
    X, model = _taken(X, "predictions", model)
    X, y = _taken(X, "y", y)
    X, sample_weight = _taken(X, "sample_weight", sample_weight)
    frame, truth = None if X is None else as_frame(X), None if y is None else np.asarray(y)
    if frame is not None and truth is not None and len(frame) != len(truth):
        raise ValueError(f"Got X of {len(frame)} people and {len(truth)} labels in y; expected one each.")
    if sensitive_features is None:
        raise ValueError("Got sensitive_features=None, but an audit needs the groups to compare.")
    if worst is not None:  # refuse unsuitable models before measuring anything
        bounded_policies(model, worst.get("radius"))
    if search is not None:
        check_is_model(model, *NEEDED)
    groups, _ = groups_by_name(as_pandas(sensitive_features), frame)
    answers = _answers(model, X, truth, groups, plan.pos_label, plan.threshold, rng)
    if frame is not None and len(frame) != len(answers):
        raise ValueError(f"Got X of {len(frame)} people and {len(answers)} predictions; expected one each.")
    shares = None if sample_weight is None else check_weights(sample_weight, len(answers))
    answers = replace(answers, min_group=settings["min_group"], weights=shares)
    table = MetricTable(answers, **plan.resampling)
    notes = [*on_weights(answers), *table.decisions(), *table.scores(), *answers.note.splitlines()]
    table.persons(settings["epsilon"])
    others = None if frame is None else frame.drop(columns=sensitive_columns(frame, groups, answers.own))
    pairs, subgroups, examined = pd.DataFrame(columns=PAIR_COLUMNS), pd.DataFrame(columns=COLUMNS), 0
    if others is None or others.shape[1] == 0:
        notes.append("There are no features, so neighbours and subgroups were left out.")
    else:
        asked, warned = _asked(others, answers, plan.n_drawn, rng)
        if len(others) > NEIGHBOURS or settings["k"] != NEIGHBOURS:
            found = gower_neighbours(others, **plan.near, people=asked)
            table.consistency(found.indices, asked)
            pairs = neighbour_pairs(others, answers, asked, found, n_listed)
        else:
            warned.append(f"Neighbours were left out: {NEIGHBOURS} are too many for {people(len(others))}.")
        rate, outcome, lacking = rate_searched(answers)
        if outcome is not None:
            of = answers.own, answers.groups, plan.search(rate)
            subgroups, examined = find_subgroups(others, outcome, *of)
        notes += warned + lacking
    about: About = {**counted(answers), **settings, "subgroups_examined": examined}
    if hasattr(model, "n_trained_on") and (trained := model.n_trained_on(X, y, groups)):
        about["trained_on"] = trained
    apart = people_apart(frame, answers, settings["divergence"], n_listed)
    told = (notes, about, along_threshold(answers), tally(answers, groups))
    audited = Audit(table.frame(), apart, pairs, subgroups, *told)
    if plan.twins is not None:
        audited = replace(audited, twins=find_twins(model, X, answers, groups, plan.twins, rng))
    if worst is not None:
        certificate = find_worst(model, X, **{"random_state": rng, **worst})
        audited = replace(audited, worst=replace(certificate, column=column_called(groups)))
    if search is not None:
        options = {"pos_label": answers.pos_label, "n_listed": n_listed, "random_state": rng, **search}
        audited = replace(audited, search=search_flips(model, X, sensitive_features=groups, **options))
    return audited


def _taken(X: Any, argument: str, given: Any) -> tuple[Any, Any]:
    """Return X without the column that an argument names, and the column's values; else both unchanged."""
    if not isinstance(given, str):
        return X, given
    frame = pd.DataFrame() if X is None else as_frame(X)
    check_column(argument, given, frame.columns)
    return frame.drop(columns=given), frame[given].to_numpy()


def _answers(
    model: Any, X: Any, y: Array | None, groups: Any, pos_label: Any, threshold: float | None,
    rng: np.random.Generator,
) -> Answers:  # fmt: skip
    """Return the predictions of a model, or given predictions, together with the true labels."""
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
    """Return a model's predictions; their note says which labels only the model or only y has."""
    if X is None:
        raise ValueError("Got a model and X=None, but a model needs X to predict.")
    if isinstance(final_step(classifier(model)), RegressorMixin):
        raise TypeError(
            f"Got {type(model).__name__}, a regressor, but expected a classifier. To audit its scores, give "
            "the lowest one of a positive decision: audit(model.predict(X), X, y, threshold=…)."
        )
    if threshold is not None:
        raise ValueError(f"Got threshold={threshold!r} with a model, but a model decides by itself.")
    answers = respond(model, X, sensitive_features=groups, random_state=seed)
    labels = answers.labels if y is None else encode_labels(y, y, ("y", "y"))[2]
    if y is None and len(labels) > MOST_DECISIONS:
        raise ValueError(
            f"Got a model that gives {len(labels)} different answers and no labels (y=None), but without "
            f"labels expected at most {MOST_DECISIONS} different decisions."
        )
    if hasattr(model, "classes_"):
        strange = check_known(labels, answers.labels, "labels", "the model's decisions")
    else:
        strange = check_known(answers.labels, labels, "decisions", "the labels")
    drawn = "The model may draw its decisions at random; these are from one draw." * draws(classifier(model))
    return replace(answers, note="\n".join(note for note in (answers.note, strange, drawn) if note))


def _asked(
    others: pd.DataFrame, answers: Answers, most: int, rng: np.random.Generator
) -> tuple[Codes, list[str]]:
    """Return the people to find neighbours for, and notes on near copies and on sampling."""
    notes = copies_note(near_copies(others, answers.decisions) if answers.how == "given" else [])
    asked = np.arange(len(answers))
    if len(asked) > most:
        asked = np.sort(rng.choice(len(asked), most, replace=False))
        notes.append(f"Neighbours were found for {len(asked):,} people drawn at random, among everybody.")
    return asked, notes
