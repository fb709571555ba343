"""A budget of exploration: never exceeded, shared, spent where it teaches, alike in all groups, replayed."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, strategies
from scipy import sparse
from sqlalchemy import select

from evenhand.decisions.budget import DAY, Budget
from evenhand.decisions.deciding import ask
from evenhand.decisions.errors import ConflictError, LogUnavailableError
from evenhand.decisions.exploration import Novelty, draw, with_floor
from evenhand.decisions.policy import Policy
from evenhand.decisions.schema import decisions
from evenhand.decisions.spending import OWED, WIDEST, Spending


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def rows_of(loop):
    return loop._log.all(select(decisions).order_by(decisions.c.number))


def spent(loop):
    """Return how many were explored each day, as the log has it."""
    return Counter(row.at // DAY for row in rows_of(loop) if row.explored)


def a_budget(left):
    """Return a budget with so much left of each day, without a log."""
    budget = Budget.__new__(Budget)
    budget._left, budget._spending = left, Spending(0.2, np.array([True, False]), 2)
    return budget


@given(batch=strategies.lists(strategies.integers(0, 2)), left=strategies.lists(strategies.integers(-1, 4), min_size=3, max_size=3),
       seed=strategies.integers(0, 999))  # fmt: skip
def test_it_is_never_exceeded_and_looks_only_at_those_before(batch, left, seed):
    rng, n = np.random.default_rng(seed), len(batch)
    features, numbers, chance = rng.normal(size=(n, 2)), rng.random(n), rng.random(n)
    said, groups = np.stack([chance, 1 - chance], 1), rng.choice(["f", "m"], n).tolist()

    def floors(numbers, upto=n):
        people = [day * DAY for day in batch[:upto]], groups[:upto]
        asked = a_budget(dict(enumerate(left)))
        return asked.floors(people, features[:upto], said[:upto], numbers[:upto])

    found, used = floors(numbers), Counter()
    differs = draw(with_floor(said, found), numbers) != draw(said, numbers)
    for day, floor, other in zip(batch, found, differs, strict=True):
        assert (floor > 0) == (used[day] < left[day])
        used[day] += int(other)
    assert all(used[day] <= max(left[day], 0) for day in range(3))
    others = numbers.copy()
    for at in range(n):  # neither one's own draw nor whoever comes later changes a floor
        others[at:] = rng.random(n - at)
        np.testing.assert_array_equal(floors(others)[: at + 1], found[: at + 1])
        others[at:] = numbers[at:]
    np.testing.assert_array_equal(floors(numbers, n // 2), found[: n // 2])


def test_the_probabilities_are_those_with_which_actions_are_drawn():
    rng, times, n = np.random.default_rng(0), 3000, 6
    features, chance = rng.normal(size=(n, 2)), rng.uniform(0.1, 0.9, n)
    said, weights = np.stack([chance, 1 - chance], 1), np.zeros((n, 2))
    people = [0.0] * n, ["f", "m"] * (n // 2)
    for _ in range(times):
        numbers = rng.random(n)
        after = with_floor(said, a_budget({0.0: 1}).floors(people, features, said, numbers))
        taken = draw(after, numbers)
        weights[np.arange(n), taken] += 1 / after[np.arange(n), taken]
    np.testing.assert_allclose(weights / times, 1, atol=0.15)  # what inverse propensities are to add up to


@given(
    groups=strategies.lists(strategies.sampled_from("fmx"), min_size=1, max_size=200),
    scale=strategies.sampled_from([0.0, 1e-3, 1.0, 1e3]), explore=strategies.sampled_from([0.02, 0.3, 0.5]),
    seed=strategies.integers(0, 999),
)  # fmt: skip
def test_every_group_has_the_same_floor_on_average(groups, scale, explore, seed):
    rng, n = np.random.default_rng(seed), len(groups)
    features = rng.standard_cauchy((n, 3)) * np.where(np.array(groups) == "f", scale, 1.0)[:, None]
    spending, sums, people = Spending(explore, np.array([True, False]), 3), Counter(), Counter()
    said = rng.dirichlet([0.3, 0.3], n)
    for at in np.array_split(np.arange(n), 5):
        own = [groups[one] for one in at]
        floors = spending.floors(features[at], said[at], own)
        assert (floors >= explore / WIDEST - 1e-12).all()
        assert (floors <= min(explore * WIDEST, 0.5)).all()
        spending.give(own, floors)
        spending.learn(features[at], rng.integers(2, size=len(at)))
        for group, floor in zip(own, floors, strict=True):
            people[group] += 1
            sums[group] += floor
            assert abs(sums[group] - explore * people[group]) <= OWED * explore * (1 + 1e-9)


@pytest.mark.parametrize("actions", [2, 3, 5, 7])
def test_a_group_that_is_as_far_behind_as_may_be_has_floors_that_a_policy_can_have(actions):
    rng, explore, said = np.random.default_rng(0), 1 / actions, np.full((1, actions), 1 / actions)
    spending = Spending(explore, np.arange(actions) == 0, 1)
    for size in np.geomspace(1, 1e-6, 300):  # each teaches less than is usual: the group falls behind
        floors = spending.floors(rng.uniform(0.5, 1, (1, 1)) * size, said, ["f"])
        assert explore / WIDEST <= floors[0] <= explore
        spending.give(["f"], floors)
    assert spending._owed["f"] == pytest.approx(OWED * explore)


def test_who_comes_when_a_day_is_used_up_owes_nothing_on_another_day():
    n, explore = 400, 0.2
    days, groups = [0.0] * (n // 2) + [DAY] * (n // 2), ["f"] * n
    # After the first, the day is used up; its others would fall behind, and the next day's catch up with them.
    sizes = np.concatenate([np.geomspace(1, 1e-3, n // 2), np.geomspace(1e-3, 1, n // 2)])
    features, said = np.stack([sizes, sizes], 1), np.tile([0.0, 1.0], (n, 1))
    numbers = np.where(np.arange(n) == 0, 0.0, 0.99)
    found = a_budget({0.0: 1, 1.0: 1}).floors((days, groups), features, said, numbers)
    assert np.flatnonzero(found).tolist() == [0, *range(n // 2, n)]
    given = found[found > 0]
    assert abs(np.cumsum(given - explore)).max() <= OWED * explore * (1 + 1e-9)


@pytest.mark.parametrize("width", [3, 400])
def test_many_features_gaps_and_sparse_ones_have_floors_too(width):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, width)) * (rng.random((50, width)) < 0.2)
    said, groups = np.full((50, 2), 0.5), ["f"] * 50
    dense, thin = (Spending(0.1, np.array([True, True]), width) for _ in range(2))
    for spending, features in ((dense, X), (thin, sparse.csr_array(X))):
        spending.learn(features, [0, 1] * 25)
    found = dense.floors(X, said, groups)
    np.testing.assert_allclose(thin.floors(sparse.csr_array(X), said, groups), found)
    assert np.ptp(found) > 0.05
    X[0] = np.nan
    assert np.isfinite(dense.floors(X, said, groups)).all()


def test_it_is_spent_where_an_outcome_teaches_most(begin, crowd, tmp_path, monkeypatch):
    people, says = crowd[:2500], Policy.probabilities
    monkeypatch.setattr(Policy, "probabilities", lambda self, features: says(self, features).round())  # sure
    features = {id: context for id, context, _ in people}

    def explored(name):
        """Return how novel those are who were granted by exploring, among all others who were granted."""
        loop = begin(tmp_path / name, explore=0.1, explore_per_day=60, reveals={"grant"}, clock=lambda: 0.0)
        for at in range(0, len(people), 50):
            loop.decide_many(people[at : at + 50])
        granted = [row for row in rows_of(loop) if row.action == "grant"]
        novelty = Novelty(3).learn([features[row.id] for row in granted if not row.explored])
        asked = [features[row.id] for row in granted if row.explored]
        assert spent(loop) == {0: 60}
        return novelty.of(asked).sum(), loop

    by_novelty, loop = explored("novelty")
    same = np.array([row.floor for row in rows_of(loop) if row.floor])
    assert np.ptp(same) > 0.1
    assert loop.replay().same
    monkeypatch.setattr(Spending, "floors", lambda self, features, said, groups: np.full(len(said), 0.1))
    evenly, _ = explored("evenly")
    assert by_novelty > 1.5 * evenly


def test_a_group_of_people_unlike_all_others_is_explored_as_much_as_another(where, begin):
    rng, explore = np.random.default_rng(0), 0.1
    loop = begin(where, explore=explore, explore_per_day=10_000, reveals={"grant"}, clock=lambda: 0.0)
    for size in (1, 7, 300, 1500):
        groups = rng.choice(["f", "m"], size, p=[0.2, 0.8])
        # Few of the group have most of what there is to learn: without a ledger, the others pay for them.
        X = rng.normal(size=(size, 3)) * np.where(groups == "f", rng.standard_cauchy(size) ** 2, 0.1)[:, None]
        loop.decide_many((f"{size} {at}", X[at], str(groups[at])) for at in range(size))
        floors = {group: [row.floor for row in rows_of(loop) if row.group == group] for group in "fm"}
        for own in floors.values():
            assert abs(sum(own) - explore * len(own)) <= OWED * explore * (1 + 1e-9)
    for own in floors.values():
        assert np.mean(own) == pytest.approx(explore, rel=0.1)
        assert np.ptp(own) > explore  # within a group, who teaches more is explored more


def test_a_day_has_its_budget_and_every_group_its_part(where, begin, crowd):
    clock = Clock()
    loop = begin(where, explore=0.45, explore_per_day=7, held_out=0.3, clock=clock)
    for batch in (1, 3, 400):
        loop.decide_many(crowd[batch : 2 * batch])
    assert spent(loop) == {0: 7}
    rows = rows_of(loop)
    floors = np.array([row.floor for row in rows])
    last = max(at for at, row in enumerate(rows) if row.explored)
    assert (floors[: last + 1] >= 0.45 / WIDEST).all()
    assert (floors[last + 1 :] == 0.0).all()
    assert min(row.probability for row in rows[last + 1 :]) < 0.45 / WIDEST
    assert loop.decide_many(crowd[3:6]) == loop.decide_many(crowd[3:6])
    clock.now += DAY
    loop.decide_many(crowd[1000:1400])
    clock.now -= DAY / 2  # a clock that goes back to a day that is used up
    loop.decide_many(crowd[1400:1500])
    assert spent(loop) == {0: 7, 1: 7}
    loop.outcome_many([{"id": row.id, "reward": 1.0} for row in rows])
    loop.learn()
    assert loop.candidate().outcomes > 100
    assert loop.promote(force=True).promoted
    loop.decide_many(crowd[1500:1600])
    found = loop.replay()
    assert (found.same, found.policies, found.decisions) == (True, 2, 1004)


def test_all_who_share_a_log_share_its_budget(where, begin, crowd):
    options = {"explore": 0.45, "explore_per_day": 30, "clock": Clock()}
    one, other = (begin(where, **options) for _ in range(2))
    batches = [crowd[at : at + 10] for at in range(0, 400, 10)]
    one.decide_many(crowd[400:450])
    assert 0 < spent(one)[0] < 30
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(loop.decide_many, batch) for batch in batches for loop in (one, other)]
        for answer in asked:
            answer.result()
    assert spent(one) == {0: 30}
    assert other.replay().same


def test_whoever_is_known_or_refused_takes_no_part_in_it(begin, crowd, tmp_path):
    options = {"explore": 0.3, "explore_per_day": 16, "clock": Clock()}
    alone, among = (begin(tmp_path / name, **options) for name in ("alone", "among"))
    known, new = crowd[:150], crowd[150:300]
    for loop in (alone, among):
        loop.decide_many(known)
    alone.decide_many(new)
    assert spent(alone) == {0: 16}
    clash = (known[0][0], [9.0, 9.0, 9.0], "f")  # its job is refused, and everybody else in it
    jobs = [[*crowd[300:350], clash], [*known[:75], *new[:75], *new[:10]], [*known[75:], *new[70:]]]
    found = among._decide([ask(among.policy, *zip(*job, strict=True), at=0.0) for job in jobs])
    assert rows_of(among) == rows_of(alone)
    assert isinstance(found[0], ConflictError)
    wrote = {row.id: row.floor for row in rows_of(among)}
    assert [(row.id, row.floor) for rows in found[1:] for row in rows] == [
        (id, wrote[id]) for job in jobs[1:] for id, _, _ in job
    ]


def test_asking_again_about_those_who_are_known_leaves_every_group_its_part(begin, crowd, tmp_path):
    loop, explore = begin(tmp_path / "log.db", explore=0.45, explore_per_day=10_000, clock=Clock()), 0.45
    people = [(id, context, "f") for id, context, _ in crowd]
    loop.decide_many(people[:50])
    rest = [(id, [0.01 * value for value in context], "f") for id, context, _ in crowd[50:450]]
    for at in range(0, 400, 10):  # who teaches little comes with those who have been told already
        loop.decide_many([*people[:50], *rest[at : at + 10]])
    ahead = np.cumsum([row.floor - explore for row in rows_of(loop)])
    assert abs(ahead).max() <= OWED * explore * (1 + 1e-9)
    assert loop.replay().same


def test_a_restart_or_a_failed_write_renews_nothing(begin, crowd, tmp_path, monkeypatch):
    clock = Clock()
    for at in range(3):
        loop = begin(tmp_path / "log.db", explore=0.45, explore_per_day=4, clock=clock)
        loop.decide_many(crowd[at * 100 : at * 100 + 100])
    assert spent(loop) == {0: 4}
    clock.now += DAY
    loop.decide_many(crowd[300:310])

    write = loop._log.write

    @contextmanager
    def lost():
        with write() as connection:
            yield connection
        raise LogUnavailableError("the answer was lost after it was written")

    monkeypatch.setattr(loop._log, "write", lost)
    with pytest.raises(LogUnavailableError):
        loop.decide_many(crowd[400:420])
    monkeypatch.undo()
    before = spent(loop)[1]
    loop.decide_many(crowd[420:500])
    assert before > 1
    assert spent(loop)[1] == 4


def test_a_log_that_counted_nothing_yet_is_counted(begin, crowd, tmp_path):
    loop = begin(tmp_path / "log.db", explore=0.45, explore_per_day=50, clock=lambda: 0.0)
    loop.decide_many(crowd[:30])
    with loop._log.write() as connection:
        connection.exec_driver_sql("DELETE FROM settings WHERE name LIKE 'explored%'")
    before = spent(loop)[0]
    loop.decide_many(crowd[30:600])
    assert 0 < before < 50
    assert spent(loop) == {0: 50}


def test_without_one_everybody_has_the_floor_and_a_wrong_one_is_refused(begin, crowd, tmp_path):
    loop = begin(tmp_path / "log.db", explore=0.45)
    loop.decide_many(crowd[:300])
    rows = rows_of(loop)
    assert {row.floor for row in rows} == {0.45}
    assert 20 < sum(row.explored for row in rows) < 120
    with pytest.raises(ValueError, match="Got explore_per_day=-1"):
        begin(tmp_path / "other.db", explore_per_day=-1)


@pytest.mark.parametrize("size", [1e-300, 1e15, 1e30, 1e300])
def test_people_of_any_size_can_be_explored(size):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(400, 1)), 2, axis=1) * size  # two columns that say the same
    spending, said, groups = Spending(0.1, np.array([True, False]), 2), np.full((400, 2), 0.5), ["f"] * 400
    for _ in range(3):
        floors = spending.floors(X, said, groups)
        assert ((floors >= 0.1 / WIDEST) & (floors <= 0.1 * WIDEST)).all()
        spending.give(groups, floors)
        spending.learn(X, [0, 1] * 200)
