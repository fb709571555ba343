"""How many decisions a day may differ from the policy's own, for the sake of learning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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
_NOTED = ("action", "group", "floor")
_LAST = 20_000  # decisions of a log from which it is known who would teach little


class Budget:
    """What is left to explore today, in all processes that share a log together, and on whom it is spent.

    Nobody's floor depends on their own draw: otherwise the probabilities in the log would be wrong. It
    depends on their context and group, and on those before them, who may have used up the day.

    Parameters
    ----------
    log : Log
        Says who was decided about and what was explored before.
    rules : Rules
        Say how many.
    policy : Policy
        Reads people.
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
                self._spending.note(features, self._codes(actions), groups, [0.0] * len(last))

    def open(self, connection: Connection, times: Sequence[float]) -> None:
        """Look up what is left; until the transaction ends, nobody else spends any of it."""
        self._left = {}
        for day in sorted({at // DAY for at in times}):  # in this order, or two would wait for each other
            kept = select(settings.c.value).where(settings.c.name == _name(day)).with_for_update()
            spent = connection.scalar(kept)
            if spent is None:
                today = decisions.c.at >= day * DAY, decisions.c.at < (day + 1) * DAY
                spent = connection.scalar(select(func.count()).where(decisions.c.explored, *today)) or 0
                connection.execute(insert(settings).values(name=_name(day), value=str(spent)))
            self._left[day] = self._per_day - int(spent)

    def floors(self, people: Sequence[Any], features: Any, said: Floats, numbers: Floats) -> Floats:
        """Return floors for people (ids, times, groups), given what their policies say, and their draws."""
        ids, times, groups = people
        self._asked = {id: at for at, id in enumerate(ids)}, features
        if max(self._left.values(), default=0) <= 0:
            return np.zeros(len(said))
        floors = self._spending.floors(features, said, groups)
        differs = explored(with_floor(said, 0.0), with_floor(said, floors), numbers)
        days = np.array(times) // DAY
        for day, left in self._left.items():
            here = differs[days == day]
            floors[days == day] *= here.cumsum() - here < left
        return floors

    def spend(self, connection: Connection, written: Sequence[Any]) -> None:
        """Count what is written of the people whose floors were asked for last."""
        for day, times in Counter(row.at // DAY for row in written if row.explored).items():
            spent = self._per_day - self._left[day] + times
            named = settings.c.name == _name(day)
            connection.execute(update(settings).where(named).values(value=str(spent)))

    def note(self, written: Sequence[Any]) -> None:
        """Learn whom the log knows now, once they are on disk."""
        place, features = self._asked
        rows = np.array([place[row.id] for row in written], dtype=np.int64)
        actions, groups, floors = ([getattr(row, name) for row in written] for name in _NOTED)
        self._spending.note(features[rows], self._codes(actions), groups, floors)

    def _codes(self, actions: Sequence[str]) -> list[int]:
        return [self._place[action] for action in actions]


def _name(day: float) -> str:
    return f"explored on {day!r}"
