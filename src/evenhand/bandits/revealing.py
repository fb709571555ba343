"""Labels that only some actions reveal: who has a label, and how many people each of them represents."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

from evenhand import checks
from evenhand.arrays import Codes, Floats
from evenhand.bandits.offpolicy import one_each
from evenhand.wording import listed


def revealed(
    labels: Any,
    reveals: Collection[Any] | None,
    actions: Any,
    classes: Any,
    propensities: Floats,
    clip: float,
) -> tuple[Any, Floats]:
    """Return the labels (missing where not revealed), and how many people each person represents.

    If R actions reveal the label, and one of them was taken with probability p, the person represents 1/(R·p)
    people with that label, at most `clip`. On average, this counts everybody once, whatever policy made the
    log. If all actions reveal the label, everybody has one and represents one person.
    """
    given, taken = np.asarray(labels, dtype=object), np.asarray(actions, dtype=object)
    one_each("labels", given, len(taken))
    known: list[Any] = np.asarray(classes).tolist()
    showing = known if reveals is None else list(reveals)
    for action in showing:
        if action not in known:
            near = checks.did_you_mean(action, known)
            raise ValueError(f"Got reveals={showing}, but the actions are {listed(known)}.{near}")
    shows = np.isin(taken, np.array(showing, dtype=object))
    if not shows.any():
        raise ValueError(
            f"Got reveals={showing}, but no action of the log is one of these: expected some after which the "
            "label was seen. Rates among people with a label can't be known without any."
        )
    missing = np.asarray(pd.isna(given))
    for wrong, what, then in (
        (shows & missing, "no label", "a label: leave people out whose outcome has not come yet"),
        (~shows & ~missing, "a label", f"none: by reveals={showing} it is not seen"),
    ):
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(f"Got {what} after the action {taken[row]!r} in row {row}, but expected {then}.")
    if len(showing) == len(known):
        return given, np.ones(len(taken))
    return given, np.where(shows, np.minimum(1 / (len(showing) * propensities), clip), 1.0)


def label_codes(labels: Any, classes: Any) -> Codes:
    """Return labels as indices into the classes; -1 where there is none."""
    known = {label: at for at, label in enumerate(np.asarray(classes).tolist())}
    found = np.array([-1 if pd.isna(label) else known.get(label, -2) for label in labels], dtype=np.int64)
    if (found == -2).any():
        wrong = labels[int(np.argmax(found == -2))]
        raise ValueError(
            f"Got label {wrong!r}, but expected the action that was right, one of {listed(list(known))}."
        )
    return found
