"""Bounds within boxes: whatever the prices and lines are, nobody in the box is beyond the bound."""

import numpy as np
import pytest
from scipy.special import expit

from evenhand.auditing.certificate.climbing import any_people
from evenhand.auditing.certificate.consensus import bound_boxes
from evenhand.auditing.certificate.policies import Aim, gap_beyond, two_policies
from evenhand.auditing.certificate.tree import Tree

FIRST = np.array([0, 1, 2, 5])  # two columns of numbers and one of three categories
LOW, HIGH = np.array([-1.0, 0, 0, 0, 0]), np.array([2.0, 3, 0, 0, 0])
WHOLE = np.zeros(5, dtype=bool)


def policies(rng, hidden=3, similar=0.1):
    """The second policy is like the first; where it is not, units of a pair may pull the same way."""
    one, noise = rng.normal(size=(2, 5, hidden))
    amount = (HIGH > LOW)[:, None]
    both = np.concatenate([one, one + similar * noise], axis=1)
    weights = rng.normal(size=hidden)
    weights = np.concatenate([weights, weights + similar * rng.normal(size=hidden)])
    return two_policies(
        FIRST, HIGH > LOW, np.where(amount, 0, both), np.where(amount, both, 0), rng.normal(size=2 * hidden),
        weights, rng.normal(size=2),
    )  # fmt: skip


def tree_of(two, boundary=None):
    return Tree(two, FIRST, LOW, HIGH, WHOLE, boundary)


def needed(middle, gap):
    """The difference of logits from which on probabilities are `gap` apart, by bisection."""
    low, high = np.zeros_like(middle), np.full_like(middle, 2000.0)
    for _ in range(80):
        half = (low + high) / 2
        less = expit(middle + half / 2) - expit(middle - half / 2) < gap
        low, high = np.where(less, half, low), np.where(less, high, half)
    return low


def within(two, boxes, chosen, numbers):
    """Return who is in which box: (people, boxes)."""
    units = two.units(chosen, numbers)
    inside = np.ones((len(chosen), len(boxes.gap)), dtype=bool)
    for column in range(3):
        values = np.arange(two.first[column], two.first[column + 1])
        for option in np.unique(two.option[values]):
            at = values[two.option[values] == option]
            low = np.where(boxes.allowed[:, at], boxes.ends[:, at], np.inf).min(1)
            high = np.where(boxes.allowed[:, at], boxes.ends[:, at], -np.inf).max(1)
            number = np.where(HIGH > LOW, numbers, 0)[:, option][:, None]
            fits = (low <= number) & (number <= high)
            inside &= fits | ~chosen[:, option][:, None]
    active = units[:, two.plus][:, None] >= 0
    return inside & np.where(active, boxes.states[..., 1], boxes.states[..., 0]).all(2)


def paid(two, box, chosen, numbers):
    """Return what people's values cost; between the ends of a range, costs are on a straight line."""
    costs = np.zeros(len(chosen))
    for option in range(len(LOW)):
        at = np.flatnonzero(two.option == option)
        ends, ends_cost = box.ends[0, at], box.cost[0, at]
        costs += chosen[:, option] * np.interp(numbers[:, option], ends, ends_cost)
    return costs


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("boundary", [None, 0.4])
def test_whatever_the_prices_nobody_is_beyond_the_bound(seed, boundary):
    rng = np.random.default_rng(seed)
    two = policies(rng, similar=float(rng.choice([0.01, 0.3, 2])))
    box = tree_of(two).boxes
    chosen, numbers = any_people(FIRST, LOW, HIGH, WHOLE, 500, rng)
    u, v = two.logits(chosen, numbers).T
    for gap in (0.01, 0.3):
        for _ in range(10):
            box.prices[:] = rng.normal(size=box.prices.shape)
            box.lines[:, :, :, 0] = rng.exponential(size=box.lines.shape[:3])
            box.lines[:, :, :, 1] = rng.random(box.lines.shape[:3])
            box.lines[:, :, :, 2:] = rng.choice([0, 0.3])
            box.tilt[:] = rng.normal(), 0 if boundary is None else rng.normal(), rng.exponential()
            box.cost[:] = rng.normal(size=box.cost.shape)
            box.states[:] = True
            pair = rng.integers(len(two.plus))
            box.states[0, pair, rng.integers(2)] = False
            bound_boxes(
                two, Aim(gap, np.nan if boundary is None else boundary), box, rng.integers(1, 4), 0, 1
            )
            counts = within(two, box, chosen, numbers)[:, 0] & (paid(two, box, chosen, numbers) <= 0)
            if boundary is not None:
                counts &= (u >= boundary) & (v < boundary)
            beyond = u - v - needed((u + v) / 2, gap)
            assert (beyond[counts] <= box.excess[0] + 1e-6).all()


def test_logits_beyond_the_tangent_are_at_most_such_a_gap():
    middle = np.linspace(-6, 6, 121)
    for gap in (0.001, 0.2, 0.9):
        for more in (0.0, 0.1, 3.0):
            difference = needed(middle, gap) + more
            gaps = expit(middle + difference / 2) - expit(middle - difference / 2)
            assert gaps.max() == pytest.approx(gap_beyond(gap, np.array([more]))[0])


def test_halves_hold_the_whole_and_only_what_is_in_them():
    units_split = False
    for seed in range(5):
        rng = np.random.default_rng(seed)
        two = policies(rng, similar=0.3)
        tree = tree_of(two)
        chosen, numbers = any_people(FIRST, LOW, HIGH, WHOLE, 300, rng)
        u, v = two.logits(chosen, numbers).T
        for _ in range(5):
            tree.grow(-2.0)  # drops nothing
        inside = within(two, tree.boxes, chosen, numbers)
        assert inside.any(1).all()
        assert not inside.all(1).any()
        gaps = (expit(u) - expit(v))[:, None]
        assert (np.where(inside, gaps, -1).max(0) <= tree.boxes.gap + 1e-6).all()
        units_split |= not tree.boxes.states.all()
    assert units_split


def test_only_those_decided_differently_count():
    some = False
    for seed in range(4):
        rng = np.random.default_rng(seed)
        two = policies(rng, similar=1.0)
        u, v = two.logits(*any_people(FIRST, LOW, HIGH, WHOLE, 2000, rng)).T
        middle = float(np.median((u + v) / 2))
        flips = (u >= middle) & (v < middle)
        some |= flips.any()
        assert tree_of(two, middle).bound >= (expit(u) - expit(v))[flips].max(initial=-1)
        nobody = tree_of(two, 100.0)  # nobody comes near
        while nobody.bound >= 0:
            nobody.grow(0.001)
        assert nobody.dropped == -1
    assert some
