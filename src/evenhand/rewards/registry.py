"""The list of all reward terms, and what depends on it: names, savable types, packed numbers, definition."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand import checks
from evenhand.arrays import Floats
from evenhand.rewards.agreement import Agreement
from evenhand.rewards.correctness import Correctness
from evenhand.rewards.custom import Custom
from evenhand.rewards.jensen_shannon import JensenShannon
from evenhand.rewards.kl import KL
from evenhand.rewards.likelihood import Likelihood
from evenhand.rewards.log_ratio import LogRatio
from evenhand.rewards.pull import Pull
from evenhand.rewards.rates import RateTerm
from evenhand.rewards.term import Reward, Seen, Setting, Term

# In the order in which rewards are summed.
TERMS: tuple[type[Term], ...] = (
    Correctness, Likelihood, KL, LogRatio, Agreement, JensenShannon, RateTerm, Custom,
)  # fmt: skip
PULLS = tuple(term for term in TERMS if issubclass(term, Pull))
BY_NAME = {kind.name: kind for term in TERMS for kind in term.variants() if kind is not Custom}
SAVABLE: tuple[type, ...] = (Reward, *BY_NAME.values())  # not Custom: a user's function can't be saved

# The reward as numbers. First one field per term, packed by the term itself; then which terms are used, the
# weights of the pulls, whether other policies listen, and whether a term needs the policies' own draws. All
# rewards have this type, so the training loop is compiled only once.
_FIELDS = [*(term.name for term in TERMS), "active", "weights", "listens", "draws"]
Terms = namedtuple("Terms", _FIELDS)  # type: ignore[misc]


def as_reward(reward: Reward | Term | str) -> Reward:
    """Return a `Reward` from a reward, a term, or names joined by '+', each with its default parameters.

    Parameters
    ----------
    reward : Reward, Term or str
        What to turn into a reward.

    Raises
    ------
    ValueError
        If it is something else, or a name is unknown.

    Examples
    --------
    >>> as_reward("likelihood + log_ratio").names
    ('likelihood', 'log_ratio')
    """
    if isinstance(reward, Reward):
        return reward
    if isinstance(reward, Term):
        return Reward((reward,))
    if isinstance(reward, str):
        names = [checks.one_of("reward", part.strip(), BY_NAME) for part in reward.split("+")]
        return Reward(tuple(BY_NAME[name]() for name in names))
    raise ValueError(
        f"Got reward={reward!r}, but expected reward terms joined by '+', such as "
        "Correctness() + LogRatio(), or their names in a string."
    )


def pack_terms(
    reward: Reward,
    divergence_weight: float,
    n_labels: int,
    n_steps: int = 0,
    group_sizes: npt.ArrayLike = (1,),
) -> Any:
    """Check a reward, and turn it into numbers for the training loop and the NumPy definition.

    Parameters
    ----------
    reward : Reward
        The reward.
    divergence_weight : float
        The weight of terms that have no weight of their own.
    n_labels : int
        The number of labels, which is also that of actions.
    n_steps : int
        The number of steps of a fit; 0 for online learning, which has no end.
    group_sizes : array-like
        The number of people in each group. If a group is small, prices rise more slowly, and its running
        rates forget faster.
    """
    setting = Setting(divergence_weight, n_labels, n_steps, group_sizes)
    for term in reward.terms:
        term.check(n_labels)
    packed = {term.name: term.pack(reward, setting) for term in TERMS}
    pulling = [pull for pull in PULLS if packed[pull.name].weight > 0]
    active = tuple(any(isinstance(one, kind) for one in reward.terms) for kind in TERMS)
    weights = tuple(packed[term.name].weight if term in PULLS else 0.0 for term in TERMS)
    draws = any(pull.draws for pull in pulling)
    return Terms._make([*packed.values(), active, weights, bool(pulling), draws])


def stiffness(terms: Any) -> float:
    """Return how hard the reward pulls equal policies together, as a weight of the KL divergence.

    >>> stiffness(pack_terms(LogRatio(3) + JensenShannon(4) + Agreement(5), 0, 2))
    4.0
    """
    return float(sum(pull.stiffness * getattr(terms, pull.name).weight for pull in PULLS))


def rewards(terms: Any, seen: Seen) -> Floats:
    """Return r(a) for every person and action. This is the definition; the compiled loop must equal it."""
    return sum((term.rewards(getattr(terms, term.name), seen) for term in TERMS), np.zeros_like(seen.own))


def listening(terms: Any, seen: Seen) -> Floats:
    """Return the logit gradients of listening policies, (people, groups, actions). This is the definition."""
    found = (pull.listening(getattr(terms, pull.name), seen) for pull in PULLS)
    return sum(found, np.zeros_like(seen.said))
