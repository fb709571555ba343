"""Bounded rates: Parity, EqualOpportunity and EqualizedOdds, which put prices on actions.

`rate_lines` has the same for the compiled loops.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand import checks
from evenhand.arrays import Flags, Floats
from evenhand.groups import large_enough
from evenhand.rewards.rate_lines import earn
from evenhand.rewards.term import TINY, Lines, Reward, Seen, Setting, Term

FULL_PACE = 2.5  # prices are not slowed down for groups with at least 1/2.5 of an equal share of people


class Rates(NamedTuple):
    """The running state of T bounded terms, for G groups and K actions."""

    rates: Floats  # (T, G, K + 1, K): by label (the last means 'any label') and action
    dual: Floats  # (T, G, K + 1, K)
    counts: Floats  # (G, K + 1)


class Packed(NamedTuple):
    """The bounded terms of a reward as numbers; T is 0 if there are none."""

    mask: Flags  # (T, K + 1, K): which rates are bounded
    bound: Floats  # (T,), like the next two
    dual_step: Floats
    pull: Floats
    averaging: Floats  # (T, G)
    held: Flags  # (T, G): whether a group is large enough to be held to the bound
    cut: Floats  # (T,): the threshold of the second of two actions; 0: most probable; -1: probabilities


def watched(
    own: Packed, state: Rates, group: int, label: int, policy: Floats, share: float, stands_for: float = 1.0,
    logged: bool = False,
) -> None:  # fmt: skip
    """Do the same as `watch` in plain NumPy; `policy` has the probabilities of the person's own policy."""
    n_actions = len(policy)
    for slot in ([label] if label >= 0 else []) + [n_actions]:
        people = 1.0 if logged and slot == n_actions else stands_for
        state.counts[group, slot] += people
        for t in range(len(state.rates)):
            top = policy.argmax() if own.cut[t] == 0 else int(policy[1] >= own.cut[t])
            seen = np.eye(n_actions)[top] if own.cut[t] >= 0 else policy
            weight = min(people * max(own.averaging[t, group], 1 / state.counts[group, slot]), 1)
            state.rates[t, group, slot] += weight * (seen - state.rates[t, group, slot])
            for action in np.flatnonzero(own.mask[t, slot]):
                step, met = people * share * own.dual_step[t], (state.counts[:, slot] > 0) & own.held[t]
                dual = state.dual[t, :, slot, action]  # a view
                moved = ascended(dual, apart(own, state, t, slot, action), step, own.bound[t])
                dual[met] = moved[met]


def ascended(dual: Floats, apart: Floats, step: float, bound: float) -> Floats:
    """Return the dual variables after a step of proximal ascent on Σ dual · apart − bound/2 · |dual|.

    Outside the bound, a price rises. Inside, it falls back to 0 and stays there: complementary slackness.
    With a bound of 0, it can change its sign freely.

    >>> ascended(np.array([0.0, 0.1, 0.1]), np.array([0.5, 0.3, 0.0]), step=0.1, bound=0.8)
    array([0.01, 0.09, 0.06])
    """
    moved = dual + step * apart
    return moved - np.clip(moved, -step * bound / 2, step * bound / 2)


def apart(own: Packed, state: Rates, t: int, slot: int, action: Any) -> Floats:
    """Return each group's rate minus the middle of the groups' rates; 0 for groups that don't count."""
    met = (state.counts[:, slot] > 0) & own.held[t]
    rates = state.rates[t, :, slot, action]
    if not met.any():
        return np.zeros_like(rates)
    return np.where(met, rates - (rates[met].min() + rates[met].max()) / 2, 0)


def excess(own: Packed, state: Rates, t: int, slot: int, action: Any) -> Floats:
    """Return how far each group's rate is outside ± bound/2 around the middle of the groups; else 0."""
    off = apart(own, state, t, slot, action)
    return off - np.clip(off, -own.bound[t] / 2, own.bound[t] / 2)


