"""CooperativeBandits: one policy per group, rewarded for accuracy and for agreement. The paper's CCB."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from evenhand import checks
from evenhand.bandits.base import PolicyLearner
from evenhand.bandits.deciding import GroupPolicies, Labelled, Log
from evenhand.bandits.doors import Callback, distinct_classes
from evenhand.bandits.fitting import sizes_of
from evenhand.bandits.gradient import GradientBandit
from evenhand.bandits.kernels.structs import People
from evenhand.bandits.training import Training
from evenhand.bandits.weighing import as_they_weigh, weighed
from evenhand.frames import as_pandas
from evenhand.groups import column_names, encode_groups, group_values, groups_by_name, sorted_unique
from evenhand.network import Network
from evenhand.rewards import Likelihood, LogRatio, Reward, Term, as_reward


class CooperativeBandits(PolicyLearner, GroupPolicies):
    """Gradient bandits, one per group, that are rewarded for agreeing about the same person.

    Each person's decision comes from the policy of their own group. The default reward is
    `Likelihood() + LogRatio()`: the first term learns the labels, the second penalises differences between
    the groups' policies. `CooperativeBandits.published()` is Algorithm 1 of Hu and Rangwala (2020).

    Parameters
    ----------
    divergence_weight : float
        The paper's λ: the weight of all reward terms that have no weight of their own. With 0, each policy
        learns independently; with a large value, the policies become one.
    reward : Reward, Term or str, optional
        Reward terms, or their names joined by '+': `Correctness() + LogRatio() + Parity(bound=0.01)`.
    cooperation : {'mutual', 'acting'}
        'mutual' also trains the other groups' policies on each person, so that they agree. 'acting' trains
        only the policy of the person's own group, as published.
    shared_start : bool
        Whether all policies start with the same parameters.
    optimizer : {'joint_adam', 'adam', 'sgd'}
        'joint_adam' moves the policies' mean by Adam, and their differences 1 + λ times more slowly (1 + λ/4
        for `JensenShannon`): however large λ is, they learn as fast as a single policy. It needs a shared
        start, mutual cooperation and a weight of at least 5 on `LogRatio` (20 on `JensenShannon`). Otherwise
        it is the same as 'adam', which moves each policy separately.
    class_weight : 'balanced' or dict, optional
        The cost of an error, by the person's label: in {'yes': 10}, all other labels have cost 1. 'balanced'
        gives all labels the same total cost. With costs, probabilities are no longer calibrated. `fit`
        divides costs by their mean over people; `partial_fit` takes a dict only, with mean 1 over all calls.
    hidden, estimator, learning_rate, schedule, epochs, steps, batch_size, weight_decay, order, \
