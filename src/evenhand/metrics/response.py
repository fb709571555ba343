"""What a model says about people as they are, and as members of every other group.

There are four ways to ask. Our estimators say it themselves (`probabilities_by_group`). A model whose
`predict` takes `sensitive_features` is told each group in turn. A model with columns among its features that
tell the group gets them set to every value they take in every other group. Of any other model it can only be
said that no column it takes gives the group away by itself.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.pipeline import Pipeline

from evenhand.groups import codes_of, encode_groups, sorted_unique
from evenhand.metrics.gower import as_frame
from evenhand.metrics.individual import check_distributions
from evenhand.metrics.response_columns import Telling, joint_codes, telling_columns

Array = npt.NDArray[Any]

MOST = 100  # values of the sensitive columns, more than one a group, to put everybody to

HOW = {
    "policies": "the model has a policy for every group, and each person was put to all of them",
    "told": "the model is told the group, and each person was predicted as a member of every group",
    "column": "each person was predicted again with the sensitive columns set to every other group's values",
    "values": "each person was predicted again with the sensitive columns set to every value they take in "
    "another group, and flips if any of these changes the decision",
    "blind": "no column that the model takes gives the group away by itself, and it was not told the group",
    "unmeasured": "the model may see the group in columns that could not be set to other groups' values",
    "given": "only predictions were given, so that nobody can be put to another group's policy",
}


class Response(NamedTuple):
    """What was said: decisions are labels; probabilities follow `labels`; groups follow `groups`."""

    labels: list[Any]
    groups: list[Any]
    own: npt.NDArray[np.int64]  # the number of each person's group
    decisions: Array  # (people,)
    scores: Array | None  # (people, actions)
    decisions_by_group: Array | None  # (people, groups)
    scores_by_group: Array | None  # (people, groups, actions)
    how: str  # a key of HOW
    columns: list[Any]  # the sensitive columns of X that were set
    note: str = ""  # on columns that tell the group, or may, and were not set


class Answer(NamedTuple):
    """What was said of people as they are: decisions are labels, probabilities follow `labels`."""

    labels: list[Any]
    decisions: Array  # (people,)
    scores: Array | None  # (people, actions)


def answer(model: Any, X: Any, *, sensitive_features: Any, random_state: int | None = 0) -> Answer:
    """Ask a fitted classifier about everybody as they are; X may be sparse.

    >>> from sklearn.dummy import DummyClassifier
    >>> model = DummyClassifier(strategy="constant", constant="no").fit([[1], [2]], ["no", "yes"])
    >>> said = answer(model, [[1], [2], [3]], sensitive_features=None)
    >>> said.labels, said.decisions.tolist()
    (['no', 'yes'], ['no', 'no', 'no'])
    """
    model = _classifier(model)
    rows = X
    if not sparse.issparse(X):
        frame = as_frame(X)
        rows = _as_fitted(model, frame[_model_columns(model, frame)], X)
    group = sensitive_features if takes_group(model) else None
    decisions, scores = _ask(model, rows, group, random_state)
    return Answer(_labels(model, decisions, scores), decisions, scores)


def respond(model: Any, X: Any, *, sensitive_features: Any, random_state: int | None = 0) -> Response:
    """Ask a fitted classifier about everybody, as they are and as members of every other group.

    Columns of X that tell the group, one by one or as the one-hot columns of a feature, are the sensitive
    columns, whatever they are called. Those that are the same for everybody in a group are set to another
    group's value. If they vary within it (race, where the groups are black or not), each of the group's
    values is tried: any change of the decision is a flip, and probabilities are averaged, weighted by how
    frequent the values are.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = pd.DataFrame({"man": [0, 1] * 10, "age": range(20)})
    >>> model = DecisionTreeClassifier().fit(X, X["man"])
    >>> said = respond(model, X, sensitive_features=X["man"])
    >>> said.how, said.columns, said.decisions_by_group[:2].tolist()
    ('column', ['man'], [[0, 1], [0, 1]])
    """
    model = _classifier(model)
    frame = _sparse_frame(X) if sparse.issparse(X) else as_frame(X)
    told = takes_group(model)
    own, names = encode_groups(sensitive_features, len(frame))
    seen = _model_columns(model, frame)
    telling = telling_columns(frame[seen], sensitive_features, own)
    columns = [name for name in seen if name in telling.alone or (name in telling.more and not told)]
    asked_as = _representatives(frame, columns, own, len(names))
    if sum(map(len, asked_as)) > len(names) + MOST:
        columns = telling.alone
        asked_as = _representatives(frame, columns, own, len(names))
    note = _note(telling, columns, told)

    def ask(rows: pd.DataFrame, group: Any) -> tuple[Array, Array | None]:
        return _ask(model, _as_fitted(model, rows[seen], X), group if told else None, random_state)

    decisions, scores = ask(frame, sensitive_features)
    labels = _labels(model, decisions, scores)
    every: Array | None
    by_group: Array | None
    if told and not columns and hasattr(_final(model), "probabilities_by_group"):
        final, rows = _final(model), _before_final(model, _as_fitted(model, frame[seen], X))
        names = np.asarray(final.groups_, dtype=object)  # perhaps more than there are here
        own = codes_of(sensitive_features, len(frame), names, getattr(final, "sensitive_names_", None))
        every = check_distributions(final.probabilities_by_group(rows), "probabilities_by_group", 3)
        by_group, how = np.asarray(final.classes_)[every.argmax(axis=2)], "policies"
    elif told or columns:
        as_groups = []
        for code, persons in enumerate(asked_as):
            said = [
                ask(_with(frame, columns, at), _repeated(sensitive_features, at, len(frame)))
                for at, _ in persons
            ]
            as_groups.append(
                _over_values(said, [share for _, share in persons], own == code, decisions, scores)
            )
        by_group = np.stack([decided for decided, _ in as_groups], axis=1)
        told_scores = [claimed for _, claimed in as_groups if claimed is not None]
        every = np.stack(told_scores, axis=1) if len(told_scores) == len(names) else None
        how = "told" if not columns else "values" if max(map(len, asked_as)) > 1 else "column"
    elif note:
        by_group, every, how = None, None, "unmeasured"
    else:
        by_group, how = np.repeat(decisions[:, None], len(names), axis=1), "blind"
        every = None if scores is None else np.repeat(scores[:, None], len(names), axis=1)
    return Response(labels, names.tolist(), own, decisions, scores, by_group, every, how, columns, note)


def _classifier(model: Any) -> Any:
    if not callable(getattr(model, "predict", None)):
        raise TypeError(
            f"Got {type(model).__name__}, which has no predict; expected a fitted classifier or predictions."
        )
    return getattr(model, "best_estimator_", model)


def takes_group(model: Any) -> bool:
    """Return whether the model's `predict`, or that of a pipeline's last step, takes `sensitive_features`."""
    return "sensitive_features" in _parameters(_final(model).predict)


def _representatives(
    frame: pd.DataFrame, columns: list[Any], own: npt.NDArray[np.int64], n_groups: int
) -> list[list[tuple[int, float]]]:
    """Return for each group a person with every combination of values the columns take in it.

    Each comes with the share of the group that has these values; the most frequent come first.
    """
    codes = joint_codes(frame, columns)[0] if columns else np.zeros(len(own), dtype=np.int64)
    found = []
    for group in range(n_groups):
        members = np.flatnonzero(own == group)
        _, first, counts = np.unique(codes[members], return_index=True, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        found.append([(int(members[first[at]]), float(counts[at] / len(members))) for at in order])
    return found


def _over_values(
    said: list[tuple[Array, Array | None]],
    shares: list[float],
    members: Array,
    decisions: Array,
    scores: Array | None,
) -> tuple[Array, Array | None]:
    """Return what is said of people as a group's: a decision unlike theirs, if any is, and the mean claim.

    Of the group's members it is what is said of them as they are.
    """
    if len(said) == 1:
        return said[0]
    decided = decisions
    for other, _ in said:
        decided = np.where(~members & (decided == decisions), other, decided)
    claims = [claimed for _, claimed in said if claimed is not None]
    if scores is None or len(claims) < len(said):
        return decided, None
    return decided, np.where(members[:, None], scores, np.average(claims, axis=0, weights=shares))


def _note(telling: Telling, columns: list[Any], told: bool) -> str:
    left = [name for name in telling.more if name not in columns]
    if left:
        text = f"The group can be told from {_listed(left)}"
        if told or columns:
            return f"{text} too, left as it was: more people may flip than were counted."
        return f"{text}, but there are too many values to put everybody to: flips were not measured."
    if telling.perhaps and not told and not columns:
        return (
            f"The group can be told from {_listed(telling.perhaps)}, but among so few people that may be "
            "chance: flips were not measured. If it is the group, give sensitive_features the same name."
        )
    return ""


def _listed(columns: list[Any]) -> str:
    more = f" and {len(columns) - 5} more columns" if len(columns) > 5 else ""
    return "column " + ", ".join(map(repr, columns[:5])) + more


def _ask(model: Any, X: Any, group: Any, random_state: int | None) -> tuple[Array, Array | None]:
    keywords: dict[str, Any] = {}
    if group is not None:
        keywords["sensitive_features"] = group
        model, X = _final(model), _before_final(model, X)
    chance = {"random_state": random_state} if "random_state" in _parameters(model.predict) else {}
    decisions = np.asarray(model.predict(X, **keywords, **chance))
    if decisions.shape != (X.shape[0],):
        raise ValueError(f"Got predictions of shape {decisions.shape}, but expected {X.shape[0]} decisions.")
    # fairlearn's randomised classifiers tell their probabilities under another name.
    tell = getattr(model, "predict_proba", None) or getattr(model, "_pmf_predict", None)
    if tell is None:
        return decisions, None
    keywords = keywords if "sensitive_features" in _parameters(tell) else {}
    return decisions, check_distributions(tell(X, **keywords), "predict_proba", 2)


def _parameters(method: Any) -> Any:
    return inspect.signature(method).parameters


def _final(model: Any) -> Any:
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def _before_final(model: Any, X: Any) -> Any:
    return model[:-1].transform(X) if isinstance(model, Pipeline) and len(model.steps) > 1 else X


def _model_columns(model: Any, frame: pd.DataFrame) -> list[Any]:
    wanted = getattr(model, "feature_names_in_", None)
    if wanted is None or not set(wanted) <= set(frame.columns):
        return list(frame.columns)
    return list(wanted)


def _as_fitted(model: Any, table: pd.DataFrame, X: Any) -> Any:
    """Return the table in the form the model was fitted on: an array, unless it knows names."""
    if sparse.issparse(X):
        return sparse.csr_array(table.sparse.to_coo())  # type: ignore[attr-defined]
    was_frame = isinstance(X, pd.DataFrame) or hasattr(X, "to_pandas")
    nameless = hasattr(model, "n_features_in_") and not hasattr(model, "feature_names_in_")
    return table.to_numpy() if nameless or not was_frame else table


def _sparse_frame(X: Any) -> pd.DataFrame:
    frame: pd.DataFrame = pd.DataFrame.sparse.from_spmatrix(X)  # type: ignore[attr-defined]
    return frame


def _with(frame: pd.DataFrame, columns: list[Any], person: int) -> pd.DataFrame:
    changed = frame.copy(deep=False)
    for name in columns:
        at = np.full(len(frame), person)
        changed[name] = frame[name].iloc[at].set_axis(frame.index)
    return changed


def _repeated(sensitive_features: Any, person: int, n_people: int) -> Any:
    at = np.full(n_people, person)
    if isinstance(sensitive_features, dict):
        sensitive_features = pd.DataFrame(sensitive_features)
    if hasattr(sensitive_features, "iloc"):
        return sensitive_features.iloc[at].reset_index(drop=True)
    return None if sensitive_features is None else np.asarray(sensitive_features)[at]


def _labels(model: Any, decisions: Array, scores: Array | None) -> list[Any]:
    known = getattr(model, "classes_", None)
    if known is not None:
        return list(np.asarray(known).tolist())
    # Models without classes_ that tell probabilities are fairlearn's, whose labels are 0 and 1.
    return [0, 1] if scores is not None and scores.shape[1] == 2 else sorted_unique(decisions)[0].tolist()
