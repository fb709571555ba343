"""Predictions with one policy per group: by each person's own policy, or by all policies side by side."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn import get_config
from sklearn.metrics import accuracy_score

from evenhand import checks
from evenhand.arrays import Codes, Floats
from evenhand.bandits.cautions import warn
from evenhand.bandits.doors import Callback, Doors
from evenhand.bandits.kernels.structs import People
from evenhand.bandits.revealing import label_codes, revealed
from evenhand.frames import as_pandas
from evenhand.groups import Groups, codes_of, column_names, encode_groups, groups_by_name, no_groups
from evenhand.wording import listed

_ROUTING = (
    "In a grid search or a pipeline, call sklearn.set_config(enable_metadata_routing=True), and on the "
    "estimator set_fit_request, set_predict_request, set_predict_proba_request and set_score_request, each "
    "with sensitive_features=True."
)
_ROUTED = (
    "cross_val_predict and scikit-learn's own scorers, such as 'roc_auc', pass nothing to predict: score "
    "with evenhand.metrics.SCORERS, or wrap the estimator in evenhand.tabular, which takes the groups from X."
)
_WITHOUT_GROUPS = (
    " To decide without it, deploy one policy for all: model.compress(group). {} After a search, predict "
    "with search.best_estimator_.predict(X, sensitive_features=...)."
)


class Labelled(NamedTuple):
    """Labels and sample weights, as the user passed them."""

    y: Any
    sample_weight: Any


class Log(NamedTuple):
    """A log of decisions, as the user passed it. `classes` are all possible actions."""

    actions: Any
    rewards: Any
    propensities: Any
    classes: Any
    labels: Any = None
    reveals: Any = None


class NoGroupsWarning(UserWarning):
    """An estimator with one policy per group was fitted without groups."""


def warn_of_no_groups(learner: str) -> None:
    """Warn that there is only one policy, for everybody, and that no groups are compared."""
    warn(
        f"{learner} got no sensitive_features, so it trains one policy for everybody, like any "
        "classifier. Give each person's group, or use GradientBandit, which needs none.",
        NoGroupsWarning,
    )


class GroupPolicies(Doors):
    """The base class of all estimators with one policy per group; `groups_` has the groups' names."""

    groups_: Any
    importance_clip: float

    def _contexts(self, X: Any, *, reset: bool) -> Any:
        return super()._contexts(self._features(X), reset=reset)

    def _contexts_and_labels(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        return super()._contexts_and_labels(self._features(X), y, reset=reset)

    def _features(self, X: Any) -> Any:
        """Return X without the columns that `fit` took the groups from."""
        X = as_pandas(X)
        held = [name for name in self._columns_of_groups() if name in getattr(X, "columns", ())]
        return X.drop(columns=held) if held else X

    def _columns_of_groups(self) -> list[str]:
        return list(getattr(self, "sensitive_columns_", ()))  # absent in older model files

    def _by_group(self, X: Any) -> Floats:
        raise NotImplementedError

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None,
        callback: Callback = None,
    ) -> Self:  # fmt: skip
        """Learn one policy per group from labels.

        Parameters
        ----------
        X, y : array-like
            Contexts, one row per person, and labels. `CooperativeBoosting` also accepts a frame with
            categories, and missing values.
        sample_weight : array-like, optional
            The number of people each person represents, in any unit. It weights the training, and the rates
            that terms such as `Parity` bound. People with weight 0 are left out.
        sensitive_features : array-like, str or list of str, optional
            Each person's group, or the names of columns of X that hold it and are then not used as features.
            With several columns, each combination of values is a group. Without any, `fit` warns, and trains
            one policy for everybody.
        callback : callable, optional
            Called as `callback(step, model)` at each checkpoint; it may return True to stop early. With
            trees, a step is a round.
        """
        if sensitive_features is None:
            warn_of_no_groups(type(self).__name__)
        return self._fit(X, Labelled(y, sample_weight), sensitive_features, callback)

    def _fit(self, X: Any, given: Labelled, sensitive_features: Any, callback: Callback) -> Self:
        raise NotImplementedError

    def fit_logged(
        self,
        X: Any,
        actions: Any,
        rewards: Any,
        propensities: Any,
        *,
        sensitive_features: Any = None,
        labels: Any = None,
        reveals: Collection[Any] | None = None,
        classes: Any = None,
        callback: Callback = None,
    ) -> Self:
        """Learn from the log of another policy: its actions, their rewards and their probabilities.

        The logged rewards replace reward terms for correct labels. Fairness terms are added to them.
        `EqualOpportunity` and `EqualizedOdds` need labels. If only R of the actions reveal the label, people
        with a label also represent those without: their weight in rates is 1 / (R · propensity), at most
        `importance_clip`.

        Parameters
        ----------
        X : array-like
            Contexts, one row per person.
        actions, rewards, propensities : array-like
            The action taken for each person, what it earned, and the probability with which it was taken.
        sensitive_features : array-like, str or list of str, optional
            Each person's group, or the names of columns of X that hold it and are then not used as features.
        labels : array-like, optional
            The correct action for each person; None or NaN where it was not observed.
        reveals : set, optional
            The actions that reveal the label, such as {'grant'}; by default, all actions do.
        classes : array-like, optional
            All actions, if some of them are not in the log.
        callback : callable, optional
            Called as `callback(step, model)` at each checkpoint; it may return True to stop early.
        """
        log = Log(actions, rewards, propensities, actions if classes is None else classes, labels, reveals)
        return self._fit_logged(as_pandas(X), log, sensitive_features, callback)

    def _logged(self, X: Any, log: Log, groups: Codes) -> People:
        people = self._log(X, log.actions, log.rewards, log.propensities, groups)
        if log.labels is None:
            if log.reveals is not None:
                raise ValueError(f"Got reveals={log.reveals}, but no labels; expected both.")
            return people
        labels, shares = revealed(
            log.labels, log.reveals, log.actions, self.classes_, people.propensities, self.importance_clip
        )
        return people._replace(labels=label_codes(labels, self.classes_), shares=shares)

    def _fit_logged(self, X: Any, log: Log, sensitive_features: Any, callback: Callback) -> Self:
        raise NotImplementedError

    def probabilities_by_group(self, X: Any) -> Floats:
        """Return each person's action probabilities under every group's policy: (people, groups, actions)."""
        return self._by_group(X)

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return each person's action probabilities under their own group's policy: (people, actions).

        Pass groups as in `fit`. If `fit` took them from columns of X, they are by default taken from there.
        """
        X = as_pandas(X)
        by_group = self._by_group(X)
        codes = self._codes(self._given_groups(X, sensitive_features), len(by_group))
        return by_group[np.arange(len(by_group)), codes]

    def _given_groups(self, X: Any, sensitive_features: Any) -> Any:
        columns = self._columns_of_groups()
        if sensitive_features is None and columns and set(columns) <= set(getattr(X, "columns", ())):
            sensitive_features = columns
        sensitive_features, _ = groups_by_name(sensitive_features, X)
        if sensitive_features is None and len(self.groups_) > 1:
            routes = get_config()["enable_metadata_routing"]
            raise no_groups(self.groups_, _WITHOUT_GROUPS.format(_ROUTED if routes else _ROUTING))
        return sensitive_features

    def _policy_of(self, X: Any, sensitive_features: Any) -> tuple[Floats, Groups | None]:
        policy = self.predict_proba(X, sensitive_features=sensitive_features)
        given = self._given_groups(X, sensitive_features)
        if given is None:
            return policy, None
        found, codes = np.unique(self._codes(given, len(policy)), return_inverse=True)
        return policy, Groups(codes, self.groups_[found])

    def predict(self, X: Any, *, sensitive_features: Any = None) -> Any:
        """Return each person's most probable action under the policy of their own group."""
        probabilities = self.predict_proba(X, sensitive_features=sensitive_features)
        return self.classes_[probabilities.argmax(1)]

    def sample_actions(
        self, X: Any, *, sensitive_features: Any = None, random_state: Any = None
    ) -> tuple[Any, Floats]:
        """Draw an action for each person; return the actions and their probabilities, ready to be logged."""
        return self._sample(self.predict_proba(X, sensitive_features=sensitive_features), random_state)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """Return the accuracy of `predict`."""
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(as_pandas(y), predicted, sample_weight=sample_weight))

    def _codes(self, sensitive_features: Any, n_people: int) -> Codes:
        columns = getattr(self, "sensitive_names_", None)  # absent in older model files
        return codes_of(sensitive_features, n_people, self.groups_, columns)

    def _learn_groups(self, sensitive_features: Any, n_people: int) -> Codes:
        groups, self.groups_ = encode_groups(sensitive_features, n_people)
        self.sensitive_names_ = column_names(sensitive_features)
        self._enough_people(groups)
        return groups

    def _group_number(self, group: Any) -> int:
        found = [at for at, name in enumerate(self.groups_) if name == group]
        if not found:
            known = listed(self.groups_)
            near = checks.did_you_mean(group, self.groups_)
            raise ValueError(f"Got group={group!r}, but fit saw only {known}.{near}")
        return found[0]

    def _enough_people(self, groups: Codes) -> None:
        counts = np.bincount(groups, minlength=len(self.groups_))
        if len(counts) > 1 and counts.min() < 2:
            alone = self.groups_[counts.argmin()]
            raise ValueError(
                f"Group {alone!r} has {counts.min()} person, but expected at least 2 in each group: "
                "a policy can't be learned from one. Merge small groups or leave them out."
            )
