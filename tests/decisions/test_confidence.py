"""Intervals for all times: they are right at every look, close to another implementation's, and a few numbers."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decisions.freeze_confseq import TIMES, streams
from evenhand.decisions.confidence import (
    DiscriminationSequence,
    difference_sequence,
    flip_sequence,
    value_sequence,
)
from evenhand.decisions.sequences import ConfidenceSequence, Side

THEIRS = json.loads(Path(__file__).with_name("confseq.json").read_text())
RUNS, STEPS = 100, 300


def ever_wrong(begin, truth):
    """Return the share of runs in which the truth is outside at one look at least: one after every person."""
    wrong = 0
    for run in range(RUNS):
        sequence, people = begin(np.random.default_rng(run))
        for one in people:
            low, high = sequence(one)
            if not low <= truth <= high:
                wrong += 1
                break
    return wrong / RUNS


def coins(rng, chance=0.3):
    return (rng.random(STEPS) < chance).astype(float)


def test_a_mean_is_inside_at_every_look():
    def begin(rng):
        sequence = ConfidenceSequence(level=0.8)
        return lambda x: sequence.update([x]).interval(), coins(rng)

    assert ever_wrong(begin, 0.3) <= 0.2


def test_a_usual_interval_is_not():
    """The same test for the 80 % interval of one look: at some look, it is wrong for most."""

    def begin(rng):
        seen = []

        def look(x):
            seen.append(x)
            n, mean = len(seen), np.mean(seen)
            half = 1.2816 * np.std(seen) / np.sqrt(n) if n >= 30 else np.inf
            return mean - half, mean + half

        return look, coins(rng)

    assert ever_wrong(begin, 0.3) > 0.4


def logs(rng, chance):
    """Return whether 'yes' was done, how likely that was, and the reward: 0.7 of 'yes', 0.4 of 'no'."""
    yes = rng.random(STEPS) < chance
    rewards = (rng.random(STEPS) < np.where(yes, 0.7, 0.4)).astype(float)
    return list(zip(yes, np.where(yes, chance, 1 - chance), rewards, strict=True))


@pytest.mark.parametrize("heaviest", [1, 20])
def test_a_policys_value_is_inside_at_every_look_however_rare_its_actions_are(heaviest):
    def begin(rng):
        state = ConfidenceSequence(0.8, heaviest=heaviest)

        def look(one):
            yes, chance, reward = one
            return value_sequence([0.9 if yes else 0.1], [reward], [chance], onto=state).interval()

        return look, logs(rng, 0.05)

    assert ever_wrong(begin, 0.9 * 0.7 + 0.1 * 0.4) <= 0.2


def test_a_difference_is_inside_at_every_look():
    def begin(rng):
        state = ConfidenceSequence(0.8, -1, 1, heaviest=10)

        def look(one):
            yes, chance, reward = one
            new, now = ([0.9], [0.2]) if yes else ([0.1], [0.8])
            return difference_sequence(new, now, [reward], [chance], onto=state).interval()

        return look, logs(rng, 0.2)

    assert ever_wrong(begin, 0.7 * (0.7 - 0.4)) <= 0.2


def test_discrimination_is_inside_at_every_look():
    def begin(rng):
        sequence = DiscriminationSequence(["f", "m", "x"], level=0.8)
        s = rng.choice(["f", "m", "x"], STEPS)
        chosen = rng.random(STEPS) < np.where(s == "f", 0.2, 0.5)

        def look(one):
            return sequence.update(chosen[one : one + 10], s[one : one + 10]).interval()

        return look, range(0, STEPS, 10)

    assert ever_wrong(begin, 0.3) <= 0.2


@pytest.mark.parametrize("name", THEIRS)
def test_bounds_are_those_of_confseq(name):
    """Close, not equal: its guess before the first number is 0, not 1/2."""
    x = streams()[name]
    for n, (low, high) in zip(TIMES, THEIRS[name], strict=True):
        if high is None:
            side = Side()
            side.follow(x[:n], 0, 0.025)
            assert side.bound(0.025) == pytest.approx(low, abs=0.02)
        else:
            found = ConfidenceSequence().update(x[:n]).interval()
            assert found == pytest.approx((low, high), abs=0.05 * (high - low))


def test_it_is_not_much_wider_than_the_interval_of_one_look():
    x = streams()["coins"]
    low, high = ConfidenceSequence().update(x).interval()
    assert high - low < 2.5 * 2 * 1.96 * x.std() / np.sqrt(len(x))


def test_a_small_difference_is_found_where_two_values_overlap():
    rng = np.random.default_rng(0)
    n = 5000
    yes = rng.random(n) < 0.5
    rewards = (rng.random(n) < np.where(yes, 0.6, 0.5)).astype(float)
    even, more = np.full(n, 0.5), np.where(yes, 0.9, 0.1)
    separate = [value_sequence(policy, rewards, even).interval() for policy in (even, more)]
    assert separate[1][0] < separate[0][1]
    low, high = difference_sequence(more, even, rewards, even).interval()
    assert 0 < low < 0.04 < high < 0.1


values = st.lists(st.floats(0, 1), min_size=1, max_size=60)


@given(values, st.integers(0, 60))
@settings(deadline=None)
def test_pieces_and_plain_numbers_change_nothing(x, cut):
    whole = ConfidenceSequence(heaviest=3).update(x)
    first = ConfidenceSequence(heaviest=3).update(x[:cut])
    kept = json.loads(json.dumps(first.as_numbers()))
    again = ConfidenceSequence.of_numbers(kept).update(x[cut:])
    assert again.n == whole.n == len(x)
    assert again.interval() == pytest.approx(whole.interval(), abs=1e-9)


@given(values)
@settings(deadline=None)
def test_turning_values_round_turns_the_interval_round(x):
    low, high = ConfidenceSequence().update(x).interval()
    turned = ConfidenceSequence(low=-1, high=0).update(-np.asarray(x)).interval()
    assert turned == pytest.approx((-high, -low), abs=1e-12)
    assert 0 <= low <= high <= 1


@given(values, st.floats(0.5, 0.98))
@settings(deadline=None)
def test_weights_of_one_are_none(x, level):
    plain, weighted = ConfidenceSequence(level), ConfidenceSequence(level)
    assert plain.update(x).interval() == weighted.update(x, np.ones(len(x))).interval()


def test_discrimination_is_kept_as_numbers_and_names_groups_never_announced():
    rng = np.random.default_rng(1)
    s = rng.choice(["f", "m"], 500)
    chosen = rng.random(500)
    whole = DiscriminationSequence(["f", "m"]).update(chosen, s)
    half = DiscriminationSequence(["f", "m"]).update(chosen[:250], s[:250])
    kept = json.loads(json.dumps(half.as_numbers()))
    again = DiscriminationSequence.of_numbers(kept).update(chosen[250:], s[250:])
    assert again.interval() == pytest.approx(whole.interval())
    with pytest.raises(ValueError, match=r"Got group 'x', but expected one of \['f', 'm'\]"):
        whole.update([1.0], ["x"])
    assert DiscriminationSequence(["all"]).update([1.0], ["all"]).interval() == (0, 0)
    assert DiscriminationSequence(["f", "m"]).interval() == (0, 1)


def test_what_can_have_no_interval_is_refused():
    with pytest.raises(ValueError, match="Got the value 1.5, but expected values from 0 to 1"):
        ConfidenceSequence().update([0.5, 1.5])
    with pytest.raises(ValueError, match="Got level=1"):
        ConfidenceSequence(level=1)
    with pytest.raises(ValueError, match="Got high=0"):
        ConfidenceSequence(low=1, high=0)
    with pytest.raises(ValueError, match="Got weights with the value -1"):
        flip_sequence([0, 1], [1, -1])
    with pytest.raises(ValueError, match=r"Got a propensity of 0\.0"):
        value_sequence([0.5], [1.0], [0.0])
    assert ConfidenceSequence(low=-2, high=3).interval() == (-2, 3)
    assert ConfidenceSequence().update([]).interval() == (0, 1)
