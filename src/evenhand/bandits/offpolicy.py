"""Off-policy evaluation: estimates from another policy's log what a policy would have earned.

Use a log that the policy was not trained on. On its own training log it looks better than it is, because it
has also learned the noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

from evenhand import checks
from evenhand.arrays import Floats
from evenhand.groups import Groups

METHODS = ("doubly_robust", "inverse_propensity", "self_normalised", "direct")


class ValueEstimate(NamedTuple):
    """An estimate of a policy's mean reward per person, with its standard error (NaN if unknown).

    If groups are known, `by_group` has such an estimate for each group.
    """

    value: float
    standard_error: float
    by_group: dict[Any, ValueEstimate] | None = None

    def interval(self, deviations: float = 1.96) -> tuple[float, float]:
        """Return the normal confidence interval; the default of 1.96 deviations gives 95 % coverage."""
        return self.value - deviations * self.standard_error, self.value + deviations * self.standard_error


def inverse_propensity_value(
    probabilities: npt.ArrayLike,
    rewards: npt.ArrayLike,
    propensities: npt.ArrayLike,
    *,
    clip: float = np.inf,
    self_normalised: bool = False,
) -> ValueEstimate:
    """Estimate a policy's value by weighting each logged reward with π(a)/propensity.

    Parameters
    ----------
    probabilities : array of shape (people,)
        The new policy's probability of the action that was taken.
    rewards, propensities : array of shape (people,)
        What the action earned, and the probability with which it was taken.
    clip : float
        The largest weight. A lower limit reduces variance but adds bias; the default, infinity, is unbiased.
    self_normalised : bool
        Whether to divide by the mean weight. The estimate is then bounded and has less variance.

    Examples
    --------
    >>> inverse_propensity_value([0.9, 0.1], [1.0, 0.0], [0.5, 0.5]).value
    0.9
    """
    paid = finite("rewards", rewards)
    new, old = finite("probabilities", probabilities, len(paid)), chances(propensities, len(paid))
    _within_0_and_1("probabilities", new)
    weights = np.minimum(new / old, _largest(clip))
    if self_normalised:
        mean = float(np.average(paid, weights=weights)) if weights.sum() > 0 else float("nan")
        spread = weights * (paid - mean) / weights.mean() if weights.sum() > 0 else np.full_like(paid, np.nan)
        return ValueEstimate(mean, _standard_error(spread))
    return ValueEstimate(float((weights * paid).mean()), _standard_error(weights * paid))


def doubly_robust_value(
    policy: npt.ArrayLike,
    actions: npt.ArrayLike,
    rewards: npt.ArrayLike,
    propensities: npt.ArrayLike,
    predicted_rewards: npt.ArrayLike,
    *,
    clip: float = np.inf,
) -> ValueEstimate:
    """Estimate a policy's value from predicted rewards, corrected by their weighted errors on the log.

    The estimate is consistent if either the propensities or the predictions are right. With clip=0, there is
    no correction: the estimate uses the predictions alone. Their error is unknown, so its standard error is
    NaN.

    Parameters
    ----------
    policy : array of shape (people, actions)
        The new policy's probabilities.
    actions : array of shape (people,)
        The index of the action taken, from 0 to actions - 1.
    rewards, propensities : array of shape (people,)
        What the action earned, and the probability with which it was taken.
    predicted_rewards : array of shape (people, actions)
        Rewards predicted by a model that was not trained on these people.
    clip : float
        The largest weight.

    Examples
    --------
    >>> doubly_robust_value([[0, 1], [0, 1]], [0, 1], [0.0, 1.0], [0.5, 0.5], [[0, 1], [0, 1]]).value
    1.0
    """
    paid = finite("rewards", rewards)
    new, predicted = np.asarray(policy, dtype=np.float64), np.asarray(predicted_rewards, dtype=np.float64)
    if new.shape != predicted.shape or new.ndim != 2 or len(new) != len(paid):
        raise ValueError(
            f"Got a policy of shape {new.shape} and predicted_rewards of shape {predicted.shape}, but "
            f"expected (people, actions) for the {len(paid)} people of the log."
        )
    _within_0_and_1("a policy", new)
    one_each("actions", actions, len(paid))
    taken = np.asarray(actions, dtype=np.int64)
    if not ((taken >= 0) & (taken < new.shape[1])).all():
        raise ValueError(
            f"Got an action outside 0 … {new.shape[1] - 1}; expected its position in the policy."
        )
    people = np.arange(len(taken))
    weights = np.minimum(new[people, taken] / chances(propensities, len(paid)), _largest(clip))
    errors = paid - predicted[people, taken]
    scores = (new * predicted).sum(1) + weights * errors
    return ValueEstimate(float(scores.mean()), _standard_error(scores) if clip > 0 else float("nan"))


def value_by_group(estimate: Callable[[Any], ValueEstimate], groups: Groups | None) -> ValueEstimate:
    """Return the estimate for everybody, and for each group; `estimate(rows)` gives that of some rows."""
    overall = estimate(slice(None))
    if groups is None:
        return overall
    each = {name: estimate(np.flatnonzero(groups.codes == at)) for at, name in enumerate(groups.names)}
    return overall._replace(by_group=each)


def cross_fitted_rewards(
    X: Any, actions: npt.ArrayLike, rewards: npt.ArrayLike, n_actions: int, *, folds: int = 5
) -> Floats:
    """Predict every action's reward for every person by ridge regressions, fitted on the other folds.

    For an action taken fewer than twice in the training part, the prediction is the mean reward there.
    """
    taken, paid = np.asarray(actions, dtype=np.int64), np.asarray(rewards, dtype=np.float64)
    n_people = len(taken)
    if n_people < folds:
        raise ValueError(f"Got a log of {n_people} people, but expected at least {folds}, one for each fold.")
    predicted = np.empty((n_people, n_actions))
    for train, held_out in KFold(checks.integer("folds", folds, low=2), shuffle=True, random_state=0).split(
        taken
    ):
        for action in range(n_actions):
            of_action = train[taken[train] == action]
            if len(of_action) < 2:
                predicted[held_out, action] = paid[train].mean()
            else:
                predicted[held_out, action] = Ridge().fit(X[of_action], paid[of_action]).predict(X[held_out])
    return predicted


def one_each(name: str, values: Any, n_people: int) -> None:
    """Raise unless there is one value per person."""
    if np.ndim(values) != 1 or len(values) != n_people:
        raise ValueError(
            f"Got {name} of shape {np.shape(values)}, but expected one for each of {n_people} people."
        )


def finite(name: str, values: Any, n_people: int | None = None) -> Floats:
    """Return values as floats; raise unless there is one per person and all are finite."""
    numbers = np.asarray(values, dtype=np.float64)
    one_each(name, numbers, len(np.atleast_1d(numbers)) if n_people is None else n_people)
    bad = int((~np.isfinite(numbers)).sum())
    if bad:
        raise ValueError(f"Got {bad} {name} that are NaN or infinite, but expected finite numbers.")
    return numbers


def chances(propensities: Any, n_people: int) -> Floats:
    """Return propensities as floats; raise unless they are above 0 and at most 1."""
    taken = np.asarray(propensities, dtype=np.float64)
    one_each("propensities", taken, n_people)
    possible = (taken > 0) & (taken <= 1)
    if not possible.all():
        worst = float(taken[~possible][0])
        raise ValueError(f"Got a propensity of {worst}, but expected probabilities above 0 and at most 1.")
    return taken


def _largest(clip: float) -> float:
    """Return the largest weight allowed: at least 0, or infinity for no limit."""
    return np.inf if clip == np.inf else checks.number("clip", clip, low=0)


def _within_0_and_1(name: str, probabilities: Floats) -> None:
    possible = (probabilities >= 0) & (probabilities <= 1 + 1e-6)  # allow for float32 rounding
    if not possible.all():
        worst = float(probabilities[~possible][0])
        raise ValueError(f"Got {name} with the value {worst}, but expected probabilities from 0 to 1.")


def _standard_error(scores: Floats) -> float:
    return float(scores.std(ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else float("nan")
