"""GradientBandit: one softmax policy that learns from labels, or from what a log says was done and paid."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from evenhand.arrays import Codes, Floats
from evenhand.bandits.base import PolicyLearner
from evenhand.bandits.doors import Callback, distinct_classes
from evenhand.bandits.kernels.structs import People
from evenhand.bandits.weighing import weighed
from evenhand.groups import Groups, encode_groups
from evenhand.rewards import Likelihood, Reward, Term, as_reward


class GradientBandit(PolicyLearner):
    """A gradient contextual bandit: a stochastic policy over any number of actions.

    It learns from labels (`fit`, `partial_fit`), where every action's reward is known, or from logged
    feedback (`fit_logged`, `update`), where only the taken action's is, with the probability it was taken.

    Parameters
    ----------
    reward : Reward, Term or str, optional
        Reward terms, or their names joined by '+'. By default `Likelihood()`, whose expected gradient is that
        of maximum likelihood; the paper's is `Correctness()`. Logged feedback brings its own rewards.
    hidden : int
        Units of the hidden layer.
    estimator : {'expected', 'sampled'}
        'expected' sums over the actions, 'sampled' draws one, as Algorithm 1 of the paper does.
    optimizer : {'adam', 'sgd', 'joint_adam'}
        'joint_adam' differs from 'adam' where policies listen to each other.
    learning_rate : float or 'auto'
        The step size; 'auto' is 0.01 / √features.
    schedule : {'linear', 'cosine', 'constant', 'inverse_sqrt'}
        How the step size changes: the first two fall to a hundredth over `fit`, and stay constant in
        `partial_fit` and `update`.
    epochs : float or 'auto'
        How often `fit` meets everybody; 'auto' is 20 times, but at least 20,000 and at most 400,000 people in
        all, everybody once.
    steps : int, optional
        How many people `fit` meets, in place of `epochs`.
    batch_size : int
        People whose gradients are averaged into one move.
    weight_decay : float
        The share of the weights, times the step size, that each move takes away.
    class_weight : 'balanced' or dict, optional
        What an error about a person counts, by their label; 'balanced' makes all labels count as much in all.
    order : {'shuffled', 'file', 'drawn'}
        Shuffled anew each epoch, in the file's order, or drawn with replacement.
    importance_clip : float
        The largest weight π(a)/propensity of a logged action.
    standardize : bool
        Whether `fit` puts the columns of X on one scale: mean 0 and deviation 1, and without centring where X
        is sparse; columns of zeros and ones stay as they are. The policies take rows as they come: the scale
        is folded into their first layer. `partial_fit` and `update` never scale.
    checkpoint_every : int
        Steps between callbacks and between rows of the history.
    random_state : int, RandomState instance or None
        Same seed, same policy, bit for bit.

    Attributes
    ----------
    classes_ : ndarray
        The actions.
    policies_ : Network
        The parameters, stacked over one group.
    history_ : dict of ndarray
        Step, accumulated reward, mean reward and mean divergence of each interval; of learning without
        end (`partial_fit`, `update`), of the last 1,000.
    n_steps_ : int
        How many people were met.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> bandit = GradientBandit(random_state=0).fit(X, y)
    >>> bandit.score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        reward: Reward | Term | str | None = None,
        *,
        hidden: int = 20,
        estimator: str = "expected",
        optimizer: str = "adam",
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
        self.reward = reward
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

    def _reward(self) -> Reward:
        return as_reward(Likelihood() if self.reward is None else self.reward)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, callback: Callback = None) -> Self:
        """Learn a policy from labels; `callback(step, bandit)` may return True to stop early.

        What a person teaches counts as much as their `sample_weight`; people of weight 0 are left out.
        """
        self._forget()
        X, y = self._contexts_and_labels(X, y, reset=True)
        labels = self._learn_classes(y)
        self._begin(X.shape[1], 1)
        people, kept = weighed(People(_one_group(X), labels), sample_weight, self.class_weight, self.classes_)
        return self._train(X if kept.all() else X[kept], people, decays=True, callback=callback)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Meet these people once, in the given order; the first call needs every class there will ever be."""
        first = not hasattr(self, "policies_")
        X, y = self._contexts_and_labels(X, y, reset=first)
        self._first_time(first, classes, X.shape[1])
        return self._train(X, People(_one_group(X), self._known_codes(y, "label")), decays=False)

    def fit_logged(
        self,
        X: Any,
        actions: Any,
        rewards: Any,
        propensities: Any,
        *,
        classes: Any = None,
        callback: Callback = None,
    ) -> Self:
        """Learn from another policy's log: who came, what was done, what it paid, how likely it was.

        Parameters
        ----------
        X : array-like
            Contexts, one row per person.
        actions, rewards, propensities : array-like
            What was done for each, what it earned, and the probability it was done with.
        classes : array-like, optional
            All actions, if not all of them are in the log.
        callback : callable, optional
            Called as `callback(step, bandit)` at each checkpoint; True stops early.
        """
        self._forget()
        X = self._contexts(X, reset=True)
        self.classes_ = distinct_classes(actions if classes is None else classes)
        self._begin(X.shape[1], 1)
        people = self._log(X, actions, rewards, propensities, _one_group(X))
        return self._train(X, people, decays=True, callback=callback)

    def update(
        self, X: Any, actions: Any, rewards: Any, propensities: Any = None, *, classes: Any = None
    ) -> Self:
        """Learn online from feedback on actions taken; without propensities they were this policy's own."""
        first = not hasattr(self, "policies_")
        X = self._contexts(X, reset=first)
        self._first_time(first, classes, X.shape[1])
        people = self._log(X, actions, rewards, propensities, _one_group(X), own=True)
        return self._train(X, people, decays=False)

    def _first_time(self, first: bool, classes: Any, n_features: int) -> None:
        self._settle_classes(first, classes)
        if first:
            self._begin(n_features, 1)

    def predict_proba(self, X: Any) -> Floats:
        """Return π(a|x) for each person and action."""
        return self._by_group(X)[:, 0]

    def predict(self, X: Any) -> Any:
        """Return the most probable action of each person."""
        probabilities = self.predict_proba(X)  # raises if there are no classes yet
        return self.classes_[probabilities.argmax(1)]

    def sample_actions(self, X: Any, *, random_state: Any = None) -> tuple[Any, Floats]:
        """Draw an action for each person; return the actions and their probabilities, to be logged."""
        return self._sample(self.predict_proba(X), random_state)

    def _policy_of(self, X: Any, sensitive_features: Any) -> tuple[Floats, Groups | None]:
        policy = self.predict_proba(X)
        return policy, None if sensitive_features is None else encode_groups(sensitive_features, len(policy))


def _one_group(X: Any) -> Codes:
    return np.zeros(X.shape[0], dtype=np.int64)
