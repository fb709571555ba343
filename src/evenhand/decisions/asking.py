"""Asking a loop: decisions and outcomes in, checked, and answered once they are on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Any

from evenhand import checks
from evenhand.decisions.budget import Budget
from evenhand.decisions.contexts import check_id
from evenhand.decisions.deciding import Asked, Decision, Row, as_decisions, ask, decide
from evenhand.decisions.hearing import Told, take_outcomes
from evenhand.decisions.log import Log
from evenhand.decisions.policy import Policy
from evenhand.decisions.rules import Rules
from evenhand.decisions.versions import Versions


class Asking:
    """What a decision loop does for those who decide with it."""

    rules: Rules
    clock: Callable[[], float]
    _log: Log
    _versions: Versions
    _budget: Budget

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._versions.policy

    # Deciding ------------------------------------------------------------------------------------------

    def decide(self, id: str, context: Any, group: Any = None) -> Decision:
        """Decide about a person. The same id always gets the same answer.

        Parameters
        ----------
        id : str
            The decision's name, such as an application's number.
        context : dict or array
            The person, as the model reads them. Columns it doesn't read are ignored, and not kept.
        group : object, optional
            The person's group; a `Deployed` finds it in the sensitive columns of the context, too.

        Returns
        -------
        Decision
            It is on disk.

        Raises
        ------
        ConflictError
            If the id was decided about before with another context or group.
        LogUnavailableError
            If the log can't be written now. Ask again with the same id.
        ValueError
            If the context or the group is not one that the model knows.
        """
        return self.decide_many([(id, context, group)])[0]

    def decide_many(self, people: Iterable[tuple[str, Any, Any]]) -> list[Decision]:
        """Decide about several people, given as (id, context, group), in one transaction: all or none."""
        asked = list(zip(*people, strict=True))
        return self.answered(self.submit(*asked).result()) if asked else []

    def submit(self, ids: Sequence[str], contexts: Sequence[Any], groups: Sequence[Any]) -> Future[list[Row]]:
        """Ask for decisions without waiting; `answered` makes decisions of the future's result."""
        asked = ask(self._versions.policy, ids, contexts, groups, float(self.clock()))
        return self._log.commits.submit(self._decide, asked)

    def answered(self, rows: list[Row]) -> list[Decision]:
        """Return the result of `submit` as decisions."""
        return as_decisions(rows, self._versions.policy)

    def _decide(self, jobs: list[Asked]) -> list[Any]:
        results, promotion = decide(self._log, self._versions.policy, self.rules, jobs, self._budget)
        if promotion > self._versions.promotion:  # by another process
            self._versions.reload()
        return results

    # Outcomes ------------------------------------------------------------------------------------------

    def outcome(
        self, id: str, reward: float | None = None, *, label: Any = None, at: datetime | float | None = None
    ) -> str:
        """Tell what a decision earned, or the label that was seen.

        Parameters
        ----------
        id : str
            The decision's.
        reward : float, optional
            What it earned; or
        label : object, optional
            what was seen, of which `earns` knows what it earned.
        at : datetime or float, optional
            When it happened, by default now.

        Returns
        -------
        {'accepted', 'early', 'late', 'unrevealed', 'repeated', 'contradicting'}
            'accepted': it is used. 'early': its decision isn't known yet; it is used once it is. 'late': it
            took longer than `within`; it is kept, but not used. 'unrevealed': the action taken reveals no
            outcome; kept, but not used. 'repeated': the same was told before; nothing happens.
            'contradicting': something else was told before, which stands; this one is kept beside it.
        """
        return self.outcome_many([{"id": id, "reward": reward, "label": label, "at": at}])[0]

    def outcome_many(self, told: Iterable[Mapping[str, Any]]) -> list[str]:
        """Tell several outcomes, as dicts of the arguments of `outcome`, in one transaction: all or none."""
        outcomes = list(told)
        return self.submit_outcomes(outcomes).result() if outcomes else []

    def submit_outcomes(self, told: Iterable[Mapping[str, Any]]) -> Future[list[str]]:
        """Tell outcomes without waiting."""
        now, rows = float(self.clock()), []
        for one in told:
            checked = self.rules.check_outcome(
                one.get("reward"), one.get("label"), self._versions.policy.actions
            )
            rows.append(Told(check_id(one["id"]), _seconds(one.get("at"), now), now, *checked))
        return self._log.commits.submit(self._take, rows)

    def _take(self, jobs: list[Sequence[Told]]) -> list[Any]:
        return take_outcomes(self._log, self.rules, jobs)


def _seconds(at: datetime | float | None, now: float) -> float:
    if at is None:
        return now
    return at.timestamp() if isinstance(at, datetime) else checks.number("at", at)
