"""One way to predict with any classifier: our estimators, scikit-learn's and fairlearn's."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.pipeline import Pipeline

from evenhand.arrays import Array, Floats
from evenhand.frames import as_pandas
from evenhand.groups import EVERYONE, as_columns, sorted_unique
from evenhand.metrics.individual import check_distributions
from evenhand.metrics.networks import logits, policies_of
from evenhand.network import softmax
from evenhand.wording import listed


class Asked(NamedTuple):
    """A classifier's decisions about people, and its probabilities if it gives any."""

    decisions: Array  # (people,), labels
    scores: Floats | None  # (people, actions)


def takes_group(model: Any) -> bool:
    """Return whether the model's `predict`, or that of a pipeline's last step, uses `sensitive_features`."""
    return "sensitive_features" in _parameters(final_step(model).predict) and not has_one_policy(model)


def has_one_policy(model: Any) -> bool:
    """Return whether a model says that everybody is in one group: it was compressed, or fitted without.

    What is inside a model says nothing: somebody else's may use the group around a model that doesn't.
    """
    groups = getattr(final_step(model), "groups_", None)
    return isinstance(groups, np.ndarray) and groups.shape == (1,) and str(groups[0]) == EVERYONE


def probabilities_by_group(
    model: Any,
    X: Any,
    *,
    labels: Sequence[Any] | Array,
    groups: Sequence[Any] | Array,
    products: bool = False,
    decisions_only: bool = False,
) -> Array:
    """Return a model's probabilities for people as members of every group, with X unchanged.

    A model without probabilities gets 1 for its decision and 0 for the other actions. A model that does not
    use the group has the same probabilities in every group.

    The result is (people, groups, actions), in the order of `groups` and of the actions' names (`labels`).
    With `products`, networks are computed by matrix products, which is faster and equal up to rounding.
    `decisions_only` then skips the softmax, since the largest output is the decision anyway.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier().fit([[0], [1]], ["no", "yes"])
    >>> probabilities_by_group(tree, np.array([[1]]), labels=["no", "yes"], groups=["f", "m"]).tolist()
    [[[0.0, 1.0], [0.0, 1.0]]]
    """
    policies = policies_of(model) if products else None
    if policies is not None:
        outputs = logits(policies, X)
        if outputs.shape[1] == 1:  # one policy for all groups
            outputs = np.repeat(outputs, len(groups), axis=1)
        return outputs if decisions_only else softmax(outputs.astype(np.float64))
    if hasattr(model, "probabilities_by_group"):
        return np.asarray(model.probabilities_by_group(X))

    def as_group(given: dict[str, Any]) -> Array:
        if hasattr(model, "predict_proba"):
            return np.asarray(model.predict_proba(X, **given))
        decided = np.asarray(model.predict(X, **given))
        return np.asarray((decided[:, None] == np.asarray(labels)[None, :]).astype(np.float64))

    if takes_group(model):
        everyone = (np.full(X.shape[0], name) for name in groups)
        return np.stack([as_group({"sensitive_features": group}) for group in everyone], axis=1)
    return np.repeat(as_group({})[:, None], len(groups), axis=1)


def ask(model: Any, X: Any, group: Any, random_state: int | None) -> Asked:
    """Predict X as it is; `group` is None for a model that does not take the group."""
    keywords: dict[str, Any] = {}
    if group is not None:
        keywords["sensitive_features"] = group
        model, X = final_step(model), before_final(model, X)
    chance = {"random_state": random_state} if "random_state" in _parameters(model.predict) else {}
    decisions = np.asarray(model.predict(X, **keywords, **chance))
    if decisions.shape != (X.shape[0],):
        raise ValueError(f"Got predictions of shape {decisions.shape}, but expected {X.shape[0]} decisions.")
    # fairlearn's randomised classifiers give their probabilities under another name.
    proba = getattr(model, "predict_proba", None) or getattr(model, "_pmf_predict", None)
    if proba is None:
        return Asked(decisions, None)
    keywords = keywords if "sensitive_features" in _parameters(proba) else {}
    return Asked(decisions, check_distributions(proba(X, **keywords), "predict_proba", 2))


