"""Mixtures of a person and their counterpart, and how a model, or a surrogate, decides about them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand.arrays import Array, Codes, Flags, Floats
from evenhand.metrics.answers import positions
from evenhand.metrics.classifiers import as_fitted, ask, model_columns, takes_group
from evenhand.metrics.group_columns import one_hot_features
from evenhand.tables.columns import is_number

ROWS = 50_000  # the number of rows to predict at once
FOLDS = 3
_ARRAYS = ("own", "other", "people", "counterparts", "reached")
MOST_CATEGORIES = 250  # the most categories of a column that a surrogate distinguishes


@dataclass(frozen=True, eq=False)
class Pairs:
    """People and their counterparts, row by row, with the counterparts' decisions."""

    mine: pd.DataFrame
    theirs: pd.DataFrame
    own: Codes  # groups
    other: Codes
    people: Codes  # positions in X
    counterparts: Codes  # positions in X, or -1 for somebody made up
    reached: Codes  # the counterparts' decisions

    def __len__(self) -> int:
        return len(self.people)

    def take(self, at: Any) -> Pairs:
        """Return some of the pairs."""
        frames = (frame.iloc[at].reset_index(drop=True) for frame in (self.mine, self.theirs))
        return Pairs(*frames, *(getattr(self, name)[at] for name in _ARRAYS))

    @classmethod
    def joined(cls, parts: Sequence[Pairs]) -> Pairs:
        """Return the pairs of all parts."""
        frames = (
            pd.concat([getattr(part, name) for part in parts], ignore_index=True)
            for name in ("mine", "theirs")
        )
        return cls(*frames, *(np.concatenate([getattr(part, name) for part in parts]) for name in _ARRAYS))


class Carriers(NamedTuple):
    """What can be exchanged within a pair: features, each with one or more columns, and the group."""

    names: list[str]
    columns: list[list[Any]]
    group: int | None  # the carrier that is the group; None if the decisions can't depend on it

    def mixed(self, pairs: Pairs, at: Codes, taken: Flags) -> tuple[pd.DataFrame, Codes]:
        """Return people with the `taken` carriers, (rows, carriers), replaced by the counterpart's."""
        held = {}
        for carrier, columns in enumerate(self.columns):
            rows = at + len(pairs) * taken[:, carrier]
            for name in columns:
                both = pd.concat([pairs.mine[name], pairs.theirs[name]], ignore_index=True)
                held[name] = both.iloc[rows].reset_index(drop=True)
        groups = pairs.own[at]
        if self.group is not None:
            groups = np.where(taken[:, self.group], pairs.other[at], groups)
        return pd.DataFrame(held, index=pd.RangeIndex(len(at))), groups

    def differ(self, pairs: Pairs) -> Flags:
        """Return in which carriers each pair differs, (pairs, carriers)."""
        apart = np.zeros((len(pairs), len(self.names)), dtype=bool)
        for carrier, columns in enumerate(self.columns):
            for name in columns:
                mine, theirs = pairs.mine[name], pairs.theirs[name]
                same = (mine == theirs) | (mine.isna() & theirs.isna())
                apart[:, carrier] |= ~same.to_numpy(dtype=bool, na_value=False)
        if self.group is not None:
            apart[:, self.group] |= pairs.own != pairs.other
        return apart


@dataclass(frozen=True)
class Model:
    """The model itself."""

    model: Any
    X: Any
    frame: pd.DataFrame
    sensitive_features: Any
    own: Codes
    labels: list[Any]

    @property
    def seen(self) -> list[Any]:
        """The columns that the model uses."""
        return model_columns(self.model, self.frame, self.sensitive_features)

    @property
    def told(self) -> bool:
        """Whether the model takes the group."""
        return takes_group(self.model)

    def __call__(self, rows: pd.DataFrame, groups: Codes, people: Codes) -> tuple[Codes, Floats | None]:
        """Return decisions, and probabilities of the labels, for rows made from these people."""
        given = None
        if self.told:
            member = np.unique(self.own, return_index=True)[1]  # one of each group
            held: Any = self.sensitive_features
            held = held if hasattr(held, "iloc") else pd.DataFrame(held).squeeze(axis=1)
            given = held.iloc[member[groups]].reset_index(drop=True)
        said = ask(self.model, as_fitted(self.model, rows[self.seen], self.X), given, 0)
        return positions(said.decisions, self.labels), said.scores


