"""Bounded rates: Parity, EqualOpportunity and EqualizedOdds, kept by prices on actions.

The same for the training loop, one person at a time, is in `rate_lines`.
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

FULL_PACE = 2.5  # a group with 1/2.5 of an equal share, or more, needs no slower prices


class Rates(NamedTuple):
    """The running state of T bounded terms, for G groups and K actions."""

    rates: Floats  # (T, G, K + 1, K): by label (the last: whatever the label) and action
    dual: Floats  # (T, G, K + 1, K)
    counts: Floats  # (G, K + 1)


class Packed(NamedTuple):
    """The bounded terms of a reward in numbers; T is 0 where there are none."""

    mask: Flags  # (T, K + 1, K): which rates are bounded
    bound: Floats  # (T,), as the next two
    dual_step: Floats
    pull: Floats
    averaging: Floats  # (T, G)
    held: Flags  # (T, G): whether a group is large enough to be held to the bound
    cut: Floats  # (T,): the probability from which on the second of two is decided; 0: the larger; -1: uncut


def watched(
    own: Packed, state: Rates, group: int, label: int, policy: Floats, share: float, stands_for: float = 1.0,
    logged: bool = False,
) -> None:  # fmt: skip
    """Do what `watch` does, in plain NumPy: `policy` is what the person's own policy says of them."""
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

    Outside the bound a price rises. Inside it falls back to 0 and stays there: complementary slackness. With
    bound 0 it is free to change its sign.

    >>> ascended(np.array([0.0, 0.1, 0.1]), np.array([0.5, 0.3, 0.0]), step=0.1, bound=0.8)
    array([0.01, 0.09, 0.06])
    """
    moved = dual + step * apart
    return moved - np.clip(moved, -step * bound / 2, step * bound / 2)


def apart(own: Packed, state: Rates, t: int, slot: int, action: Any) -> Floats:
    """Return how far each group's rate lies from the middle of the groups seen; 0 for those never seen."""
    met = (state.counts[:, slot] > 0) & own.held[t]
    rates = state.rates[t, :, slot, action]
    if not met.any():
        return np.zeros_like(rates)
    return np.where(met, rates - (rates[met].min() + rates[met].max()) / 2, 0)


def excess(own: Packed, state: Rates, t: int, slot: int, action: Any) -> Floats:
    """Return how far each group's rate lies outside the bound around the middle of the groups seen."""
    off = apart(own, state, t, slot, action)
    return off - np.clip(off, -own.bound[t] / 2, own.bound[t] / 2)


def pace(group_sizes: npt.ArrayLike) -> Floats:
    """Return how fast each group's prices may move: 1, or less for a group that is rarely met.

    A small group's rate tells late what a price did, and its price weighs more; both by 1/share. Prices that
    rose as fast as those of a large group would be far too high by then, and everybody in the small group
    would get the same decision. Of two groups, a fifth of the people is enough for full pace; a group of
    which nobody was met yet slows nothing.

    >>> pace([800, 200]), pace([980, 20]), pace([10, 0])
    (array([1., 1.]), array([1. , 0.1]), array([1., 1.]))
    """
    sizes = np.asarray(group_sizes, dtype=np.float64)
    shares = FULL_PACE * len(sizes) * sizes / max(sizes.sum(), 1.0)
    return np.where(sizes > 0, np.minimum(shares, 1.0), 1.0)


