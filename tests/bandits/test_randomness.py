import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.bandits.randomness import scramble, shuffled, uniform

MASK = (1 << 64) - 1


def scramble_by_hand(seed: int, counter: int) -> int:
    x = (seed + (counter + 1) * 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


@settings(max_examples=200)
@given(st.integers(0, 2**63 - 1), st.integers(0, 2**62))
def test_scramble_equals_whole_number_arithmetic(seed, counter):
    assert int(scramble(np.uint64(seed), counter)) == scramble_by_hand(seed, counter)


@settings(max_examples=60)
@given(st.integers(1, 500), st.integers(0, 2**62))
def test_shuffled_is_a_permutation(n, key):
    assert sorted(shuffled(i, n, np.uint64(key)) for i in range(n)) == list(range(n))


def test_shuffles_of_different_keys_differ_and_look_random():
    n = 4096
    positions = np.array([[shuffled(i, n, np.uint64(key)) for i in range(n)] for key in range(8)])
    assert all((positions[0] != other).mean() > 0.99 for other in positions[1:])
    for row in positions:
        assert abs(np.corrcoef(np.arange(n), row)[0, 1]) < 0.08
        assert abs(np.corrcoef(row[:-1], row[1:])[0, 1]) < 0.08


def test_uniform_is_uniform_and_streams_are_independent():
    draws = np.array([[uniform(np.uint64(5), step, stream) for step in range(20_000)] for stream in range(3)])
    assert draws.min() >= 0
    assert draws.max() < 1
    counts = np.array([np.histogram(row, bins=20, range=(0, 1))[0] for row in draws])
    assert ((counts - 1000) ** 2 / 1000).sum(1).max() < 50  # chi-square with 19 degrees of freedom
    assert np.abs(np.corrcoef(draws) - np.eye(3)).max() < 0.03
