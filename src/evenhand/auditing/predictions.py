"""Predictions without a model: decisions, scores or probabilities, recognised by their values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Array
from evenhand.checks import did_you_mean, number
from evenhand.groups import encode_groups
from evenhand.metrics.answers import Answers
from evenhand.metrics.counts import encode_labels, positive_label
from evenhand.metrics.individual import check_distributions
from evenhand.wording import as_plain, listed

_GIVEN = "the predictions"
MOST_DECISIONS = 20  # without labels; more distinct values are probably scores


def check_is_model(model: Any, what: str, why: str) -> None:
    """Raise unless this can predict; `what` needs it to, and `why` completes the sentence."""
    if not hasattr(model, "predict"):
        given = "predictions" if hasattr(model, "__len__") else type(model).__name__
        raise TypeError(f"Got {given}, but {what} needs the model itself: {why}.")


def read_predictions(
    predictions: Any,
    y: Any,
    *,
    sensitive_features: Any,
    pos_label: Any = None,
    threshold: float | None = None,
) -> Answers:
    """Return predictions as `Answers`.

    A table has one probability per label of y, in sorted order; columns named like the labels may come in any
    order. Without a threshold, a single column has decisions if all its values are labels of y, or if they
    are not numbers. Other numbers are scores of the positive label. The default threshold is 0.5 for scores
    from 0 to 1. Other scores need a threshold, and so do scores of only 0 and 1, where 1 may stand for either
    label. Decisions must be labels of y, or `pos_label`; see `check_known` for labels that y may lack. If y
    is None, scores need a threshold, and the decisions are named after it.

    >>> said = read_predictions([0.2, 0.7], ["no", "yes"], sensitive_features=["f", "m"])
    >>> said.decisions.tolist(), said.how
    (['no', 'yes'], 'given')
    """
    values = np.asarray(predictions)
    if y is None:
        return _unlabelled(values, sensitive_features, threshold)
    _, _, labels = encode_labels(y, y, ("y", "y"))
    if values.ndim not in (1, 2) or len(values) != len(np.asarray(y)):
        raise ValueError(
            f"Got predictions of shape {values.shape}, but expected one for each of {len(y)} labels."
        )
    scores: Array | None = None
    note, bar = "", None
    if values.ndim == 2 and values.shape[1] > 1:
        if values.shape[1] != len(labels):
            raise ValueError(
                f"Got {values.shape[1]} probabilities per person, but y has the labels {labels}."
            )
        order = _columns_by_label(predictions, labels)
        scores = check_distributions(values[:, order], "predictions", 2)
        decided = scores.argmax(axis=1)
    else:
        values = values.reshape(len(values))
        known = labels if pos_label is None or pos_label in labels else [*labels, pos_label]
        if threshold is None and _are_decisions(values, known):
            given = encode_labels(values, values, (_GIVEN, _GIVEN))[2]
            note = check_known(given, known, "decisions", "the labels")
            _, decided, labels = encode_labels(y, values, ("y", _GIVEN))
        else:
            decided, scores, bar = at_threshold(values, labels, pos_label, threshold)
    return replace(_given(labels, decided, sensitive_features, scores, note), threshold=bar)


def _columns_by_label(predictions: Any, labels: list[Any]) -> list[int]:
    """Return the position of each label's column, by the columns' names or else in sorted order."""
    names = list(getattr(predictions, "columns", ()))
    for named, wanted in ((names, labels), (list(map(str, names)), list(map(str, labels)))):
        if set(named) == set(wanted):
            return [named.index(label) for label in wanted]
    return list(range(len(labels)))


def _unlabelled(values: Array, sensitive_features: Any, threshold: float | None) -> Answers:
    """Take decisions as they are, and name the decisions of scores after the threshold."""
    if threshold is not None and values.ndim == 1:
        names = decisions_at(threshold)
        decided, scores, bar = at_threshold(values, names, names[1], threshold)
        return replace(_given(names, decided, sensitive_features, scores), threshold=bar)
    some = pd.unique(values.ravel())
    whole = values.dtype.kind != "f" or bool(np.all(values == np.round(values)))
    if values.ndim != 1 or not whole or len(some) > MOST_DECISIONS:
        raise ValueError(
            "Got scores, or probabilities, and no labels (y=None), but without labels expected one decision "
            f"per person, of at most {MOST_DECISIONS} kinds, or a threshold for one score per person."
        )
    _, decided, labels = encode_labels(values, values, (_GIVEN, _GIVEN))
    return _given(labels, decided, sensitive_features)


def decisions_at(threshold: float) -> list[str]:
    """Return names for the decisions below a threshold, and at or above it, if there are no labels.

    >>> decisions_at(70)
    ['below 70', '70 or more']
    """
    bar = number("threshold", threshold)
    return [f"below {bar:g}", f"{bar:g} or more"]


def _given(
    labels: list[Any], decided: Array, sensitive_features: Any, scores: Array | None = None, note: str = ""
) -> Answers:
    groups = encode_groups(sensitive_features, len(decided))
    names = groups.names.tolist()
    return Answers(labels, names, groups.codes, decided=decided, own_scores=scores, how="given", note=note)


def _are_decisions(values: Array, labels: list[Any]) -> bool:
    if values.dtype.kind not in "iuf":
        return True
    met = np.isin(values, np.asarray(labels))
    if met.all():
        return True
    lacks_one = len(labels) == 1 and met.any() and len(np.unique(values)) == 2
    return bool(lacks_one and np.all(values == np.round(values)))


def at_threshold(
    values: Array, labels: list[Any], pos_label: Any, threshold: float | None
) -> tuple[Array, Array, float]:
    """Return the decisions of scores, the scores (for both labels if from 0 to 1), and the threshold."""
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise ValueError(
            "Got missing, infinite or non-numeric scores, but expected a finite number per person."
        )
    likely = bool(((values >= 0) & (values <= 1)).all())
    if threshold is None and not likely:
        raise ValueError(
            f"Got predictions from {values.min():g} to {values.max():g}, which are neither labels of y "
            f"({labels}) nor probabilities; expected one of these, or a threshold for scores."
        )
    positive = positive_label(labels, pos_label)
    if len(labels) != 2 or positive is None:
        raise ValueError(f"Got one score per person for the labels {labels}, but expected two labels.")
    if threshold is None and np.isin(values, (0, 1)).all():
        # These are probably decisions, not probabilities, and 1 may stand for the other label.
        raise ValueError(
            f"Got predictions of 0 and 1 only, but the labels are {listed(labels)}; expected "
            "the labels' names. If 1 stands for the positive label, "
            f"{labels[positive]!r}, give the threshold 0.5 (--threshold 0.5, in Python threshold=0.5)."
        )
    bar = 0.5 if threshold is None else number("threshold", threshold)
    decided = np.where(values >= bar, positive, 1 - positive)
    if not likely:
        return decided, values.astype(float), bar
    scores = np.stack([1 - values, values] if positive == 1 else [values, 1 - values], axis=1)
    return decided, scores, bar


def check_known(values: Iterable[Any], known: Iterable[Any], what: str, wanted: str) -> str:
    """Raise if values are not known labels; return a note on values that may be labels nobody has here.

    If only one label is known, a second may be missing; if more than two are known, any number may be. In
    these cases an unknown value passes if another value is known, and if it isn't a known label spelled
    differently. If two labels are known, there is no third.

    >>> check_known(["no", "yes"], ["no"], "decisions", "the labels")
    "'yes' is among the decisions, but not among the labels ('no')."
    >>> check_known(["y"], ["yes"], "decisions", "labels")
    Traceback (most recent call last):
    ...
    ValueError: Got 'y' among the decisions, but labels are 'yes'; expected the same names.
    """
    values, known = [as_plain(value) for value in values], [as_plain(label) for label in known]
    unknown = [value for value in values if value not in known]
    if not unknown:
        return ""
    came, wants = listed(unknown, most=6), listed(known, most=6)
    spelled = {_spelling(label) for label in known}
    rooms = 1 if len(known) == 1 else 0 if len(known) == 2 else len(unknown)
    passes = len(unknown) < len(values) and len(unknown) <= rooms
    if passes and not any(_spelling(value) in spelled for value in unknown):
        verb = "is" if len(unknown) == 1 else "are"
        return f"{came} {verb} among the {what}, but not among {wanted} ({wants})."
    texts = {_spelling(label): isinstance(label, str) for label in known}
    if any(texts.get(_spelling(value)) == (not isinstance(value, str)) for value in unknown):
        raise ValueError(
            f"Got {came} among the {what}, but {wanted} are {wants}: text in one, numbers or truth values in "
            "the other; expected one type."
        )
    hint = next((hint for value in unknown if (hint := did_you_mean(value, known))), "")
    raise ValueError(f"Got {came} among the {what}, but {wanted} are {wants}; expected the same names.{hint}")


def _spelling(value: Any) -> str:
    return str(value).strip().casefold()
