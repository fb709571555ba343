"""Predict people as they are, and as members of every other group.

There are four ways. Our estimators predict for every group themselves (`probabilities_by_group`). A model
whose `predict` takes `sensitive_features` gets each group in turn. If some features reveal the group, they
are set to every value that is typical of another group. For any other model, we can only say that no
single column it uses reveals the group of nearly everybody.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from evenhand.arrays import Array, Codes, Floats
from evenhand.frames import as_pandas
from evenhand.groups import Groups, codes_of, encode_groups
from evenhand.metrics.answers import Answers, decided_at, positions
from evenhand.metrics.classifiers import (
    Asked,
    as_fitted,
    ask,
    before_final,
    classifier,
    final_step,
    has_one_policy,
    labels_of,
    model_columns,
    on_sensitive_columns,
    probabilities_by_group,
    takes_group,
)
from evenhand.metrics.counts import positive_label
from evenhand.metrics.gower import as_frame
from evenhand.metrics.group_columns import representatives, telling_columns
from evenhand.metrics.group_parts import STRAY
from evenhand.metrics.individual import check_distributions
from evenhand.wording import listed

MOST = 100  # the largest number of combinations of sensitive values to try, beyond one per group

_CHECKED = (
    "no single column that it uses reveals the group, even if up to "
    f"{100 * STRAY:g} % of each group, and a third of the people with any value, are disregarded"
)
HOW = {
    "policies": "the model has one policy per group; we predicted each person by all of them",
    "told": "the model uses the group; we predicted each person as a member of every group",
    "column": "we predicted each person again with the columns that reveal the group "
    "set to every other group's values",
    "values": "we predicted each person again with the columns that reveal the group set to every value "
    "that they take in another group, and count a flip if any of these changes the decision",
    "single": f"the model has a single policy and is not told the group, and {_CHECKED}",
    "blind": f"the model is not told the group, and {_CHECKED}",
    "unmeasured": "the model may see the group in columns that could not be set to other groups' values",
    "written": "`evenhand predict` wrote what every group's policy says about each person",
    "given": "only predictions were given, so nobody could be predicted as a member of another group",
}
BLIND = ("single", "blind")  # the group has no influence


def respond(
    model: Any,
    X: Any,
    *,
    sensitive_features: Any,
    y: Any = None,
    pos_label: Any = None,
    change_columns: bool = True,
    random_state: int | None = 0,
) -> Answers:
    """Predict people with a fitted classifier, as they are and as members of every other group.

    Parameters
    ----------
    model : fitted classifier
        One of our estimators, any scikit-learn classifier or pipeline, or one of fairlearn's mitigators.
    X : table of people
        The model's input.
    sensitive_features : array, Series or DataFrame
        Each person's group.
    y, pos_label
        The true labels and the positive label, if known; they are stored in the answers.
    change_columns : bool
        Whether to set columns of X that reveal the group to other groups' values. Such columns are found by
        their values, alone or together as the one-hot columns of a feature, even if they disagree with the
        group for up to 5 % of each group. A column named like a sensitive feature needs less evidence. If a
        column has one value that is typical of a group, it is set to that value. If there are several (race,
        where the groups are black or not), each is tried: any change of the decision is a flip, and
        probabilities are averaged, weighted by the frequency of the values. False leaves X unchanged, which
        is faster: then only the group that is passed to the model changes.
    random_state : int or None
        The seed of models that decide at random.

    Raises
    ------
    TypeError
        If the model has no `predict`.
    ValueError
        If its predictions have the wrong shape, its probabilities are invalid, or a column of X has the name
        of a sensitive feature but holds something else.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = pd.DataFrame({"man": [0, 1] * 10, "age": range(20)})
    >>> model = DecisionTreeClassifier().fit(X, X["man"])
    >>> answers = respond(model, X, sensitive_features=X["man"])
    >>> answers.how, answers.columns, answers.decisions_by_group[:2].tolist()
    ('column', ['man'], [[0, 1], [0, 1]])
    """
    model, X, sensitive_features = classifier(model), as_pandas(X), as_pandas(sensitive_features)
    every: Floats | None
    about = {"y": None if y is None else np.asarray(y), "pos_label": pos_label}
    if not change_columns:
        groups = _groups_known_to(model, sensitive_features, X.shape[0])
        every = probabilities_by_group(model, X, labels=model.classes_, groups=groups.names)
        labels = np.asarray(model.classes_).tolist()
        return Answers(labels, groups.names.tolist(), groups.codes, every, **about)
    asked = question(model, X, sensitive_features, random_state)
    with on_sensitive_columns(model, asked.frame[asked.seen], sensitive_features):
        said = asked.ask(asked.frame, sensitive_features)
    labels = labels_of(model, said)
    decided, groups = _decided(said.decisions, labels), asked.groups
    policies = final_step(model) if hasattr(final_step(model), "probabilities_by_group") else None
    bar = getattr(policies, "threshold", None)
    if asked.told and not asked.columns and policies is not None:
        groups, every = asked.by_policies()
        positive = positive_label(labels, getattr(policies, "pos_label", None))
        by_group, how = decided_at(bar, every, positive), "policies"
    elif asked.told or asked.columns:
        decisions, every = _as_members(asked, said)
        labels = labels_of(model, said._replace(decisions=decisions.ravel()))
        decided = _decided(said.decisions, labels)
        by_group = _decided(decisions.ravel(), labels).reshape(decisions.shape)
        several = max(map(len, asked.members)) > 1
        how = "told" if not asked.columns else "values" if several else "column"
    elif not asked.note:
        by_group = np.repeat(decided[:, None], len(groups.names), axis=1)
        how = "single" if has_one_policy(model) else "blind"
        every = None if said.scores is None else np.repeat(said.scores[:, None], len(groups.names), axis=1)
    else:
        by_group, every, how = None, None, "unmeasured"
    if by_group is not None:
        by_group[np.arange(len(decided)), groups.codes] = decided
        decided = by_group
    return Answers(
        labels, groups.names.tolist(), groups.codes, every, decided=decided, own_scores=said.scores,
        how=how, columns=asked.columns, note=asked.note, threshold=bar, **about,
    )  # fmt: skip


def answer(model: Any, X: Any, *, sensitive_features: Any, random_state: int | None = 0) -> Answers:
    """Predict people with a fitted classifier as they are, not as members of other groups.

    The parameters are those of `respond`.

    >>> from sklearn.dummy import DummyClassifier
    >>> model = DummyClassifier(strategy="constant", constant="no").fit([[1], [2]], ["no", "yes"])
    >>> answers = answer(model, [[1], [2], [3]], sensitive_features=None)
    >>> answers.labels, answers.decisions.tolist()
    (['no', 'yes'], ['no', 'no', 'no'])
    """
    model = classifier(model)
    X = rows = as_pandas(X)
    sensitive_features = as_pandas(sensitive_features)
    if not sparse.issparse(X):
        frame = as_frame(X)
        rows = as_fitted(model, frame[model_columns(model, frame, sensitive_features)], X)
    said = ask(model, rows, sensitive_features if takes_group(model) else None, random_state)
    labels, groups = labels_of(model, said), encode_groups(sensitive_features, len(said.decisions))
    return Answers(
        labels, groups.names.tolist(), groups.codes,
        decided=_decided(said.decisions, labels), own_scores=said.scores,
    )  # fmt: skip


class Question(NamedTuple):
    """A model, people, and what to change to predict these people as members of other groups."""

    model: Any
    X: Any
    frame: pd.DataFrame
    sensitive_features: Any
    groups: Groups
    told: bool
    seen: list[Any]  # the columns that the model uses
    columns: list[Any]  # the columns among them that are set to other groups' values
    members: list[list[tuple[int, float]]]  # for each group, whose values to use, and their share of it
    note: str
    random_state: int | None

    def ask(self, rows: pd.DataFrame, group: Any) -> Asked:
        """Predict rows as they are, as members of `group` if the model takes the group."""
        X = as_fitted(self.model, rows[self.seen], self.X)
        return ask(self.model, X, group if self.told else None, self.random_state)

    def as_members(self, rows: pd.DataFrame, at: Codes) -> Asked:
        """Predict each row as a member of the group of person `at`, with that person's sensitive values."""
        rows = rows.copy(deep=False)
        for name in self.columns:
            rows[name] = self.frame[name].iloc[at].set_axis(rows.index)
        return self.ask(rows, _repeated(self.sensitive_features, at))

    def by_policies(self) -> tuple[Groups, Floats]:
        """Return the groups that the model knows, perhaps more than occur here, and its probabilities."""
        final = final_step(self.model)
        rows = before_final(self.model, as_fitted(self.model, self.frame[self.seen], self.X))
        every = check_distributions(final.probabilities_by_group(rows), "probabilities_by_group", 3)
        return _groups_known_to(final, self.sensitive_features, len(self.frame)), every


