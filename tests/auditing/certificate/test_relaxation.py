"""Bounds within boxes: any mix of lines stays above everybody in the box."""

import numpy as np
import pytest

from evenhand.auditing.certificate.relaxation import (
    Boxes,
    Mix,
    TwoPolicies,
    apart,
    bound,
    column_range,
    units_of,
)
from evenhand.auditing.certificate.tree import Tree, any_people


def two_policies(rng, hidden=3, similar=0.1):
    """Two columns of numbers and one of three categories; the second policy is like the first."""
    first = np.array([0, 1, 2, 5])
    one, noise = rng.normal(size=(2, 5, hidden))
    amount = np.array([True, True, False, False, False])[:, None]
    both = np.concatenate([one, one + similar * noise], axis=1)
    both = np.concatenate([both, both[:, :hidden] - both[:, hidden:]], axis=1)
    start = rng.normal(size=2 * hidden)
    start = np.concatenate([start, start[:hidden] - start[hidden:]])
    weights = rng.normal(size=hidden)
    return TwoPolicies(
        first, np.where(amount, 0, both), np.where(amount, both, 0), start,
        np.concatenate([weights, weights + similar * rng.normal(size=hidden)]), rng.normal(size=2),
    )  # fmt: skip


LOW, HIGH, WHOLE = np.array([-1.0, 0, 0, 0, 0]), np.array([2.0, 3, 0, 0, 0]), np.zeros(5, dtype=bool)


@pytest.mark.parametrize("seed", range(20))
def test_any_mix_of_lines_is_above_everybody(seed):
    rng = np.random.default_rng(seed)
    two = two_policies(rng, similar=float(rng.choice([0.01, 0.3, 2])))
    box: Boxes = Tree(two, LOW, HIGH, WHOLE).boxes
    units = units_of(two, *any_people(two.first, LOW, HIGH, WHOLE, 500, rng))
    logits = two.logits(units)
    difference, middle = logits[:, 0] - logits[:, 1], logits.mean(1)
    assert box.gap[0] >= apart(middle, difference).max()
    assert box.middle[0, 0] <= middle.min() <= middle.max() <= box.middle[0, 1]
    assert (box.units[:, 0, :6] <= units.min(0)).all()
    assert (units.max(0) <= box.units[:, 1, :6]).all()
    box.middle[:] = middle.min(), middle.max()
    box.units[0, 0, :6], box.units[0, 1, :6] = units.min(0), units.max(0)  # as narrow as these people allow
    apart_by = units[:, :3] - units[:, 3:]
    box.units[0, 0, 6:], box.units[0, 1, 6:] = apart_by.min(0), apart_by.max(0)
    for number in range(40):
        box.price[:], box.under[:] = rng.normal(), rng.random(box.under.shape)
        box.pairs[:] = (rng.normal(size=3), two.weights[:3], two.weights[3:], 0 * two.weights[:3])[number % 4]
        constant, weights = Mix(two, box).weights()
        assert (constant + units @ weights[0] >= difference - 1e-9).all()


@pytest.mark.parametrize("seed", range(5))
def test_halves_hold_the_whole_and_only_what_is_in_them(seed):
    rng = np.random.default_rng(seed)
    two = two_policies(rng)
    tree = Tree(two, LOW, HIGH, WHOLE)
    chosen, numbers = any_people(two.first, LOW, HIGH, WHOLE, 300, rng)
    logits = two.logits(units_of(two, chosen, numbers))
    gaps, middle = apart(logits.mean(1), logits[:, 0] - logits[:, 1]), logits.mean(1)
    for _ in range(3):
        tree.grow(-2.0)  # drops nothing, not even boxes that hold nobody
    boxes = tree.boxes
    at = two.amounts
    inside = (boxes.allowed[None] | ~chosen[:, None]).all(2)
    inside &= (
        (boxes.low[None, :, at] <= numbers[:, None, at]) & (numbers[:, None, at] <= boxes.high[None, :, at])
    ).all(2)
    inside &= (boxes.middle[None, :, 0] <= middle[:, None]) & (middle[:, None] <= boxes.middle[None, :, 1])
    assert inside.any(1).all()
    assert (np.where(inside, gaps[:, None], -1).max(0) <= boxes.gap + 1e-12).all()
    fresh = np.repeat(np.repeat(two.start[None, None], 2, axis=1), len(boxes), axis=0)
    for column in range(3):
        fresh = fresh + np.stack(column_range(two, column, boxes), axis=1)
    np.testing.assert_allclose(boxes.units, fresh, atol=1e-9)


def test_only_those_decided_differently_count():
    rng = np.random.default_rng(3)
    two = two_policies(rng, similar=0.3)
    tree = Tree(two, LOW, HIGH, WHOLE, 0.5)
    units = units_of(two, *any_people(two.first, LOW, HIGH, WHOLE, 2000, rng))
    logits = two.logits(units)
    flips = (logits[:, 0] >= 0.5) & (logits[:, 1] < 0.5)
    assert flips.any()
    assert tree.bound >= apart(logits.mean(1), logits[:, 0] - logits[:, 1])[flips].max()
    whole = Tree(two, LOW, HIGH, WHOLE)
    bound(two, whole.boxes, target=0.0, boundary=100.0, steps=3)  # nobody comes near
    assert whole.boxes.gap[0] == -1