def draws(model: Any) -> bool:
    """Return whether the model may draw its decisions at random, as some of fairlearn's do."""
    return "random_state" in _parameters(final_step(model).predict)


def classifier(model: Any) -> Any:
    """Return the model that predicts: the best one if `model` is a search."""
    if not callable(getattr(model, "predict", None)):
        raise TypeError(
            f"Got {type(model).__name__}, which has no predict; expected a fitted classifier or predictions."
        )
    return getattr(model, "best_estimator_", model)


def _parameters(method: Any) -> Any:
    return inspect.signature(method).parameters


def final_step(model: Any) -> Any:
    """Return a pipeline's last step, or the model itself."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def before_final(model: Any, X: Any) -> Any:
    """Return X as a pipeline's last step sees it."""
    return model[:-1].transform(X) if isinstance(model, Pipeline) and len(model.steps) > 1 else X


def model_columns(model: Any, frame: pd.DataFrame, sensitive_features: Any = None) -> list[Any]:
    """Return the columns that a model uses: those it was fitted on, or all.

    If it knows only their number, and there are more, the sensitive ones are left out.

    >>> from sklearn.dummy import DummyClassifier
    >>> people = pd.DataFrame({"sex": ["f", "m"], "age": [25, 31]})
    >>> model = DummyClassifier()
    >>> model.n_features_in_ = 1
    >>> model_columns(model, people, people["sex"])
    ['age']
    """
    wanted = getattr(model, "feature_names_in_", None)
    if wanted is not None and set(wanted) <= set(frame.columns):
        return list(wanted)
    others = [name for name in frame.columns if name not in named_in(frame, sensitive_features)]
    fitted_without = wanted is None and getattr(model, "n_features_in_", None) == len(others)
    return others if fitted_without else list(frame.columns)


def named_in(frame: pd.DataFrame, sensitive_features: Any) -> list[Any]:
    """Return the columns of a frame that are named like sensitive features which have names."""
    if isinstance(sensitive_features, dict) or hasattr(as_pandas(sensitive_features), "iloc"):
        return [name for name in as_columns(sensitive_features).columns if name in frame.columns]
    return []  # the columns of an array would be 0, 1, … like those of X


@contextmanager
def on_sensitive_columns(model: Any, frame: pd.DataFrame, sensitive_features: Any) -> Iterator[None]:
    """Say what to do if a model that doesn't name its columns refuses people with the sensitive ones."""
    try:
        yield
    except (ValueError, TypeError, KeyError) as error:
        held = named_in(frame, sensitive_features)
        if not held or hasattr(model, "feature_names_in_"):
            raise
        raise ValueError(
            f"{type(model).__name__} can't predict the people in X ({error}). X has {listed(held)}, given as "
            "sensitive_features, too. If the model was fitted without: "
            f"audit(model, X.drop(columns={held}), …, sensitive_features=X[{held}])."
        ) from error


def as_fitted(model: Any, table: pd.DataFrame, X: Any) -> Any:
    """Return the table in the form that the model was fitted on: an array, unless it knows column names."""
    if sparse.issparse(X):
        return sparse.csr_array(table.sparse.to_coo())  # type: ignore[attr-defined]
    nameless = hasattr(model, "n_features_in_") and not hasattr(model, "feature_names_in_")
    return table.to_numpy() if nameless or not isinstance(X, pd.DataFrame) else table


def labels_of(model: Any, said: Asked) -> list[Any]:
    """Return the names of a model's actions, in the order of its probabilities."""
    known = getattr(model, "classes_", None)
    if known is not None:
        return list(np.asarray(known).tolist())
    # Models without classes_ that give probabilities are fairlearn's, whose labels are 0 and 1.
    if said.scores is not None and said.scores.shape[1] == 2:
        return [0, 1]
    return list(sorted_unique(said.decisions)[0].tolist())