def question(model: Any, X: Any, sensitive_features: Any, random_state: int | None) -> Question:
    """Return how to predict people with a classifier as members of other groups."""
    sparse_frame = pd.DataFrame.sparse.from_spmatrix  # type: ignore[attr-defined]
    frame: pd.DataFrame = sparse_frame(X) if sparse.issparse(X) else as_frame(X)
    told = takes_group(model)
    groups = encode_groups(sensitive_features, len(frame))
    seen = model_columns(model, frame, sensitive_features)
    telling = telling_columns(frame[seen], sensitive_features, groups.codes)
    columns = [name for name in seen if name in telling.alone or (name in telling.more and not told)]
    members = representatives(frame, columns, groups, telling.strays)
    if sum(map(len, members)) > len(groups.names) + MOST:
        columns = telling.alone
        members = representatives(frame, columns, groups, telling.strays)
    note = telling.note(columns, told)
    return Question(
        model, X, frame, sensitive_features, groups, told, seen, columns, members, note, random_state
    )


def _as_members(asked: Question, said: Asked) -> tuple[Array, Floats | None]:
    """Return everybody's decision as a member of every group, and the probabilities if the model has any."""
    frame, groups = asked.frame, asked.groups
    as_groups = []
    for code, members in enumerate(asked.members):
        answers = [asked.as_members(frame, np.full(len(frame), at)) for at, _ in members]
        as_groups.append(_over_values(answers, [share for _, share in members], groups.codes == code, said))
    scores = [answer.scores for answer in as_groups if answer.scores is not None]
    every = np.stack(scores, axis=1) if len(scores) == len(as_groups) else None
    return np.stack([answer.decisions for answer in as_groups], axis=1), every


