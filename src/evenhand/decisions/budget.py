"""The budget of exploration: how many decisions per day may differ from the policy's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, insert, select, update

from evenhand.arrays import Floats
from evenhand.decisions.exploration import explored, with_floor
from evenhand.decisions.log import Log
from evenhand.decisions.policy import Policy
from evenhand.decisions.rules import Rules
from evenhand.decisions.schema import decisions, settings
from evenhand.decisions.spending import Spending

DAY = 86_400.0  # seconds; days begin at midnight, UTC
_LAST = 20_000  # decisions of a log from which the novelty of people is known


class Budget:
    """The exploration left today, over all processes that share a log, and whom it is spent on.

    A person's floor does not depend on their own draw: otherwise the probabilities in the log would be wrong.
    It depends on their context and group, and on the people before them, who may have used up the budget.

    Parameters
    ----------
    log : Log
        The log, which has the people decided about and explored before.
    rules : Rules
        The rules, which have the budget per day.
    policy : Policy
        The policy that reads contexts.
    """

    def __init__(self, log: Log, rules: Rules, policy: Policy) -> None:
        self._per_day = rules.explore_per_day or 0
        self.limited = rules.explore_per_day is not None and rules.explore > 0
        self._left: dict[float, int] = {}
        if self.limited:
            self._place = {action: at for at, action in enumerate(policy.actions)}
            shows = np.array([rules.shows(action) for action in policy.actions])
            self._spending = Spending(rules.explore, shows, policy.n_features)
            columns = (decisions.c.context, decisions.c.group, decisions.c.action)
            last = log.all(select(*columns).order_by(decisions.c.number.desc()).limit(_LAST))
            if last:
                contexts, groups, actions = zip(*last, strict=True)
                features = policy.read(contexts, groups).features
                self._spending.learn(features, self._codes(actions))

    def open(self, connection: Connection, times: Sequence[float]) -> None:
        """Look up what is left, and lock it: nobody else spends any of it until the transaction ends."""
        self._left = {}
        for day in sorted({at // DAY for at in times}):  # sorted, or two processes could deadlock
            kept = select(settings.c.value).where(settings.c.name == _name(day)).with_for_update()
            spent = connection.scalar(kept)
            if spent is None:
                today = decisions.c.at >= day * DAY, decisions.c.at < (day + 1) * DAY
                spent = connection.scalar(select(func.count()).where(decisions.c.explored, *today)) or 0
                connection.execute(insert(settings).values(name=_name(day), value=str(spent)))
            self._left[day] = self._per_day - int(spent)

    def floors(self, people: Sequence[Any], features: Any, said: Floats, numbers: Floats) -> Floats:
        """Return floors for people (times, groups), given their own probabilities and their draws.

        Each floor assumes that everybody before gets theirs. If some of these people are not written, such
        as those already in the log, ask again without them.
        """
        times, groups = people
        self._features, self._draft = features, self._spending.draft()
        left, found = self._left.copy(), np.zeros(len(said))
        for day, one in _stretches(times):
            if left[day] <= 0:  # they get none, and people on another day owe nothing for them
                continue
            floors = self._draft.floors(features[one], said[one], groups[one])
            differs = explored(with_floor(said[one], 0.0), with_floor(said[one], floors), numbers[one])
            floors *= differs.cumsum() - differs < left[day]
            left[day] -= int(differs[floors > 0].sum())
            self._draft.give(groups[one], floors)
            found[one] = floors
        return found

    def spend(self, connection: Connection, written: Sequence[Any]) -> None:
        """Count the explored among the people whose floors were asked for last, as they are written."""
        for day, times in Counter(row.at // DAY for row in written if row.explored).items():
            spent = self._per_day - self._left[day] + times
            named = settings.c.name == _name(day)
            connection.execute(update(settings).where(named).values(value=str(spent)))

    def note(self, written: Sequence[Any]) -> None:
        """Learn about the people whose floors were asked for last, once they are on disk."""
        self._spending = self._draft
        self._spending.learn(self._features, self._codes([row.action for row in written]))

    def _codes(self, actions: Sequence[str]) -> list[int]:
        return [self._place[action] for action in actions]


def _stretches(times: Sequence[float]) -> Iterator[tuple[float, slice]]:
    """Yield each day with the slice of consecutive people who came on it."""
    start = 0
    for day, own in groupby(at // DAY for at in times):
        end = start + sum(1 for _ in own)
        yield day, slice(start, end)
        start = end


def _name(day: float) -> str:
    return f"explored on {day!r}"
