"""Deployed: a trained model with everything it needs to decide about the rows of a table."""

from __future__ import annotations

import html
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Array, Codes, Floats
from evenhand.checks import number, one_of
from evenhand.groups import EVERYONE, JOINT, codes_of
from evenhand.metrics.answers import Answers, decided_at
from evenhand.metrics.counts import positive_label
from evenhand.tables import matching
from evenhand.tables.files import as_pandas
from evenhand.tables.grouping import group_positions
from evenhand.tables.preprocessing import check_preprocessor, computable, encode
from evenhand.wording import listed
from evenhand.workflow.card import NOT_MEASURED, tested
from evenhand.workflow.decisions import Decisions
from evenhand.workflow.persistence import save


@dataclass(repr=False)
class Deployed:
    """A model ready for use: it takes the rows of a table as they are.

    `Frontier.choose` returns one, and `evenhand.load` reads one that `evenhand fit` saved.

    Parameters
    ----------
    preprocessor : ColumnTransformer
        Fitted on the training part's contexts.
    model : CooperativeBandits, CooperativeBoosting or CooperativeEnsemble
        Fitted on the preprocessed contexts. After `compress`, it has one policy for everyone.
    columns : dict
        Each context column's kind: 'number', 'category', or the format of a date, such as '%d.%m.%Y'.
    label : str
        The column that the model predicts.
    sensitive : list of str
        The sensitive columns. With several, the groups are the combinations of their values.
    pos_label : object
        The label that counts as the positive decision; None if none of more than two labels was named as it.
    card : dict
        The model card (see `evenhand.workflow.card`).
    merged : dict, optional
        The small groups that were merged before training, each with the name of its new group.
    threshold : float, optional
        The decision is `pos_label` if its probability is at least this, in every group. None: the decision is
        the most probable label.
    """

    preprocessor: Any
    model: Any
    columns: dict[str, str]
    label: str
    sensitive: list[str]
    pos_label: Any
    card: dict[str, Any] = field(default_factory=dict)
    merged: dict[str, str] | None = None  # also None in files of an earlier version
    threshold: float | None = None

    @property
    def classes_(self) -> Array:
        """The labels."""
        return np.asarray(self.model.classes_)

    @property
    def feature_names_in_(self) -> Array:
        """The feature columns."""
        return np.asarray(list(self.columns), dtype=object)

    @property
    def groups_(self) -> Array:
        """The groups' names."""
        return np.asarray(getattr(self.model, "groups_", [EVERYONE]))

    @property
    def sensitive_name(self) -> str:
        """The name of the sensitive column; of several, the joined names."""
        return JOINT.join(self.sensitive)

    def save(self, path: str | Path) -> Path:
        """Write the model to a skops file, which `evenhand.load` and `evenhand predict` read.

        Parameters
        ----------
        path : str or Path
            The file, such as 'model.skops'.

        Returns
        -------
        Path
            The file.
        """
        return save(self, path)

    # Methods for contexts (a table with the feature columns; dates may be days since 1970) -------------

    def probabilities_by_group(self, X: Any) -> Floats:
        """Return what each group's policy says about each person.

        Parameters
        ----------
        X : DataFrame
            One row per person, with the columns in `columns`; others are ignored.

        Returns
        -------
        array of shape (people, groups, labels)
            Probabilities.

        Raises
        ------
        ValueError
            If a column is missing, or a value is not a number or date although training had one there.
        """
        contexts = matching.contexts_of(as_pandas(X), self.columns, self.preprocessor)
        return self._said(encode(self.preprocessor, contexts))

    def _said(self, features: Any) -> Floats:
        if hasattr(self.model, "probabilities_by_group"):
            return np.asarray(self.model.probabilities_by_group(features))
        return np.asarray(self.model.predict_proba(features))[:, None]

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return each person's probability of each label, under the policy of their own group.

        Parameters
        ----------
        X : DataFrame
            One row per person.
        sensitive_features : array, Series or DataFrame, optional
            Each person's group; by default the sensitive columns of X.

        Returns
        -------
        array of shape (people, labels)
            Probabilities.
        """
        frame = as_pandas(X)
        if sensitive_features is None:
            own = self._own(frame)
        else:
            own = codes_of(sensitive_features, len(frame), self.groups_, self.sensitive)
        return self.probabilities_by_group(frame)[np.arange(len(frame)), own]

    def _own(self, X: pd.DataFrame) -> Codes:
        if any(name not in X.columns for name in self.sensitive):
            raise ValueError(
                f"The model has a policy for each group of {self.sensitive_name!r} "
                f"({listed(self.groups_.tolist())}), but got no sensitive_features, nor are they columns "
                "of X; expected either."
            )
        reasons = np.full(len(X), "", dtype=object)
        codes = self._group_codes(X, reasons)
        matching.check_reasons(X, reasons)
        return codes

    def predict(self, X: Any, *, sensitive_features: Any = None) -> Array:
        """Return each person's decision under the policy of their own group.

        Parameters
        ----------
        X, sensitive_features
            As in `predict_proba`.

        Returns
        -------
        array
            Labels.
        """
        said = self.predict_proba(X, sensitive_features=sensitive_features)
        positive = positive_label(self.classes_.tolist(), self.pos_label)
        return np.asarray(self.classes_[decided_at(self.threshold, said, positive)])

    def decide(self, rows: Any, *, unknown_group: str = "reject") -> Decisions:
        """Decide about the rows of a raw table; a row that can't be scored gets a reason instead.

        Parameters
        ----------
        rows : DataFrame
            One row per person, with the feature columns and the sensitive columns. The sensitive columns may
            be missing unless `unknown_group` is 'reject'.
        unknown_group : {'reject', 'mean', 'agree'}
            What to do if a person's group is unknown, or was not seen in training. 'reject': they can't be
            scored. 'mean': the mean of all policies decides. 'agree': the mean decides if all policies agree;
            otherwise they can't be scored. `Decisions.by` says what decided about each person.

        Returns
        -------
        Decisions
            Decisions, probabilities, and who would get a different decision in another group.

        Raises
        ------
        ValueError
            If a column is missing.
        """
        one_of("unknown_group", unknown_group, ("reject", "mean", "agree"))
        contexts, codes, reasons = self.read(rows, need_group=unknown_group == "reject")
        scored = reasons == ""
        said = np.empty((0, len(self.groups_), len(self.classes_)))  # encoding no rows is an error
        if scored.any():
            features = encode(self.preprocessor, contexts[scored])
            good = computable(features)
            too_large = np.zeros(len(reasons), dtype=np.bool_)
            too_large[np.flatnonzero(scored)[~good]] = True
            why = "a number too large to compute with, once it is scaled"
            matching.reject(reasons, too_large, lambda at: why)
            scored = reasons == ""
            said = self._said(features[good])
        about = {"pos_label": self.pos_label, "threshold": self.threshold}
        answers = Answers(self.classes_.tolist(), self.groups_.tolist(), codes[scored], said, **about)
        strange = matching.unmet(contexts[scored], self.columns, self.preprocessor)
        found = Decisions(answers, reasons, strange, contexts.index[scored])
        return found if unknown_group == "reject" else found.without_group(unknown_group)

    def read(self, rows: Any, *, need_group: bool = True) -> tuple[pd.DataFrame, Codes, matching.Reasons]:
        """Return the contexts in the rows of a table, the groups' positions, and why rows can't be scored.

        Without `need_group`, an unknown group is no reason; its position is -1.
        """
        frame = as_pandas(rows)
        matching.check_columns(frame, (*self.columns, *(self.sensitive if need_group else ())))
        reasons = np.full(len(frame), "", dtype=object)
        contexts = matching.read_contexts(frame, self.columns, self.preprocessor, reasons)
        return contexts, self._group_codes(frame, reasons if need_group else reasons.copy()), reasons

    def _group_codes(self, rows: pd.DataFrame, reasons: matching.Reasons) -> Codes:
        if not set(self.sensitive) <= set(rows.columns):  # which `read` allows if no group is needed
            return np.full(len(rows), -1)
        if not self.sensitive:
            return np.zeros(len(rows), dtype=np.int64)
        codes, said = group_positions(rows[self.sensitive], self.groups_, self.merged or {})
        names = listed([str(name) for name in self.groups_])
        texts = {name: matching.text_of(rows[name]).str.strip() for name in self.sensitive}

        def why(at: int) -> str:
            empty = [name for name, text in texts.items() if not text.iloc[at]]
            if empty:
                are = "is" if len(empty) == 1 else "are"
                return f"{listed(empty)} {are} empty; training had only {names}"
            return f"group {said.iloc[at]!r} in {self.sensitive_name!r}: training had only {names}"

        matching.reject(reasons, codes < 0, why)
        return codes

    def compress(self, group: Any) -> Deployed:
        """Return a model that decides about everybody with one group's policy, and needs no sensitive column.

        `group` is one of `groups_`.
        """
        note = f"One policy for everyone, that of {group} among {listed(self.groups_.tolist())}."
        settings = {**self.card.get("model", {}), "policies": [str(group)], "note": note}
        card = {**self.card, **NOT_MEASURED, "model": settings}  # it was measured with all policies
        own = {str(name): name for name in self.groups_.tolist()}.get(str(group), group)
        return replace(self, model=self.model.compress(own), sensitive=[], merged=None, card=card)

    def n_trained_on(self, X: Any, y: Any, sensitive_features: Any) -> int | None:
        """Return how many of these people it was trained on; None unless it was made with their table."""
        from evenhand.workflow.parts import n_met  # which imports this class

        return n_met(self, X, y, sensitive_features)

    def check_loaded(self) -> None:
        """Raise if this model, read from a file, is damaged; as a test, it scores a person with no values."""
        check_preprocessor(self.preprocessor)
        self.model.check_loaded()
        number("threshold", self.threshold or 0.5, low=0, high=1)
        nobody = pd.DataFrame({name: [None] for name in self.columns}, dtype=object)
        self.probabilities_by_group(nobody)

    def _described(self) -> dict[str, str]:
        positive = "" if self.pos_label is None else f" (positive: {self.pos_label!r})"
        told = tested(self.card)
        return {
            "label": f"{self.label!r}: {listed(self.classes_.tolist())}{positive}",
            "groups": f"{self.sensitive_name!r}: {listed(self.groups_.tolist(), most=10)}"
            if self.sensitive
            else "not used",
            "columns": ", ".join(self.columns),
            **({} if self.threshold is None else {"threshold": f"{self.threshold:.3g}"}),
            "λ": f"{self.model.divergence_weight:g}",
            **({"tested": told} if told else {}),
        }

    def __repr__(self) -> str:
        return "Deployed model" + "".join(f"\n  {name:9} {text}" for name, text in self._described().items())

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{name}</th><td style='text-align: left'>{html.escape(text)}</td></tr>"
            for name, text in self._described().items()
        )
        return f"<table><caption>Deployed model</caption>{rows}</table>"