def _over_values(answers: list[Asked], shares: list[float], members: Array, said: Asked) -> Asked:
    """Combine the predictions for a group's values: any decision that differs from the own, and mean scores.

    The group's own members keep their predictions as they are.
    """
    if len(answers) == 1:
        return answers[0]
    decided = said.decisions
    for other in answers:
        decided = np.where(~members & (decided == said.decisions), other.decisions, decided)
    scores = [answer.scores for answer in answers if answer.scores is not None]
    if said.scores is None or len(scores) < len(answers):
        return Asked(decided, None)
    mean = np.average(scores, axis=0, weights=shares)
    return Asked(decided, np.where(members[:, None], said.scores, mean))


def _groups_known_to(model: Any, sensitive_features: Any, n_people: int) -> Groups:
    known = getattr(model, "groups_", None)
    if known is None:
        return encode_groups(sensitive_features, n_people)
    names = np.asarray(known, dtype=object)
    columns = getattr(model, "sensitive_names_", None)
    return Groups(codes_of(sensitive_features, n_people, names, columns), names)


def _repeated(sensitive_features: Any, at: Codes) -> Any:
    if isinstance(sensitive_features, dict):
        sensitive_features = pd.DataFrame(sensitive_features)
    if hasattr(sensitive_features, "iloc"):
        return sensitive_features.iloc[at].reset_index(drop=True)
    return None if sensitive_features is None else np.asarray(sensitive_features)[at]


def _decided(decisions: Array, labels: list[Any]) -> Codes:
    """Return the positions of decisions among the labels."""
    codes = positions(decisions, labels)
    unknown = codes >= len(labels)
    if unknown.any():
        raise ValueError(
            f"Got the decision {decisions[unknown.argmax()]!r}, but the model's labels are {listed(labels)}; "
            "expected one of them."
        )
    return codes