def pace(group_sizes: npt.ArrayLike) -> Floats:
    """Return how fast each group's prices may move: 1, or less for small groups.

    The rate of a small group shows the effect of a price late, and its price is multiplied by 1/share. If
    its prices rose as fast as those of a large group, they would soon be far too high, and everybody in the
    small group would get the same decision. With two groups, a fifth of the people is enough for full pace.
    A group without people slows nothing down.

    >>> pace([800, 200]), pace([980, 20]), pace([10, 0])
    (array([1., 1.]), array([1. , 0.1]), array([1., 1.]))
    """
    sizes = np.asarray(group_sizes, dtype=np.float64)
    shares = FULL_PACE * len(sizes) * sizes / max(sizes.sum(), 1.0)
    return np.where(sizes > 0, np.minimum(shares, 1.0), 1.0)


@dataclass(frozen=True)
class RateTerm(Term):
    """A bound on how much the groups' rates of an action may differ, kept by dual ascent.

    The term tracks the running rates of each group. While they differ by more than `bound`, the price of the
    action rises for groups above the middle of the highest and the lowest rate, and falls for groups below
    it. While they differ by less, the price goes back to 0.

    Parameters
    ----------
    bound : float
        The largest accepted difference between groups.
    dual_step : float or 'auto'
        How fast the price rises with the excess, per step. It decreases with the learning rate, so that
        prices settle as the policies do. 'auto' is 0.001, times 100,000 / steps in a `fit` with fewer than
        100,000 steps, because prices then have less time to rise. If a group is small (with two groups: less
        than a fifth of the people), the step is smaller and that group's `averaging` larger, in proportion.
    pull : float
        An additional price, proportional to the current excess, which damps swings of the dual.
    averaging : float
        The weight of the newest person in the running rates.
    measure : {'decisions', 'probabilities'}
        'decisions' counts the most probable actions, 'probabilities' the probabilities of the policy.
    min_group : int
        Groups with fewer people are not held to the bound, unless fewer than two groups are large enough:
        their rates are mostly chance, and must not change everybody's prices.
    threshold : float, optional
        For two labels: decide for the second if its probability is at least this. By default, the decision is
        the most probable label. Rates are bounded only at this threshold, so use that of your decisions.
    """

    name: ClassVar[str] = "rates"
    lines: ClassVar[Lines] = Lines(earn)
    needs_labels: ClassVar[bool] = True
    settled: ClassVar[bool] = False
    bound: float = 0.0
    dual_step: float | str = "auto"
    pull: float = 1.0
    averaging: float = 2e-3
    measure: str = "decisions"
    min_group: int = field(default=checks.MIN_GROUP, repr=False)
    threshold: float | None = field(default=None, repr=False)

    def check(self, n_labels: int) -> None:
        """Raise if a parameter is out of range."""
        checks.number("bound", self.bound, low=0, high=1)
        if self.dual_step != "auto":
            checks.number("dual_step", self.dual_step, low=0)
        checks.number("pull", self.pull, low=0)
        checks.number("averaging", self.averaging, low=0, high=1, open_low=True)
        checks.one_of("measure", self.measure, ("decisions", "probabilities"))
        checks.integer("min_group", self.min_group)
        if self.threshold is not None:
            checks.number("threshold", self.threshold, low=0, high=1, open_low=True)
            if n_labels != 2:
                raise ValueError(
                    f"Got threshold={self.threshold:g} for {n_labels} labels, but expected two labels."
                )

    def step(self, n_steps: int) -> float:
        """Return the dual step of a fit with this number of steps; 0 means online learning, without an end.

        Examples
        --------
        >>> Parity().step(400_000), Parity().step(20_000), Parity(dual_step=0.01).step(20_000)
        (0.001, 0.005, 0.01)
        """
        if self.dual_step != "auto":
            return float(self.dual_step)
        return 0.001 * max(1.0, 100_000 / n_steps) if n_steps else 0.001

    def mask(self, n_labels: int) -> Flags:
        """Return which rates are bounded: (labels + 1, actions); the last row means 'any label'."""
        raise TypeError("RateTerm is not a reward by itself: use Parity, EqualOpportunity or EqualizedOdds.")

    @classmethod
    def variants(cls) -> tuple[type[Term], ...]:
        """Return the three public terms."""
        return Parity, EqualOpportunity, EqualizedOdds

    @classmethod
    def pack(cls, reward: Reward, setting: Setting) -> Packed:
        """Return the numbers of all bounded terms together."""
        bounded = [term for term in reward.terms if isinstance(term, RateTerm)]
        n_labels = setting.n_labels
        masks = [term.mask(n_labels) for term in bounded]
        if reward.get("custom") is not None:
            # A user's own term may read the running rates, so track them without a bound.
            bounded, masks = [RateTerm(), *bounded], [np.zeros((n_labels + 1, n_labels), np.bool_), *masks]
        speed = pace(setting.group_sizes)
        each = [large_enough(setting.group_sizes, term.min_group) for term in bounded]
        held = np.array(each, dtype=np.bool_).reshape(len(bounded), len(speed))
        averaging = np.array([term.averaging for term in bounded], dtype=np.float64)
        steps = np.array([term.step(setting.n_steps) for term in bounded], dtype=np.float64)
        return Packed(
            mask=np.array(masks, dtype=np.bool_).reshape(len(masks), n_labels + 1, n_labels),
            bound=np.array([term.bound for term in bounded], dtype=np.float64),
            # A group that is not held to the bound does not slow down the prices of others.
            dual_step=np.where(held, speed, 1.0).min(axis=1, initial=1.0) * steps,
            pull=np.array([term.pull for term in bounded], dtype=np.float64),
            averaging=np.minimum(averaging[:, None] / speed, 1.0),
            held=held,
            # One array for `threshold` and `measure`: Numba counts array references at every step.
            cut=np.array(
                [(term.threshold or 0.0) if term.measure == "decisions" else -1.0 for term in bounded]
            ),
        )

    @staticmethod
    def rewards(own: Packed, seen: Seen) -> Floats:
        """Return minus the price of each action for each person, over all bounded rates that include them."""
        _, n_groups, n_actions = seen.said.shape
        state, found = seen.state, np.zeros_like(seen.own)
        for t, slot, action in zip(*np.nonzero(own.mask), strict=True):
            dual, counts = state.dual[t, :, slot, action], state.counts[:, slot]
            counted = ((slot == n_actions) | (seen.labels == slot)) & (counts[seen.groups] > 0)
            if counted.any():
                price = dual - dual.mean() + own.pull[t] * excess(own, state, t, slot, action)
                factor = own.held[t] * counts.sum() / (n_groups * np.maximum(counts, TINY))
                found[:, action] -= np.where(counted, (price * factor)[seen.groups], 0)
        return found


