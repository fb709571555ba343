"""Deciding with one policy per group: each person by their own group's, or by every group's side by side."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.metrics import accuracy_score

from evenhand import checks
from evenhand.arrays import Codes, Floats
from evenhand.bandits.doors import Callback, Doors
from evenhand.bandits.kernels.structs import People
from evenhand.bandits.revealing import label_codes, revealed
from evenhand.frames import as_pandas
from evenhand.groups import Groups, codes_of, column_names, encode_groups, groups_by_name
from evenhand.wording import listed


class Labelled(NamedTuple):
    """Labels as they were given, and how many people each person stands for."""

    y: Any
    sample_weight: Any


class Log(NamedTuple):
    """A log as it was given: what was done, what it paid, how likely it was, and all actions there are."""

    actions: Any
    rewards: Any
    propensities: Any
    classes: Any
    labels: Any = None
    reveals: Any = None


class NoGroupsWarning(UserWarning):
    """A learner of one policy per group was fitted without groups."""


def warn_of_no_groups(learner: str) -> None:
    """Warn that there is one policy for everybody: nobody's group is known, and nothing compares groups."""
    warnings.warn(
        f"{learner} got no sensitive_features, so that it trains one policy for everybody, like any "
        "classifier. Give each person's group, or use GradientBandit, which needs none.",
        NoGroupsWarning,
        stacklevel=3,
    )


class GroupPolicies(Doors):
    """What every learner of one policy per group does; `groups_` names the groups."""

    groups_: Any
    importance_clip: float

    def _contexts(self, X: Any, *, reset: bool) -> Any:
        return super()._contexts(self._features(X), reset=reset)

    def _contexts_and_labels(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        return super()._contexts_and_labels(self._features(X), y, reset=reset)

    def _features(self, X: Any) -> Any:
        """Return X without the columns that `fit` was told to take the groups from."""
        X = as_pandas(X)
        held = [name for name in self._columns_of_groups() if name in getattr(X, "columns", ())]
        return X.drop(columns=held) if held else X

    def _columns_of_groups(self) -> list[str]:
        return list(getattr(self, "sensitive_columns_", ()))  # older model files have none

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
            Contexts, one row per person, and labels. For trees alone, a frame may hold categories, and values
            may be missing.
        sample_weight : array-like, optional
            How many people each person stands for, in any unit: what they teach counts as much, and so do
            they in the rates of `Parity` and the like. People of weight 0 are left out.
        sensitive_features : array-like, str or list of str, optional
            Each person's group, or the names of columns of X that hold it and are no features then; several
            columns make their combinations. Without any, all are one group, and a warning says so.
        callback : callable, optional
            Called as `callback(step, model)` at each checkpoint, of trees with the round; True stops early.
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
        """Learn from another policy's log: who came, what was done, what it paid, how likely it was.

        Fairness terms are added to the rewards; correctness is what the rewards say. `EqualOpportunity` and
        `EqualizedOdds` need labels, which may be seen for some actions only: those seen then stand for the
        others, by their inverse propensities up to `importance_clip`.

        Parameters
        ----------
        X : array-like
            Contexts, one row per person.
        actions, rewards, propensities : array-like
            What was done for each, what it earned, and the probability it was done with.
        sensitive_features : array-like, str or list of str, optional
            Each person's group, or the columns of the frame X that hold it and are then no contexts.
        labels : array-like, optional
            Which action was right for each person, None or NaN where it was not seen.
        reveals : set, optional
            The actions after which the label is seen, such as {'grant'}; by default, every one.
        classes : array-like, optional
            All actions, if not all of them are in the log.
        callback : callable, optional
            Called as `callback(step, model)` at each checkpoint; True stops early.
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
        """Return what each group's policy says about each person: (people, groups, actions)."""
        return self._by_group(X)

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return each person's action probabilities under their own group's policy.

        Groups are given as in `fit`; those that `fit` took from columns of X are there again by default.
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
            known = listed(self.groups_)
            raise ValueError(
                f"Got no sensitive_features, but expected each person's group, one of {known}. "
                "To decide without it, deploy one policy for all: model.compress(group)."
            )
        return sensitive_features

    def _policy_of(self, X: Any, sensitive_features: Any) -> tuple[Floats, Groups | None]:
        policy = self.predict_proba(X, sensitive_features=sensitive_features)
        given = self._given_groups(X, sensitive_features)
        if given is None:
            return policy, None
        found, codes = np.unique(self._codes(given, len(policy)), return_inverse=True)
        return policy, Groups(codes, self.groups_[found])

    def predict(self, X: Any, *, sensitive_features: Any = None) -> Any:
        """Return the most probable action under each person's own group's policy."""
        probabilities = self.predict_proba(X, sensitive_features=sensitive_features)
        return self.classes_[probabilities.argmax(1)]

    def sample_actions(
        self, X: Any, *, sensitive_features: Any = None, random_state: Any = None
    ) -> tuple[Any, Floats]:
        """Draw an action for each person; return the actions and their probabilities, to be logged."""
        return self._sample(self.predict_proba(X, sensitive_features=sensitive_features), random_state)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """Return the accuracy of `predict`."""
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(as_pandas(y), predicted, sample_weight=sample_weight))

    def _codes(self, sensitive_features: Any, n_people: int) -> Codes:
        columns = getattr(self, "sensitive_names_", None)  # older model files have none
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
