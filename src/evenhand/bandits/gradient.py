"""GradientBandit: one softmax policy that learns from labels, or from logged actions and rewards."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from evenhand.arrays import Codes, Floats
from evenhand.bandits.base import PolicyLearner
from evenhand.bandits.doors import Callback, distinct_classes
from evenhand.bandits.kernels.structs import People
from evenhand.bandits.weighing import as_they_cost, weighed
from evenhand.groups import Groups, encode_groups
from evenhand.rewards import Likelihood, Reward, Term, as_reward


class GradientBandit(PolicyLearner):
    """A gradient contextual bandit: a stochastic policy over any number of actions.

    It learns from labels (`fit`, `partial_fit`), which tell the reward of every action, or from logged
    feedback (`fit_logged`, `update`): the reward and the probability of the action that was taken.

    Parameters
    ----------
    reward : Reward, Term or str, optional
        Reward terms, or their names joined by '+'. The expected gradient of the default, `Likelihood()`, is
        that of maximum likelihood. The paper uses `Correctness()`. Logged feedback has its own rewards.
    hidden : int
        The number of hidden units.
    estimator : {'expected', 'sampled'}
        'expected' sums over all actions; 'sampled' draws one action, like Algorithm 1 of the paper.
    optimizer : {'adam', 'sgd', 'joint_adam'}
        Here, with a single policy, 'joint_adam' is the same as 'adam'.
    learning_rate : float or 'auto'
        The step size; 'auto' is 0.01 / √features.
    schedule : {'linear', 'cosine', 'constant', 'inverse_sqrt'}
        How the step size changes. 'linear' and 'cosine' reduce it to a hundredth during `fit`; in
        `partial_fit` and `update` they keep it constant. 'inverse_sqrt' divides it by √(1 + step / 10,000).
    epochs : float or 'auto'
        How often `fit` goes through the training data. 'auto' is 20 epochs, but at least 20,000 and at most
        400,000 steps, and never less than one epoch. A step trains on one person.
    steps : int, optional
        The number of steps of `fit`, instead of `epochs`.
    batch_size : int
        The number of people whose gradients are averaged into one update.
    weight_decay : float
        Each update shrinks the weights by this share, times the step size. Biases don't shrink.
    class_weight : 'balanced' or dict, optional
        The cost of an error, by the person's label. 'balanced' gives all labels the same total cost.
        `fit` divides costs by their mean over people; `partial_fit` takes a dict only, with mean 1 over all
        calls.
    order : {'shuffled', 'file', 'drawn'}
        The order of people: shuffled in each epoch, as in the file, or drawn with replacement.
    importance_clip : float
        The largest weight π(a)/propensity of a logged action.
    standardize : bool
        Whether `fit` scales the columns of X to mean 0 and variance 1; if X is sparse, they are not centred.
        Columns of zeros and ones stay as they are. The fitted policies take unscaled rows, since their first
        layer includes the scale. `partial_fit` and `update` never scale.
    checkpoint_every : int
        The number of steps between callbacks, and between rows of the history.
    random_state : int, RandomState instance or None
        The same seed gives the same policy, bit for bit.

    Attributes
    ----------
    classes_ : ndarray
        The actions.
    policies_ : Network
        The parameters; the first axis has length one.
    history_ : dict of ndarray
        The step, accumulated reward, mean reward and mean divergence of each interval. Online learning
        (`partial_fit`, `update`) keeps the last 1,000 intervals.
    n_steps_ : int
        The number of training steps: one per person, counting repetitions.

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

        Gradients are weighted by `sample_weight`. People with weight 0 are left out.
        """
        self._forget()
        X, y = self._contexts_and_labels(X, y, reset=True)
        labels = self._learn_classes(y)
        self._begin(X.shape[1], 1)
        people, kept = weighed(People(_one_group(X), labels), sample_weight, self.class_weight, self.classes_)
        return self._train(X if kept.all() else X[kept], people, decays=True, callback=callback)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Train on these people once, in the given order; the first call needs all possible classes."""
        first = not hasattr(self, "policies_")
        X, y = self._contexts_and_labels(X, y, reset=first)
        self._first_time(first, classes, X.shape[1])
        people = People(_one_group(X), self._known_codes(y, "label"))
        return self._train(X, as_they_cost(people, self.class_weight, self.classes_), decays=False)

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
        """Learn from the log of another policy: its actions, their rewards and their probabilities.

        Parameters
        ----------
        X : array-like
            Contexts, one row per person.
        actions, rewards, propensities : array-like
            The action taken for each person, what it earned, and the probability with which it was taken.
        classes : array-like, optional
            All actions, if some of them are not in the log.
        callback : callable, optional
            Called as `callback(step, bandit)` at each checkpoint; it may return True to stop early.
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
        """Learn online from logged feedback; without propensities, this policy drew the actions itself."""
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
        """Return each person's most probable action."""
        probabilities = self.predict_proba(X)  # raises if there are no classes yet
        return self.classes_[probabilities.argmax(1)]

    def sample_actions(self, X: Any, *, random_state: Any = None) -> tuple[Any, Floats]:
        """Draw an action for each person; return the actions and their probabilities, ready to be logged."""
        return self._sample(self.predict_proba(X), random_state)

    def _policy_of(self, X: Any, sensitive_features: Any) -> tuple[Floats, Groups | None]:
        policy = self.predict_proba(X)
        return policy, None if sensitive_features is None else encode_groups(sensitive_features, len(policy))


def _one_group(X: Any) -> Codes:
    return np.zeros(X.shape[0], dtype=np.int64)