@dataclass(frozen=True)
class Parity(RateTerm):
    """Demographic parity: every group gets each action equally often.

    With two labels, only the rate of the second is bounded. The parameters are those of `RateTerm`.
    """

    name: ClassVar[str] = "parity"
    needs_labels: ClassVar[bool] = False

    def mask(self, n_labels: int) -> Flags:
        """Bound the rates among all people."""
        mask = np.zeros((n_labels + 1, n_labels), dtype=np.bool_)
        mask[-1, 1 if n_labels == 2 else 0 :] = True
        return mask


@dataclass(frozen=True)
class EqualOpportunity(RateTerm):
    """Equal opportunity: in every group, people with a label get it as their decision equally often.

    With two labels, only the rate of the second is bounded. The parameters are those of `RateTerm`.
    """

    name: ClassVar[str] = "equal_opportunity"

    def mask(self, n_labels: int) -> Flags:
        """Bound the rate of each correct action among people with that label."""
        mask = np.zeros((n_labels + 1, n_labels), dtype=np.bool_)
        for label in range(1 if n_labels == 2 else 0, n_labels):
            mask[label, label] = True
        return mask


@dataclass(frozen=True)
class EqualizedOdds(RateTerm):
    """Equalized odds: among people with the same label, every group gets each action equally often.

    With two labels, only the rates of the second are bounded. The parameters are those of `RateTerm`.
    """

    name: ClassVar[str] = "equalized_odds"

    def mask(self, n_labels: int) -> Flags:
        """Bound the rates among the people with each label."""
        mask = np.zeros((n_labels + 1, n_labels), dtype=np.bool_)
        mask[:-1, 1 if n_labels == 2 else 0 :] = True
        return mask