class Surrogate:
    """Boosted trees that imitate given decisions; they predict each person by trees fitted to others."""

    told = True  # whoever made the decisions may have known the group

    def __init__(
        self, frame: pd.DataFrame, own: Codes, decided: Codes, n_labels: int, rng: np.random.Generator
    ) -> None:
        from sklearn.ensemble import HistGradientBoostingClassifier

        if len(np.unique(decided)) < 2:
            raise ValueError("Got the same decision for everybody, but expected some that differ.")
        self.seen = list(frame.columns)
        self._known = {name: categories_of(frame[name]) for name in self.seen}
        self._fold, self._n_labels = rng.permutation(len(frame)) % FOLDS, n_labels
        table = self._table(frame, own)
        categories = [self._known[name] is not None for name in self.seen] + [True]
        settings: dict[str, Any] = {"categorical_features": categories, "random_state": 0}
        self._models = [
            HistGradientBoostingClassifier(**settings).fit(table[self._fold != k], decided[self._fold != k])
            for k in range(FOLDS)
        ]
        #: The share of people whose decision is reproduced by trees fitted to other people.
        self.fidelity = float(np.mean(self(frame, own, np.arange(len(frame)))[0] == decided))

    def __call__(self, rows: pd.DataFrame, groups: Codes, people: Codes) -> tuple[Codes, Floats | None]:
        """Predict the rows made from each person by the trees that were not fitted to that person."""
        said, table = np.zeros((len(rows), self._n_labels)), self._table(rows, groups)
        fold = self._fold[people]
        for k, model in enumerate(self._models):
            if (fold == k).any():
                said[np.ix_(fold == k, model.classes_)] = model.predict_proba(table[fold == k])
        return said.argmax(axis=1), said

    def _table(self, rows: pd.DataFrame, groups: Codes) -> Floats:
        columns = [as_numbers(rows[name], known) for name, known in self._known.items()]
        return np.column_stack([*columns, np.minimum(groups, MOST_CATEGORIES).astype(float)])


Ask = Model | Surrogate


def carriers_of(
    ask: Ask, frame: pd.DataFrame, sensitive: Sequence[Any], name: str, together: Sequence[Sequence[Any]] = ()
) -> Carriers:
    """Return the carriers; one-hot columns of a feature, and columns given in `together`, are one carrier."""
    seen = [column for column in ask.seen if column not in sensitive]
    given = [[column for column in columns if column in seen] for columns in together]
    taken = {column for columns in given for column in columns}
    rest = one_hot_features(frame[[column for column in seen if column not in taken]])
    columns = [some for some in [*given, *rest] if some]
    names = [_name(some) for some in columns]
    inside = [column for column in ask.seen if column in sensitive]
    if not (inside or ask.told):
        return Carriers(names, columns, None)
    return Carriers([*names, name], [*columns, inside], len(names))


def asked(ask: Ask, carriers: Carriers, pairs: Pairs, at: Codes, taken: Flags) -> tuple[Codes, Floats | None]:
    """Return the decisions about mixed people, predicted in blocks, and the scores if there are any."""
    said = []
    for start in range(0, len(at), ROWS):
        part = slice(start, start + ROWS)
        said.append(ask(*carriers.mixed(pairs, at[part], taken[part]), pairs.people[at[part]]))
    decided = np.concatenate([np.empty(0, dtype=np.int64), *(one for one, _ in said)])
    scores = [scores for _, scores in said if scores is not None]
    return decided, np.concatenate(scores) if scores else None


def _name(columns: list[Any]) -> str:
    if len(columns) == 1:
        return str(columns[0])
    starts = {re.split(r"[_=.: ]", str(name))[0] for name in columns}  # job_cook, job_clerk
    return starts.pop() if len(starts) == 1 else ", ".join(map(str, columns))


def categories_of(column: pd.Series[Any]) -> pd.Index[Any] | None:
    """Return the values to distinguish, the most frequent first; None for numbers and dates."""
    if is_number(column) or pd.api.types.is_datetime64_any_dtype(column.dtype):
        return None
    return column.value_counts().index[:MOST_CATEGORIES].astype(object)


def as_numbers(column: pd.Series[Any], known: pd.Index[Any] | None) -> Array:
    """Return numbers as they are, dates in days, and categories as positions among the known ones."""
    if known is not None:
        codes = known.get_indexer(pd.Index(column.astype(object))).astype(float)
        return np.where(codes < 0, np.nan, codes)
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        column = (column - pd.Timestamp(0)) / pd.Timedelta(1, "D")
    return column.to_numpy(dtype=float, na_value=np.nan)
