"""People drawn from a table: how many, who, and whether intervals hold over draws."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.auditing.drawn import LEAST, Draw, in_proportion, put_together
from evenhand.metrics.dyads import Strata, consistency_interval
from evenhand.metrics.engine import ROW, Engine
from evenhand.metrics.gower import gower_neighbours

N = 30_000
RNG = np.random.default_rng(0)
AGE = RNG.normal(40, 12, N)
MAN = RNG.random(N) < 0.8
DECISION = (AGE + 8 * MAN + RNG.normal(0, 15, N) > 50).astype(int)
TABLE = pl.DataFrame({"age": AGE, "man": MAN.astype(int), "decision": DECISION})


def draw(seed: int) -> Draw:
    engine = Engine(nw.from_native(TABLE.lazy()))
    keys = {"key0": engine.column("man"), "decision": engine.column("decision")}
    return Draw(engine, keys, engine.count(keys), ["age", "man", "decision"], seed)


@given(st.lists(st.integers(1, 10**8), min_size=1, max_size=40), st.integers(10, 5000))
def test_strata_are_large_enough_and_shares_add_up(sizes: list[int], n: int) -> None:
    people = np.array(sizes)
    stratum = put_together(people, n)
    together = np.bincount(stratum, people)
    assert together.min() > 0
    if len(together) > 1:
        assert together.min() * n >= LEAST * people.sum()
    wanted = in_proportion(together, n)
    assert wanted.sum() == n
    assert (np.abs(wanted - together * n / people.sum()) < 1).all()


def test_people_are_drawn_in_proportion_by_the_seed() -> None:
    one, again, other = (draw(seed).in_proportion(1000) for seed in (3, 3, 4))
    assert one.rows.tolist() == again.rows.tolist() != other.rows.tolist()
    assert len(set(one.rows.tolist())) == 1000
    assert one.frame["age"].tolist() == AGE[one.rows].tolist()
    shares = np.bincount(2 * MAN + DECISION) / N
    drawn = np.bincount(2 * one.frame["man"] + one.frame["decision"]) / 1000
    assert np.abs(shares - drawn).max() <= 0.001
    assert one.strata.weights.sum() == pytest.approx(N)


def test_nobody_is_drawn_more_often_than_others() -> None:
    times = np.bincount(
        np.concatenate([draw(seed).in_proportion(3000).rows for seed in range(60)]), minlength=N
    )
    # Of 60 draws of a tenth: binomial, mean 6 and variance 5.4, and no stretch of the rows has more.
    assert times.mean() == 6
    assert times.var() == pytest.approx(5.4, rel=0.05)
    assert times.reshape(100, -1).mean(axis=1).std() < 2 * np.sqrt(5.4 / 300)


def test_rows_of_several_partitions_are_drawn_apart() -> None:
    """As Spark numbers them: with the same seed, the same places in two partitions are no pairs."""
    rows = np.concatenate([np.arange(N // 2), 2**33 + np.arange(N // 2)])
    engine = Engine(nw.from_native(TABLE.with_columns(pl.Series(ROW, rows)).lazy()))
    keys = {"key0": engine.column("man")}
    drawn = Draw(engine, keys, engine.count(keys), ["age"], 3).in_proportion(3000)
    one, other = (drawn.rows[drawn.rows // 2**33 == part] % 2**33 for part in (0, 1))
    assert abs(len(one) - len(other)) < 200
    for shift in range(-8, 9):  # of 1,500 in 15,000, a tenth are also in the others by chance
        assert len(np.intersect1d(one + shift, other)) < 220


def test_the_interval_of_consistency_holds_over_draws() -> None:
    found, strata = [], 2 * MAN + DECISION
    sizes = np.bincount(strata)
    for seed in range(120):
        drawn = draw(seed).in_proportion(250)
        own, decided = strata[drawn.rows], DECISION[drawn.rows]
        near = gower_neighbours(drawn.frame[["age"]], 5, n_jobs=1).indices
        apart = decided[near] != decided[:, None]
        of = Strata(own, sizes)
        weights = {"weights": of.weights, "strata": of}
        found.append(consistency_interval(apart, near, np.arange(250), **weights))
    truth = np.mean([interval.estimate for interval in found])
    held = np.mean([interval.low <= truth <= interval.high for interval in found])
    assert held >= 0.92
    # As wide as the draws are apart: 1.5 times as wide as if people's values were independent.
    wide = np.mean([interval.high - interval.low for interval in found]) / 2 / 1.96
    assert 0.95 < wide / np.std([interval.estimate for interval in found]) < 1.3
