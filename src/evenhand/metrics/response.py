"""What a model says about people as they are, and as members of every other group.

There are four ways to ask. Our estimators say it themselves (`probabilities_by_group`). A model whose
`predict` takes `sensitive_features` is told each group in turn. A model with the sensitive column among its
features gets it set to every group's value. Any other model does not see the group at all.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.pipeline import Pipeline

from evenhand.groups import codes_of, encode_groups
from evenhand.metrics.gower import as_frame
from evenhand.metrics.individual import check_distributions

Array = npt.NDArray[Any]

ENOUGH = 10

HOW = {
    "policies": "the model has a policy for every group, and each person was put to all of them",
    "told": "the model is told the group, and each person was predicted as a member of every group",
    "column": "each person was predicted again with the sensitive columns set to every other group's values",
    "blind": "the model does not see the group, so that no decision can change with it",
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


def respond(model: Any, X: Any, *, sensitive_features: Any, random_state: int | None = 0) -> Response:
    """Ask a fitted classifier about everybody, as they are and as members of every other group.

    Columns of X that are the same for everybody in a group, and not for all, tell the group and nothing
    else: in a DataFrame or an array, encoded as numbers or in several one-hot columns, they are the
    sensitive columns.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = pd.DataFrame({"man": [0, 1] * 10, "age": range(20)})
    >>> model = DecisionTreeClassifier().fit(X, X["man"])
    >>> said = respond(model, X, sensitive_features=X["man"])
    >>> said.how, said.columns, said.decisions_by_group[:2].tolist()
    ('column', ['man'], [[0, 1], [0, 1]])
    """
    if not callable(getattr(model, "predict", None)):
        raise TypeError(
            f"Got {type(model).__name__}, which has no predict; expected a fitted classifier or predictions."
        )
    model = getattr(model, "best_estimator_", model)
    frame = as_frame(X)
    told = takes_group(model)
    own, names = encode_groups(sensitive_features, len(frame))
    seen = _model_columns(model, frame)
    columns = [name for name in sensitive_columns(frame, sensitive_features, own) if name in seen]

    def ask(rows: pd.DataFrame, group: Any) -> tuple[Array, Array | None]:
        return _ask(model, _as_fitted(model, rows[seen], X), group if told else None, random_state)

    decisions, scores = ask(frame, sensitive_features)
    labels = _labels(model, decisions, scores)
    every: Array | None
    if told and not columns and hasattr(_final(model), "probabilities_by_group"):
        final, rows = _final(model), _before_final(model, _as_fitted(model, frame[seen], X))
        names = np.asarray(final.groups_, dtype=object)  # perhaps more than there are here
        own = codes_of(sensitive_features, len(frame), names)
        every = check_distributions(final.probabilities_by_group(rows), "probabilities_by_group", 3)
        by_group, how = np.asarray(final.classes_)[every.argmax(axis=2)], "policies"
    elif told or columns:
        said = [
            ask(_with(frame, columns, int(at)), _repeated(sensitive_features, int(at), len(frame)))
            for at in first_of_each(own, len(names))
        ]
        by_group, how = np.stack([decided for decided, _ in said], axis=1), "column" if columns else "told"
        told_scores = [claimed for _, claimed in said if claimed is not None]
        every = np.stack(told_scores, axis=1) if len(told_scores) == len(names) else None
    else:
        by_group, how = np.repeat(decisions[:, None], len(names), axis=1), "blind"
        every = None if scores is None else np.repeat(scores[:, None], len(names), axis=1)
    return Response(labels, names.tolist(), own, decisions, scores, by_group, every, how, columns)


def takes_group(model: Any) -> bool:
    """Return whether the model's `predict`, or that of a pipeline's last step, takes `sensitive_features`."""
    return "sensitive_features" in _parameters(_final(model).predict)


def sensitive_columns(frame: pd.DataFrame, sensitive_features: Any, own: npt.NDArray[np.int64]) -> list[Any]:
    """Return the columns of X that tell the group and nothing else.

    In groups of less than ENOUGH people a column may do so by chance: there only columns count that have the
    name of a sensitive feature.
    """
    sizes = np.bincount(own)
    if np.count_nonzero(sizes) < 2:
        return []
    named = set(getattr(sensitive_features, "columns", ())) | {getattr(sensitive_features, "name", None)}
    enough = sizes[sizes > 0].min() >= ENOUGH
    first = first_of_each(own, len(sizes))
    found = []
    for name in frame.columns:
        if enough or name in named:
            codes = pd.factorize(frame[name])[0]
            if codes.max() > 0 and (codes == codes[first][own]).all():
                found.append(name)
            elif name in named and codes.max() > 0:
                raise ValueError(
                    f"Got sensitive_features named {name!r}, but the column of X of that name holds other "
                    "values; expected the same groups in both, or another name."
                )
    return found


def first_of_each(own: npt.NDArray[np.int64], n_groups: int) -> npt.NDArray[np.int64]:
    """Return the position of the first person of every group."""
    first = np.empty(n_groups, dtype=np.int64)
    first[own[::-1]] = np.arange(len(own))[::-1]
    return first


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
    was_frame = isinstance(X, pd.DataFrame) or hasattr(X, "to_pandas")
    nameless = hasattr(model, "n_features_in_") and not hasattr(model, "feature_names_in_")
    return table.to_numpy() if nameless or not was_frame else table


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
    return [0, 1] if scores is not None and scores.shape[1] == 2 else list(pd.unique(decisions))