importance_clip, standardize, checkpoint_every, random_state
        As for `GradientBandit`.

    Attributes
    ----------
    classes_, groups_ : ndarray
        The labels, and the groups: the values of `sensitive_features`, or their combinations.
    sensitive_names_ : list of str or None
        The names of the sensitive columns, if there are several. Later calls may then give them in any order.
        None for a single column, and for columns without names, which must keep their order.
    policies_ : Network
        The parameters of all policies, stacked by group.
    history_ : dict of ndarray
        The step, accumulated reward, mean reward and mean divergence of each interval. Online learning
        (`partial_fit`, `update`) keeps the last 1,000 intervals.
    n_steps_ : int
        The number of training steps: one per person, counting repetitions.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.choice(["f", "m"], 2000)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = np.where(X[:, 0] + 0.5 * (s == "m") > 0, "yes", "no")
    >>> model = CooperativeBandits(random_state=0).fit(X, y, sensitive_features=s)
    >>> by_group = model.probabilities_by_group(X)
    >>> decisions = by_group.argmax(2)
    >>> bool((decisions[:, 0] != decisions[:, 1]).mean() < 0.05)  # for hardly anyone it depends on the group
    True
    """

    def __init__(
        self,
        divergence_weight: float = 20.0,
        *,
        reward: Reward | Term | str | None = None,
        cooperation: str = "mutual",
        shared_start: bool = True,
        hidden: int = 20,
        estimator: str = "expected",
        optimizer: str = "joint_adam",
        learning_rate: float | str = "auto",
        schedule: str = "linear",
        epochs: float | str = "auto",
        steps: int | None = None,
        batch_size: int = 32,
        weight_decay: float = 0.0,
        class_weight: Any = None,
        order: str = "shuffled",
        importance_clip: float = 10.0,
        standardize: bool = True,
        checkpoint_every: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.divergence_weight = divergence_weight
        self.reward = reward
        self.cooperation = cooperation
        self.shared_start = shared_start
        self.hidden = hidden
        self.estimator = estimator
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.epochs = epochs
        self.steps = steps
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.class_weight = class_weight
        self.order = order
        self.importance_clip = importance_clip
        self.standardize = standardize
        self.checkpoint_every = checkpoint_every
        self.random_state = random_state

    @classmethod
    def published(
        cls, divergence_weight: float = 10.0, *, variant: str = "algorithm", **options: Any
    ) -> CooperativeBandits:
        """Return Algorithm 1 as published: sampled actions, a KL reward that is the same for every action.

        Parameters
        ----------
        divergence_weight : float
            The paper's λ.
        variant : {'algorithm', 'authors'}
            'algorithm' draws people with replacement and uses plain gradient ascent, like the listing in the
            paper. 'authors' takes them in the file's order, with Adam at 1e-4 for two epochs, like the code.
        **options
            Other parameters of the estimator. They override those of the variant.

        Examples
        --------
        >>> CooperativeBandits.published(20).reward
        Correctness(gains=None) + KL(weight=None, divergence='kl')
        """
        checks.one_of("variant", variant, ("algorithm", "authors"))
        preset: dict[str, Any] = {
            "reward": as_reward("correctness + kl"),
            "cooperation": "acting",
            "shared_start": False,
            "estimator": "sampled",
            "schedule": "constant",
            "batch_size": 1,
            "epochs": 20,
            "standardize": False,
        }
        if variant == "algorithm":
            preset |= {"order": "drawn", "optimizer": "sgd", "learning_rate": 0.01}
        else:
            preset |= {"order": "file", "optimizer": "adam", "learning_rate": 1e-4, "epochs": 2}
        return cls(divergence_weight, **{**preset, **options})

    def _reward(self) -> Reward:
        return as_reward(Likelihood() + LogRatio() if self.reward is None else self.reward)

    # Learning ------------------------------------------------------------------------------------------

    def _fit(self, X: Any, given: Labelled, sensitive_features: Any, callback: Callback) -> Self:
        self._forget()
        X = as_pandas(X)
        sensitive_features, self.sensitive_columns_ = groups_by_name(sensitive_features, X)
        X, y = self._contexts_and_labels(X, given.y, reset=True)
        labels = self._learn_classes(y)
        groups = self._learn_groups(sensitive_features, X.shape[0])
        self._begin(X.shape[1], len(self.groups_))
        people, kept = weighed(People(groups, labels), given.sample_weight, self.class_weight, self.classes_)
        return self._train(X if kept.all() else X[kept], people, decays=True, callback=callback)

    def _fit_logged(self, X: Any, log: Log, sensitive_features: Any, callback: Callback) -> Self:
        self._forget()
        sensitive_features, self.sensitive_columns_ = groups_by_name(sensitive_features, X)
        X = self._contexts(X, reset=True)
        self.classes_ = distinct_classes(log.classes)
        groups = self._learn_groups(sensitive_features, X.shape[0])
        self._begin(X.shape[1], len(self.groups_))
        people = self._logged(X, log, groups)
        return self._train(X, people, decays=True, callback=callback)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, *, sensitive_features: Any = None, groups: Any = None,
        sample_weight: Any = None, total: Any = None,
    ) -> Self:  # fmt: skip
        """Train on these people once, in the given order. A call's last batch may be smaller than the others.

        Parameters
        ----------
        X, y : array-like
            Contexts, one row per person, and labels.
        classes : array-like, optional
            All classes that can ever occur. The first call needs them.
        sensitive_features : array-like, optional
            Each person's group.
        groups : list, optional
            All groups that can ever occur, if some of them are not in the first call.
        sample_weight : array-like, optional
            The number of people each person represents, divided by its mean over the people of all calls.
        total : dict, optional
            The number of people of each group in all calls together. The calls are then pieces of one fit:
            the learning rate decays over `epochs` or `steps`, and each call takes its people in `order`.
        """
        first = not hasattr(self, "policies_")
        X, y = self._contexts_and_labels(X, y, reset=first)
        self._first_time(first, classes, groups if total is None else list(total), sensitive_features, X)
        people = People(self._codes(sensitive_features, X.shape[0]), self._known_codes(y, "label"))
        sizes = None if total is None else sizes_of(total, self.groups_)
        people, kept = as_they_weigh(people, sample_weight, self.class_weight, self.classes_)
        return self._train(X if kept.all() else X[kept], people, decays=False, total=sizes)

    def update(
        self,
        X: Any,
        actions: Any,
        rewards: Any,
        propensities: Any = None,
        *,
        sensitive_features: Any = None,
        classes: Any = None,
        groups: Any = None,
    ) -> Self:
        """Learn online from actions that were taken and the rewards they earned.

        The logged rewards replace reward terms for correct labels. Fairness terms are added to them.

        Parameters
        ----------
        X : array-like
            Contexts, one row per person.
        actions, rewards : array-like
            The action taken for each person, and what it earned.
        propensities : array-like, optional
            The probability with which each action was taken. By default, the actions are this model's own.
        sensitive_features, classes, groups
            As for `partial_fit`.
        """
        first = not hasattr(self, "policies_")
        X = self._contexts(X, reset=first)
        self._first_time(first, classes, groups, sensitive_features, X)
        codes = self._codes(sensitive_features, X.shape[0])
        people = self._log(X, actions, rewards, propensities, codes, own=True)
        return self._train(X, people, decays=False)

    def _first_time(self, first: bool, classes: Any, groups: Any, sensitive_features: Any, X: Any) -> None:
        self._settle_classes(first, classes)
        named = [] if groups is None else list(groups)
        if first:
            seen = group_values(sensitive_features, X.shape[0])
            self.groups_ = sorted_unique(np.concatenate([seen, np.asarray(named, dtype=object)]))[0]
            self.sensitive_names_ = column_names(sensitive_features)
            self._begin(X.shape[1], len(self.groups_))
        for group in named:
            self._group_number(group)  # raises if the group has no policy

    # The paper's submodel study ------------------------------------------------------------------------

    def compress(self, group: Any) -> GradientBandit:
        """Return one group's policy as a bandit for everybody. It needs no sensitive features."""
        alone = self.compressed(group)
        bandit = GradientBandit(**{name: getattr(self, name) for name in GradientBandit().get_params()})
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(bandit, name, getattr(self, name))
        bandit._training = alone._training
        bandit._publish()
        return bandit

    def compressed(self, group: Any) -> CooperativeBandits:
        """Return the same policy as `compress`, as a model with one group, 'everyone', for an ensemble."""
        check_is_fitted(self, "policies_")
        at = self._group_number(group)
        model = copy.copy(self)
        model.groups_, model.sensitive_names_ = encode_groups(None, 1).names, None
        policy = Network(*(part[at : at + 1].copy() for part in self.policies_))
        model._training = Training.of(policy, self._training.seed, self.n_steps_)
        model._publish()
        return model

    def reversed(self) -> CooperativeBandits:
        """Return a model in which each group uses the next group's policy. Two groups swap policies."""
        check_is_fitted(self, "policies_")
        model = copy.deepcopy(self)
        policies = Network(*(np.roll(part, -1, axis=0) for part in self.policies_))
        # The optimiser's averages and the running rates belong to the old order of policies.
        model._training = Training.of(policies, self._training.seed, self.n_steps_)
        model._training.history = copy.deepcopy(self._training.history)
        model._publish()
        return model