@dataclass(frozen=True)
class RateTerm(Term):
    """A bound on how far the groups' rates of an action may differ, kept by dual ascent.

    Each group's running rates are watched; while they differ by more than `bound`, a price on the action
    rises for the groups above the middle of the highest and the lowest, and falls for those below. Where they
    differ by less, the price goes back towards 0.

    Parameters
    ----------
    bound : float
        The largest difference between groups that is accepted.
    dual_step : float or 'auto'
        How fast the price rises with the excess, per person; it falls with the learning rate, so that the
        prices settle as the policies do. 'auto' is 0.001, and more in a `fit` that meets fewer than 100,000
        people, in proportion: the price has less time to rise. While one group is small (of two: less than a
        fifth of the people), the step is smaller in proportion, and that group's `averaging` larger.
    pull : float
        An immediate price on the excess, which damps the dual's swings.
    averaging : float
        The weight of the newest person in the running rates.
    measure : {'decisions', 'probabilities'}
        'decisions' counts the most probable action, 'probabilities' the policy's own.
    min_group : int
        A group of fewer people is not held to the bound, unless fewer than two groups are that large: its
        rate is mostly chance, and must not move everybody's prices.
    threshold : float, optional
        Of two labels, the lowest probability of the second that will be decided so. None is the most probable
        label. Rates are bounded at the threshold that decisions are made with, and at no other.
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
        """Return the dual step of a fit that meets so many people; 0 is an online learner's, without end.

        Examples
        --------
        >>> Parity().step(400_000), Parity().step(20_000), Parity(dual_step=0.01).step(20_000)
        (0.001, 0.005, 0.01)
        """
        if self.dual_step != "auto":
            return float(self.dual_step)
        return 0.001 * max(1.0, 100_000 / n_steps) if n_steps else 0.001

    def mask(self, n_labels: int) -> Flags:
        """Return which rates are bounded: (labels + 1, actions); the last row is 'whatever the label'."""
        raise TypeError("RateTerm is no reward of its own: use Parity, EqualOpportunity or EqualizedOdds.")

    @classmethod
    def variants(cls) -> tuple[type[Term], ...]:
        """Return the three public terms."""
        return Parity, EqualOpportunity, EqualizedOdds

    @classmethod
    def pack(cls, reward: Reward, setting: Setting) -> Packed:
        """Return the numbers of all bounded terms, side by side."""
        bounded = [term for term in reward.terms if isinstance(term, RateTerm)]
        n_labels = setting.n_labels
        masks = [term.mask(n_labels) for term in bounded]
        if reward.get("custom") is not None:
            # A user's own term may read the running rates: keep them, bounding nothing.
            bounded, masks = [RateTerm(), *bounded], [np.zeros((n_labels + 1, n_labels), np.bool_), *masks]
        speed = pace(setting.group_sizes)
        each = [large_enough(setting.group_sizes, term.min_group) for term in bounded]
        held = np.array(each, dtype=np.bool_).reshape(len(bounded), len(speed))
        averaging = np.array([term.averaging for term in bounded], dtype=np.float64)
        steps = np.array([term.step(setting.n_steps) for term in bounded], dtype=np.float64)
        return Packed(
            mask=np.array(masks, dtype=np.bool_).reshape(len(masks), n_labels + 1, n_labels),
            bound=np.array([term.bound for term in bounded], dtype=np.float64),
            # A group without a price slows nobody's.
            dual_step=np.where(held, speed, 1.0).min(axis=1, initial=1.0) * steps,
            pull=np.array([term.pull for term in bounded], dtype=np.float64),
            averaging=np.minimum(averaging[:, None] / speed, 1.0),
            held=held,
            # One array for both: each is counted in and out at every step, which takes time.
            cut=np.array(
                [(term.threshold or 0.0) if term.measure == "decisions" else -1.0 for term in bounded]
            ),
        )

    @staticmethod
    def rewards(own: Packed, seen: Seen) -> Floats:
        """Return minus the price of each action in each person's group, of all rates that count them."""
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
    """Demographic parity: every group gets each action equally often. With two labels, the second counts.

    The parameters are those of `RateTerm`.
    """

    name: ClassVar[str] = "parity"
    needs_labels: ClassVar[bool] = False

    def mask(self, n_labels: int) -> Flags:
        """Bound the rates over everybody."""
        mask = np.zeros((n_labels + 1, n_labels), dtype=np.bool_)
        mask[-1, 1 if n_labels == 2 else 0 :] = True
        return mask


@dataclass(frozen=True)
class EqualOpportunity(RateTerm):
    """People with a label are given it equally often in every group. With two labels, the second counts.

    The parameters are those of `RateTerm`.
    """

    name: ClassVar[str] = "equal_opportunity"

    def mask(self, n_labels: int) -> Flags:
        """Bound the rate of the right action among those with that label."""
        mask = np.zeros((n_labels + 1, n_labels), dtype=np.bool_)
        for label in range(1 if n_labels == 2 else 0, n_labels):
            mask[label, label] = True
        return mask


@dataclass(frozen=True)
class EqualizedOdds(RateTerm):
    """Given the label, every group gets each action equally often.

    The parameters are those of `RateTerm`.
    """

    name: ClassVar[str] = "equalized_odds"

    def mask(self, n_labels: int) -> Flags:
        """Bound the rates among those with each label."""
        mask = np.zeros((n_labels + 1, n_labels), dtype=np.bool_)
        mask[:-1, 1 if n_labels == 2 else 0 :] = True
        return mask
