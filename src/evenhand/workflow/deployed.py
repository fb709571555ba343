"""Deployed: a trained model with all it needs to decide about the rows of a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.bandits.cooperative import CooperativeBandits
from evenhand.groups import codes_of
from evenhand.tables.columns import CATEGORY, NUMBER
from evenhand.tables.matching import (
    Reasons,
    check_columns,
    check_reasons,
    each_once,
    known_categories,
    met,
    read_contexts,
    reject,
    spellings,
    text_of,
)
from evenhand.tables.preprocessing import encode
from evenhand.workflow.persistence import save

Array = npt.NDArray[Any]


class Decisions(NamedTuple):
    """What was decided about each row; rows that can't be scored have a reason and are in no other field."""

    reasons: Reasons  # one a row, '' where the row was scored
    scored: npt.NDArray[np.bool_]
    decision: Array
    probability: npt.NDArray[np.float64]  # of the positive label, or of the decision if there is none
    by_group: npt.NDArray[np.float64]  # of the same label under every group's policy: (people, groups)
    by_label: npt.NDArray[np.float64]  # of every label under the person's own policy: (people, labels)
    would_flip: npt.NDArray[np.bool_]
    unseen: dict[str, dict[str, int]]  # categories that training never met: people by value, by column


@dataclass
class Deployed:
    """A fitted preprocessor and model, and which column of a file is what.

    Parameters
    ----------
    preprocessor : ColumnTransformer
        Fitted on the training part's contexts.
    model : CooperativeBandits
        Fitted on what the preprocessor makes of them.
    columns : dict
        Each context column's kind: 'number', 'category', or the format of a date, such as '%d.%m.%Y'.
    label : str
        The column that was learned.
    sensitive : list of str
        The sensitive columns; several make their combinations.
    pos_label : object
        The label that counts as the positive decision; None where none of more than two labels does.
    card : dict
        The model card (see `evenhand.workflow.card`).
    """

    preprocessor: Any
    model: CooperativeBandits
    columns: dict[str, str]
    label: str
    sensitive: list[str]
    pos_label: Any
    card: dict[str, Any] = field(default_factory=dict)

    @property
    def classes_(self) -> Array:
        """The labels."""
        return np.asarray(self.model.classes_)

    @property
    def groups_(self) -> Array:
        """The groups' names."""
        return np.asarray(self.model.groups_)

    def save(self, path: str | Path) -> Path:
        """Write the model to a skops file, which `evenhand.load` reads; return its path.

        Parameters
        ----------
        path : str or Path
            The file to write.
        """
        return save(self, path)

    # Contexts in (a table with the columns that were learned from; dates may be days since 1970) -------

    def probabilities_by_group(self, X: pd.DataFrame) -> npt.NDArray[np.float64]:
        """Return what each group's policy says of each person: (people, groups, actions)."""
        reasons = np.full(len(X), "", dtype=object)
        kinds = {
            name: NUMBER if kind != CATEGORY and pd.api.types.is_numeric_dtype(X[name]) else kind
            for name, kind in self.columns.items()
        }
        contexts = read_contexts(X, kinds, self.preprocessor, reasons)
        check_reasons(X, reasons)
        return self._said(contexts)

    def _said(self, contexts: pd.DataFrame) -> npt.NDArray[np.float64]:
        return self.model.probabilities_by_group(encode(self.preprocessor, contexts))

    def predict_proba(self, X: pd.DataFrame, *, sensitive_features: Any = None) -> npt.NDArray[np.float64]:
        """Return each person's action probabilities under their own group's policy.

        The groups are taken from X where `sensitive_features` is None and X has the sensitive columns.
        """
        codes = (
            self._own(X)
            if sensitive_features is None
            else codes_of(sensitive_features, len(X), self.groups_, self.sensitive)
        )
        return self.probabilities_by_group(X)[np.arange(len(X)), codes]

    def _own(self, X: pd.DataFrame) -> npt.NDArray[np.int64]:
        if any(name not in X.columns for name in self.sensitive):
            groups = ", ".join(map(repr, self.groups_.tolist()))
            raise ValueError(
                f"The model has a policy for each group of {' & '.join(self.sensitive)!r} ({groups}), but "
                "got no sensitive_features, nor are they columns of X; expected either."
            )
        reasons = np.full(len(X), "", dtype=object)
        codes = self._group_codes(X, reasons)
        check_reasons(X, reasons)
        return codes

    def predict(self, X: pd.DataFrame, *, sensitive_features: Any = None) -> Array:
        """Return each person's decision under their own group's policy; see `predict_proba`."""
        return np.asarray(
            self.classes_[self.predict_proba(X, sensitive_features=sensitive_features).argmax(1)]
        )

    # Rows of a file in -----------------------------------------------------------------------------------

    def decide(self, rows: pd.DataFrame) -> Decisions:
        """Decide about rows as they stand in a file; a row that can't be scored gets a reason instead."""
        contexts, codes, reasons = self.read(rows)
        scored = reasons == ""
        if not scored.any():
            nobody, groups, labels = np.empty(0), np.empty((0, len(self.groups_))), self.classes_
            return Decisions(
                reasons,
                scored,
                labels[:0],
                nobody,
                groups,
                np.empty((0, len(labels))),
                nobody.astype(bool),
                {},
            )
        said = self._said(contexts[scored])
        own, people = codes[scored], np.arange(int(scored.sum()))
        decided = said.argmax(2)
        mine = decided[people, own]
        told = mine if self.pos_label is None else self.classes_.tolist().index(self.pos_label)
        by_group = said[people, :, told]
        return Decisions(
            reasons,
            scored,
            self.classes_[mine],
            by_group[people, own],
            by_group,
            said[people, own],
            (decided != mine[:, None]).any(axis=1),
            self.unseen(contexts[scored]),
        )

    def unseen(self, contexts: pd.DataFrame) -> dict[str, dict[str, int]]:
        """Return how many people have each category that training never met, by column."""
        unseen = {}
        for name, kind in self.columns.items():
            known = set(known_categories(self.preprocessor, name).values()) if kind == CATEGORY else set()
            if known:
                counts = contexts[name].value_counts(sort=False)
                unseen[name] = {
                    str(value): int(count) for value, count in counts.items() if value not in known
                }
        return {name: values for name, values in unseen.items() if values}

    def read(self, rows: pd.DataFrame) -> tuple[pd.DataFrame, npt.NDArray[np.int64], Reasons]:
        """Return the contexts and the groups' numbers in rows of a file, and why a row can't be scored."""
        check_columns(rows, (*self.columns, *self.sensitive))
        reasons = np.full(len(rows), "", dtype=object)
        contexts = read_contexts(rows, self.columns, self.preprocessor, reasons)
        return contexts, self._group_codes(rows, reasons), reasons

    def labels(self, column: pd.Series[Any]) -> pd.Series[Any]:
        """Return a file's labels as the model's own: '1.0', in a column with gaps, is its 1."""
        known = spellings(self.classes_)
        own = {str(label): label for label in self.classes_.tolist()}
        return each_once(text_of(column), lambda value: own.get(met(value, known, value), value))

    def _group_codes(self, rows: pd.DataFrame, reasons: Reasons) -> npt.NDArray[np.int64]:
        text = [text_of(rows[name]) for name in self.sensitive]
        joined = text[0]
        for column in text[1:]:
            joined = joined + " & " + column
        between = " & " if len(text) > 1 else None
        known = spellings(self.groups_, between)
        position = {str(name): code for code, name in enumerate(self.groups_)}
        codes = each_once(joined, lambda value: position.get(met(value, known, "", between), -1)).to_numpy(
            dtype=np.int64
        )
        listed = ", ".join(repr(str(name)) for name in self.groups_)
        reject(
            reasons,
            codes < 0,
            lambda at: (
                f"group {joined.iloc[at]!r} in {' & '.join(self.sensitive)!r}: training met only {listed}"
            ),
        )
        return codes
