"""CooperativeBoosting: like CooperativeBandits, but with boosted trees instead of networks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from evenhand import checks
from evenhand.arrays import Floats
from evenhand.bandits.deciding import GroupPolicies, Labelled, Log
from evenhand.bandits.doors import Callback, distinct_classes, no_missing_labels
from evenhand.bandits.fitting import check_reward, warn_of_terms
from evenhand.bandits.kernels.structs import People
from evenhand.bandits.sparse_input import check_sparse
from evenhand.bandits.training import HISTORY, TrainingDivergedError, no_rates
from evenhand.bandits.weighing import weighed
from evenhand.boosting.columns import as_numbers, learn_categories
from evenhand.boosting.training import Beside, Boosted, Plan, boost
from evenhand.frames import as_pandas
from evenhand.groups import encode_groups, groups_by_name
from evenhand.rewards import Likelihood, LogRatio, Reward, Term, as_reward, pack_terms
from evenhand.rewards.term import Setting

MOST_LEAVES = 131_072  # LightGBM's own limit


class CooperativeBoosting(GroupPolicies):
    """Boosted trees, one policy per group, that are rewarded for agreeing about the same person.

    The rewards are those of `CooperativeBandits`; trees follow their expected gradient. The trees learn the
    mean of the policies, and each group's difference from it: a large `divergence_weight` makes the groups
    agree, but does not slow down learning. Frames may contain categories and missing values.

    Parameters
    ----------
    divergence_weight : float
        The paper's λ: the weight of all reward terms that have no weight of their own. With 0, each policy
        learns independently; with a large value, the policies become one.
    reward : Reward, Term or str, optional
        Reward terms, or their names joined by '+'; by default `Likelihood() + LogRatio()`.
    cooperation : {'mutual', 'acting'}
        'mutual' also trains the other groups' policies on each person, so that they agree. 'acting' trains
        only the policy of the person's own group.
    rounds : int
        The number of boosting rounds. Each round grows one tree per output.
    learning_rate : float
        The factor by which each tree is multiplied.
    max_leaves : int or 'auto'
        The largest number of leaves of a tree; 'auto' is one per thousand people, from 4 to 31.
    min_leaf : int or 'auto'
        The smallest number of people in a leaf; 'auto' is 100, or a twentieth of the people if that is less.
    l2 : float
        The L2 penalty on the values of leaves: LightGBM's `lambda_l2`.
    class_weight : 'balanced' or dict, optional
        The cost of an error, by the person's label: in {'yes': 10}, all other labels have cost 1. 'balanced'
        gives all labels the same total cost. With costs, probabilities are no longer calibrated.
    importance_clip : float
        The largest weight π(a)/propensity of a logged action.
    checkpoint_every : int
        The number of rounds between callbacks, and between rows of the history.
    n_jobs : int
        The number of threads for LightGBM; -1 for one per core.
    random_state : int, RandomState instance or None
        The same seed gives the same policies.

    Attributes
    ----------
    classes_, groups_ : ndarray
        The labels, and the groups: the values of `sensitive_features`, or their combinations.
    sensitive_names_ : list of str or None
        The names of the sensitive columns, if there are several with names; otherwise None.
    categories_ : dict
        The categories of each non-numeric column of a frame.
    policies_ : Boosted
        The trees, as plain arrays.
    history_ : dict of ndarray
        The round, accumulated reward, mean reward and mean divergence at each checkpoint.
    n_steps_ : int
        The number of rounds.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.choice(["f", "m"], 2000)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = np.where(X[:, 0] + 0.5 * (s == "m") > 0, "yes", "no")
    >>> model = CooperativeBoosting(random_state=0).fit(X, y, sensitive_features=s)
    >>> decisions = model.probabilities_by_group(X).argmax(2)
    >>> bool((decisions[:, 0] != decisions[:, 1]).mean() < 0.05)  # for hardly anyone it depends on the group
    True
    """

    _accepted: ClassVar[dict[str, Any]] = {**GroupPolicies._accepted, "ensure_all_finite": "allow-nan"}

    def __init__(
        self,
        divergence_weight: float = 20.0,
        *,
        reward: Reward | Term | str | None = None,
        cooperation: str = "mutual",
        rounds: int = 120,
        learning_rate: float = 0.1,
        max_leaves: int | str = "auto",
        min_leaf: int | str = "auto",
        l2: float = 20.0,
        class_weight: Any = None,
        importance_clip: float = 10.0,
        checkpoint_every: int = 20,
        n_jobs: int = 1,
        random_state: Any = None,
    ) -> None:
        self.divergence_weight = divergence_weight
        self.reward = reward
        self.cooperation = cooperation
        self.rounds = rounds
        self.learning_rate = learning_rate
        self.max_leaves = max_leaves
        self.min_leaf = min_leaf
        self.l2 = l2
        self.class_weight = class_weight
        self.importance_clip = importance_clip
        self.checkpoint_every = checkpoint_every
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _reward(self) -> Reward:
        return as_reward(Likelihood() + LogRatio() if self.reward is None else self.reward)

    # Learning ------------------------------------------------------------------------------------------

    def _fit(
        self, X: Any, given: Labelled, sensitive_features: Any, callback: Callback,
        beside: Beside | None = None,
    ) -> Self:  # fmt: skip
        self._forget()
        X, y = as_pandas(X), as_pandas(given.y)
        no_missing_labels(y)
        sensitive_features = self._read_columns(sensitive_features, X)
        X, y = self._validated(self._numbers(X), y, reset=True)
        check_classification_targets(pd.unique(y))
        labels = self._learn_classes(y)
        groups = self._learn_groups(sensitive_features, X.shape[0])
        people, kept = weighed(People(groups, labels), given.sample_weight, self.class_weight, self.classes_)
        if not kept.all():
            X, beside = X[kept], None if beside is None else replace(beside, logs=beside.logs[kept])
        return self._grow(X, people, callback, beside)

    def _fit_logged(
        self, X: Any, log: Log, sensitive_features: Any, callback: Callback, beside: Beside | None = None
    ) -> Self:
        self._forget()
        sensitive_features = self._read_columns(sensitive_features, X)
        X = self._validated(self._numbers(X), reset=True)
        self.classes_ = distinct_classes(log.classes)
        groups = self._learn_groups(sensitive_features, X.shape[0])
        people = self._logged(X, log, groups)
        return self._grow(X, people, callback, beside)

    def _read_columns(self, sensitive_features: Any, X: Any) -> Any:
        """Find the columns of groups and of categories; return the groups."""
        sensitive_features, self.sensitive_columns_ = groups_by_name(sensitive_features, X)
        self.categories_ = learn_categories(self._features(X))
        return sensitive_features

    def _numbers(self, X: Any) -> Any:
        check_sparse(X)
        return as_numbers(self._features(X), self.categories_)

    def _grow(self, X: Any, people: People, callback: Callback, beside: Beside | None) -> Self:
        plan, reward, n_actions = self._plan(X.shape[0]), self._reward(), len(self.classes_)
        sizes = np.bincount(people.groups, minlength=len(self.groups_))
        logged = len(people.actions) > 0
        reward = check_reward(reward, (len(sizes), n_actions), people)
        weight = checks.number("divergence_weight", self.divergence_weight, low=0)
        terms = pack_terms(reward, weight, n_actions, n_steps=plan.rounds, group_sizes=sizes)
        warn_of_terms(reward, Setting(weight, n_actions, plan.rounds, sizes))
        base = np.zeros(n_actions) if logged else _log_shares(people, n_actions)
        self.n_steps_ = 0
        self.history_ = {name: np.zeros(0) for name in HISTORY}

        def checkpoint(
            at: int, so_far: Callable[[], Boosted], found: list[tuple[float, float]]
        ) -> bool | None:
            self.n_steps_ = at
            before = self.history_["reward"][-1] if len(self.history_["reward"]) else 0.0
            mean = np.mean(found, axis=0)
            row = (at, before + mean[0] * len(found) * X.shape[0], *mean)
            self.history_ = {
                name: np.append(column, value)
                for (name, column), value in zip(self.history_.items(), row, strict=True)
            }
            if callback is None:
                return None
            self.policies_ = so_far()
            return callback(at, self)

        names = list(getattr(self, "feature_names_in_", ()))
        try:
            self.policies_ = boost(
                X,
                [names.index(name) for name in self.categories_],
                people,
                terms,
                no_rates(len(terms.rates.bound), len(sizes), n_actions),
                base[1:] - base[0] if n_actions == 2 else base,
                plan,
                beside=beside,
                checkpoint=checkpoint,
            )
        except TrainingDivergedError:
            self._forget()  # a checkpoint has published policies
            raise
        return self

    def _plan(self, n_people: int) -> Plan:
        checks.one_of("cooperation", self.cooperation, ("mutual", "acting"))
        leaves = min(max(n_people // 1000, 4), 31) if self.max_leaves == "auto" else self.max_leaves
        people = min(100, max(n_people // 20, 1)) if self.min_leaf == "auto" else self.min_leaf
        return Plan(
            rounds=checks.integer("rounds", self.rounds, low=1),
            learning_rate=checks.number("learning_rate", self.learning_rate, low=0, open_low=True),
            max_leaves=checks.integer("max_leaves", leaves, low=2, high=MOST_LEAVES),
            min_leaf=checks.integer("min_leaf", people, low=1),
            l2=checks.number("l2", self.l2, low=0),
            mutual=self.cooperation == "mutual",
            importance_clip=checks.number("importance_clip", self.importance_clip, low=0, open_low=True),
            every=checks.integer("checkpoint_every", self.checkpoint_every, low=1),
            n_jobs=checks.jobs(self.n_jobs),
            seed=int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
        )

    # Prediction ----------------------------------------------------------------------------------------

    def check_loaded(self) -> None:
        """Raise if this model, read from a file, is damaged."""
        if hasattr(self, "policies_"):
            self.policies_.check(self.n_features_in_, len(self.classes_), len(self.groups_))

    def _by_group(self, X: Any) -> Floats:
        check_is_fitted(self, "policies_")
        self.check_loaded()
        if (ready := self._ready(X, gaps=True)) is None:
            ready = self._validated(self._numbers(X), reset=False)
        return self.policies_.probabilities(ready)

    def _regressors(self, X: Any) -> Any:
        """Return contexts with missing values replaced by the mean, since a regression accepts none."""
        X = self._validated(self._numbers(X), reset=False)
        return X if sparse.issparse(X) else SimpleImputer(keep_empty_features=True).fit_transform(X)

    def compress(self, group: Any) -> CooperativeBoosting:
        """Return a model with one group's policy for everybody. It needs no sensitive features."""
        check_is_fitted(self, "policies_")
        at = self._group_number(group)
        return self._with(self.policies_.spread[at : at + 1].copy(), encode_groups(None, 1).names)

    def reversed(self) -> CooperativeBoosting:
        """Return a model in which each group uses the next group's policy. Two groups swap policies."""
        check_is_fitted(self, "policies_")
        return self._with(np.roll(self.policies_.spread, -1, axis=0), self.groups_)

    def _with(self, spread: Floats, groups: Any) -> CooperativeBoosting:
        model = copy.copy(self)
        model.policies_, model.groups_ = replace(self.policies_, spread=spread), groups
        if len(groups) == 1:
            model.sensitive_names_ = None
        return model


def _log_shares(people: People, n_labels: int) -> Floats:
    counts = np.bincount(people.labels, people.weights if len(people.weights) else None, n_labels) + 1.0
    return np.asarray(np.log(counts / counts.sum()))
