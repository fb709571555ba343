"""A budget of exploration: never exceeded, blind to groups, kept over restarts, replayed bit for bit."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, strategies
from sqlalchemy import select

from evenhand.decisions.budget import DAY, Budget
from evenhand.decisions.errors import LogUnavailableError
from evenhand.decisions.schema import decisions


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def spent(loop):
    """Return how many were explored each day, as the log has it."""
    rows = loop._log.all(select(decisions).where(decisions.c.explored))
    return Counter(row.at // DAY for row in rows)


class Nothing:
    def all(self, query):
        return [(0,)]


@given(
    batches=strategies.lists(strategies.lists(strategies.tuples(strategies.booleans(), strategies.integers(0, 2)))),
    per_day=strategies.integers(0, 5),
)  # fmt: skip
def test_it_is_never_exceeded_and_looks_only_at_those_before(batches, per_day):
    budget, used = Budget(Nothing(), per_day), Counter()
    for batch in batches:
        batch.sort(key=lambda one: one[1])
        explored = np.array([one[0] for one in batch], dtype=bool)
        times = [one[1] * DAY / 2 for one in batch]
        allowed = budget.allows(explored, times)
        written = []
        for may, differs, at in zip(allowed, explored, times, strict=True):
            assert may == (used[at // DAY] < per_day)
            used[at // DAY] += int(may and differs)
            written.append(type("Row", (), {"at": at, "explored": may and differs}))
        budget.note(written)
    assert max(used.values(), default=0) <= per_day


def test_a_day_has_its_budget_and_all_groups_the_same_floor(where, begin, crowd):
    clock = Clock()
    loop = begin(where, explore=0.45, explore_per_day=7, held_out=0.3, clock=clock)
    for batch in (1, 3, 400):
        loop.decide_many(crowd[batch : 2 * batch])
    assert spent(loop) == {0: 7}
    rows = loop._log.all(select(decisions).order_by(decisions.c.number))
    floors = np.array([row.floor for row in rows])
    last = max(at for at, row in enumerate(rows) if row.explored)
    assert (floors[: last + 1] == 0.45).all()
    assert (floors[last + 1 :] == 0.0).all()
    assert min(row.probability for row in rows[last + 1 :]) < 0.45
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


def test_without_one_everybody_has_the_floor_and_a_wrong_one_is_refused(begin, crowd, tmp_path):
    loop = begin(tmp_path / "log.db", explore=0.45)
    loop.decide_many(crowd[:300])
    rows = loop._log.all(select(decisions))
    assert {row.floor for row in rows} == {0.45}
    assert 20 < sum(row.explored for row in rows) < 120
    with pytest.raises(ValueError, match="Got explore_per_day=-1"):
        begin(tmp_path / "other.db", explore_per_day=-1)
