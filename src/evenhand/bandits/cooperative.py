"""CooperativeBandits: one policy per group, rewarded for being right and for agreeing. The paper's CCB."""

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
    """One gradient bandit per group; each person is decided by their own group's, and the bandits cooperate.

    The default reward is `Likelihood() + LogRatio()`: learn the labels, and pay for every nat by which the
    acting policy parts from the others on the same person. `CooperativeBandits.published()` is Algorithm 1
    of Hu and Rangwala (2020).

    Parameters
    ----------
    divergence_weight : float
        The paper's λ, for the terms of the reward without a weight of their own. With 0, each policy learns
        by itself; large values make one policy of all.
    reward : Reward, Term or str, optional
        Reward terms, or their names joined by '+': `Correctness() + LogRatio() + Parity(bound=0.01)`.
    cooperation : {'mutual', 'acting'}
        'mutual' lets the other policies listen and move too, 'acting' moves the policy of the person's own
        group only, as published.
    shared_start : bool
        Begin with equal policies.
    optimizer : {'joint_adam', 'adam', 'sgd'}
        With 'joint_adam', policies that start equal and cooperate mutually with a weight of at least 5 on
        `LogRatio` (20 on `JensenShannon`) are moved together: their mean by Adam, their differences 1 + λ
        times slower. However large λ is, they learn as fast as one policy would. Otherwise it is 'adam', for
        each policy alone.
    class_weight : 'balanced' or dict, optional
        What an error about a person counts, by their label: {'yes': 10}, others 1; 'balanced' makes all
        labels count as much in all. Probabilities are then no longer calibrated.
    hidden, estimator, learning_rate, schedule, epochs, steps, batch_size, weight_decay, order, \
importance_clip, standardize, checkpoint_every, random_state
        As for `GradientBandit`.

    Attributes
    ----------
    classes_, groups_ : ndarray
        The labels, and the groups: values of `sensitive_features` or their combinations.
    sensitive_names_ : list of str or None
        The names of several sensitive columns, which later calls may give in any order; None for one column,
        and for columns without names, which keep their order.
    policies_ : Network
        The parameters, stacked over the groups.
    history_ : dict of ndarray
        Step, accumulated reward, mean reward and mean divergence of each interval; of learning without
        end (`partial_fit`, `update`), of the last 1,000.
    n_steps_ : int
        How many people were met.

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
        """Return Algorithm 1 as published: sampled actions, a KL blind to the action, only the actor moves.

        Parameters
        ----------
        divergence_weight : float
            The paper's λ.
        variant : {'algorithm', 'authors'}
            'algorithm' draws people with replacement and ascends plainly, as the paper's listing says;
            'authors' meets them in the file's order with Adam at 1e-4 for two epochs, as their code does.
        **options
            Other parameters, which override either.

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
        """Meet these people once, in the given order; the last batch of a call closes, full or not.

        Parameters
        ----------
        X, y : array-like
            Contexts, one row per person, and labels.
        classes : array-like, optional
            Every class there will ever be; the first call needs it.
        sensitive_features : array-like, optional
            Each person's group.
        groups : list, optional
            Every group there will ever be, if not all of them are in the first call.
        sample_weight : array-like, optional
            How many people each person stands for, as a share of the mean of everybody.
        total : dict, optional
            How many people of each group there are in all. The calls are then the pieces of one fit, whose
            learning rate decays as `epochs` or `steps` say, and the people of a call are met in `order`.
        """
        first = not hasattr(self, "policies_")
        X, y = self._contexts_and_labels(X, y, reset=first)
        self._first_time(first, classes, groups if total is None else list(total), sensitive_features, X)
        people = People(self._codes(sensitive_features, X.shape[0]), self._known_codes(y, "label"))
        sizes = None if total is None else sizes_of(total, self.groups_)
        people, kept = as_they_weigh(people, sample_weight)
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
        """Learn online from actions taken: what each paid, and the probability it was taken with.

        Fairness terms are added to the rewards; correctness is what the rewards say.

        Parameters
        ----------
        X : array-like
            Contexts, one row per person.
        actions, rewards : array-like
            What was decided for each, and what it earned.
        propensities : array-like, optional
            The probability each action was taken with; without it, the actions were this model's own.
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
            self._group_number(group)  # one that has no policy is an error

    # The paper's submodel study ------------------------------------------------------------------------

    def compress(self, group: Any) -> GradientBandit:
        """Return one group's policy as a bandit of its own, for everyone: it needs no sensitive attribute."""
        alone = self.compressed(group)
        shared = GradientBandit().get_params()
        bandit = GradientBandit(**{name: getattr(self, name) for name in shared})
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(bandit, name, getattr(self, name))
        bandit._training = alone._training
        bandit._publish()
        return bandit

    def compressed(self, group: Any) -> CooperativeBandits:
        """Return what `compress` does, with the one group 'everyone': a member of an ensemble."""
        check_is_fitted(self, "policies_")
        at = self._group_number(group)
        model = copy.copy(self)
        model.groups_, model.sensitive_names_ = encode_groups(None, 1).names, None
        policy = Network(*(part[at : at + 1].copy() for part in self.policies_))
        model._training = Training.of(policy, self._training.seed, self.n_steps_)
        model._publish()
        return model

    def reversed(self) -> CooperativeBandits:
        """Return a model that decides each group by the next group's policy; of two, by the other's."""
        check_is_fitted(self, "policies_")
        model = copy.deepcopy(self)
        policies = Network(*(np.roll(part, -1, axis=0) for part in self.policies_))
        # The optimiser's averages and the running rates were the other policies'.
        model._training = Training.of(policies, self._training.seed, self.n_steps_)
        model._training.history = copy.deepcopy(self._training.history)
        model._publish()
        return model
