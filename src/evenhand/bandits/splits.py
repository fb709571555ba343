"""The people that `fit_many` fits models to and scores them on: everybody, or the two parts of each split."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import column_or_1d

from evenhand.arrays import Floats
from evenhand.bandits.base import Later, PolicyLearner
from evenhand.bandits.cautions import kept
from evenhand.bandits.doors import no_missing_labels
from evenhand.bandits.kernels.structs import People
from evenhand.frames import as_pandas
from evenhand.groups import as_columns, groups_by_name
from evenhand.metrics.answers import Answers
from evenhand.metrics.selection import Judged
from evenhand.wording import listed


class Crowd(NamedTuple):
    """Contexts, labels, and the keyword arguments of `fit`: those with a value per person, and others."""

    X: Any
    y: Any
    each: dict[str, Any]
    whole: dict[str, Any]

    @classmethod
    def to_split(cls, X: Any, y: Any, given: dict[str, Any]) -> Crowd:
        """Return people that can be split; raise unless there is one of everything for each of them."""
        if y is None:
            raise ValueError("Got y=None, but expected one label per person.")
        no_missing_labels(y)  # splitters would fail to sort them
        X, y = indexable(as_pandas(X), as_pandas(y))
        each, whole = {}, {}
        for name, value in given.items():
            is_groups = name == "sensitive_features"
            if np.isscalar(value) or (is_groups and groups_by_name(value, X)[1]):
                whole[name] = value
                continue
            each[name] = as_columns(value) if is_groups else as_pandas(value)
            if len(each[name]) != len(y):
                raise ValueError(
                    f"Got {name} for {len(each[name])} people, but expected one value for each of {len(y)}."
                )
        return cls(X, y, each, whole)

    def part(self, rows: Any) -> Crowd:
        """Return some of the people; None means all."""
        if rows is None:
            return self
        each = {name: _safe_indexing(values, rows) for name, values in self.each.items()}
        return self._replace(X=_safe_indexing(self.X, rows), y=_safe_indexing(self.y, rows), each=each)

    @property
    def given(self) -> dict[str, Any]:
        """The keyword arguments of `fit`."""
        return self.each | self.whole


class Task(NamedTuple):
    """Models to fit to the same people, and the people that their checkpoints are scored on."""

    models: list[Any]
    everybody: Crowd
    split: int | None = None
    rows: Any = None
    judged: Judged | None = None

    @property
    def people(self) -> Crowd:
        """The people to fit to, cut out anew each time: a copy for every split would fill the memory."""
        return self.everybody.part(self.rows)

    @property
    def place(self) -> str:
        """The split in words."""
        return "" if self.split is None else f" in split {self.split} of cv (the first is 0)"

    @contextmanager
    def named(self) -> Iterator[None]:
        """Add the split to errors."""
        try:
            yield
        except Exception as error:
            if self.place:
                self.note(error)
            raise

    def note(self, error: Exception, model: str = "") -> None:
        """Add to an error where it happened."""
        error.add_note(f"This happened{model}{self.place}.")


def tasks_of(models: list[Any], everybody: Crowd, cv: Any, scored: bool, pos_label: Any) -> Iterator[Task]:
    """Yield one task per split; if checkpoints are scored, it includes the people of the second part."""
    splits = list(check_cv(cv, everybody.y, classifier=True).split(everybody.X, everybody.y))
    if not splits:
        raise ValueError(f"Got cv={cv!r}, but expected at least one split.")
    for number, (rows, others) in enumerate(splits):
        task = Task([clone(model) for model in models], everybody, number, rows)
        if scored and models:
            with task.named():
                with kept():  # fits will warn
                    scout, _ = scouted(models[0], task.people)
                task = task._replace(judged=_judged(scout, everybody.part(others), pos_label))
        yield task


def scouted(model: PolicyLearner, people: Crowd) -> tuple[Any, tuple[Any, People]]:
    """Return a copy that knows the labels and groups, and what a fit would train on; nothing is trained.

    The model's own random numbers stay untouched.
    """
    scout, later = clone(model).set_params(random_state=0), Later()
    scout.fit(people.X, people.y, **people.given, callback=later)
    return scout, later.told


def _judged(model: Any, people: Crowd, pos_label: Any) -> Judged:
    """Return the people that score checkpoints, with a fitted model's codes for labels and groups.

    As in training, people who weigh nothing are left out.
    """
    weights = _weights_of(people)
    if weights is not None and weights.any() and not weights.all():
        people = people.part(np.flatnonzero(weights))
    contexts, labels = model._contexts(people.X, reset=False), model.classes_.tolist()
    y = column_or_1d(people.y)
    model._known_codes(y, "label")  # raises if a label is unknown
    groups, own = ["everyone"], np.zeros(contexts.shape[0], np.int64)
    if hasattr(model, "groups_"):
        groups = model.groups_.tolist()
        own = model._codes(model._given_groups(people.X, people.given.get("sensitive_features")), len(own))
    answers = Answers(labels, groups, own, y=y, pos_label=pos_label, weights=_weights_of(people))
    if answers.positive is None:
        raise ValueError(
            f"Got {len(labels)} labels and no pos_label; expected the label whose rates are compared between "
            f"groups, one of {listed(labels)}."
        )
    return Judged(contexts, answers)


def _weights_of(people: Crowd) -> Floats | None:
    weights = people.each.get("sample_weight")
    return None if weights is None else np.asarray(weights, dtype=np.float64)
