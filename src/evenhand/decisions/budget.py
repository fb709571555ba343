"""How many decisions a day may differ from the policy's own, for the sake of learning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import func, select

from evenhand.arrays import Flags
from evenhand.decisions.log import Log
from evenhand.decisions.schema import decisions

DAY = 86_400.0  # seconds; days begin at midnight, UTC


class Budget:
    """What is left to explore today: first come, first explored, whatever the group.

    Whether somebody may be explored depends on those before them alone, not on their own draw: otherwise the
    probabilities in the log would be wrong. This process counts its own decisions on top of what the log had
    of the day when it began; others that share the log have a budget of their own.

    Parameters
    ----------
    log : Log
        Says what was explored before.
    per_day : int, optional
        How many; without it, as many as the floor brings.
    """

    def __init__(self, log: Log, per_day: int | None) -> None:
        self._log, self._per_day = log, per_day
        self._spent: Counter[float] = Counter()
        self._unsure = False

    def allows(self, explored: Flags, times: npt.ArrayLike) -> Flags:
        """Return who of these people has a floor, given whom it would explore; `note` must follow."""
        allowed = np.ones(len(explored), dtype=np.bool_)
        if self._per_day is None:
            return allowed
        if self._unsure or len(self._spent) > 2:  # a write may have failed after all, or days have gone by
            self._spent.clear()
        self._unsure = True
        days = np.asarray(times, dtype=np.float64) // DAY
        for day in np.unique(days).tolist():
            if day not in self._spent:
                self._spent[day] = self._logged(day)
            here = explored[days == day]
            allowed[days == day] = self._spent[day] + here.cumsum() - here < self._per_day
        return allowed

    def _logged(self, day: float) -> int:
        today = decisions.c.at >= day * DAY, decisions.c.at < (day + 1) * DAY
        query = select(func.count()).select_from(decisions).where(decisions.c.explored, *today)
        return int(self._log.all(query)[0][0])

    def note(self, written: Iterable[Any]) -> None:
        """Count what was written of the people who were asked about last."""
        if self._per_day is not None:
            self._spent.update(row.at // DAY for row in written if row.explored)
            self._unsure = False
