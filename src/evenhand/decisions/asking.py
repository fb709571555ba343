"""How a loop takes requests for decisions and outcomes, and answers once they are on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Any, Protocol

from evenhand import checks
from evenhand.decisions.budget import Budget
from evenhand.decisions.contexts import check_id
from evenhand.decisions.deciding import Asked, Decision, Row, as_decisions, ask, decide
from evenhand.decisions.hearing import Told, take_outcomes
from evenhand.decisions.log import Log
from evenhand.decisions.policy import Policy
from evenhand.decisions.rules import Rules
from evenhand.decisions.versions import Versions


class Meter(Protocol):
    """Counts what a loop is asked by its own process."""

    def count_decisions(self, rows: Sequence[Row]) -> None:
        """Count decisions."""

    def count_outcomes(self, statuses: Sequence[str]) -> None:
        """Count outcomes by what was done with them."""


class Asking:
    """The part of a decision loop that decides and takes outcomes."""

    meter: Meter | None = None  # counts `decide_many` and `outcome_many`, but not what is only submitted
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
            A name for the decision, such as the number of an application.
        context : dict or array
            The person's features, as the model reads them. Other columns are ignored and not kept.
        group : object, optional
            The person's group. A `Deployed` can also read it from the sensitive columns of the context.

        Returns
        -------
        Decision
            The decision, which is on disk.

        Raises
        ------
        ConflictError
            If the id already has a decision with another context or group.
        LogUnavailableError
            If the log can't be written now. Ask again with the same id.
        ValueError
            If the id, the context or the group is not valid.
        """
        return self.decide_many([(id, context, group)])[0]

    def decide_many(self, people: Iterable[Sequence[Any]]) -> list[Decision]:
        """Decide about several people, given as (id, context) or (id, context, group), all or none."""
        asked = list(zip(*map(_whole, people), strict=True))
        if not asked:
            return []
        rows = self.submit(*asked).result()
        if self.meter is not None:
            self.meter.count_decisions(rows)
        return self.answered(rows)

    def submit(self, ids: Sequence[str], contexts: Sequence[Any], groups: Sequence[Any]) -> Future[list[Row]]:
        """Ask for decisions without waiting. `answered` turns the result of the future into decisions."""
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
        """Report what a decision earned, or the label that was seen.

        Parameters
        ----------
        id : str
            The id of the decision.
        reward : float, optional
            What the decision earned. Give either this or `label`.
        label : object, optional
            The label that was seen. `earns` says what the decision earned with it.
        at : datetime or float, optional
            When it happened, as a datetime or in seconds since 1970; by default now.

        Returns
        -------
        {'accepted', 'early', 'late', 'unrevealed', 'repeated', 'contradicting'}
            'accepted': it is used. 'early': no decision has this id yet; it is used once there is one.
            'late': it took longer than `within`; it is kept but not used. 'unrevealed': the action taken
            reveals no outcome; it is kept but not used. 'repeated': the same was reported before; nothing
            changes. 'contradicting': something else was reported before and counts; this one is only kept.

        Raises
        ------
        LogUnavailableError
            If the log can't be written now. Report it again.
        ValueError
            If neither or both of `reward` and `label` are given, or one is not valid under the log's rules.
        """
        return self.outcome_many([{"id": id, "reward": reward, "label": label, "at": at}])[0]

    def outcome_many(self, told: Iterable[Mapping[str, Any]]) -> list[str]:
        """Report several outcomes, dicts of the arguments of `outcome`, in one transaction: all or none."""
        outcomes = list(told)
        if not outcomes:
            return []
        statuses = self.submit_outcomes(outcomes).result()
        if self.meter is not None:
            self.meter.count_outcomes(statuses)
        return statuses

    def submit_outcomes(self, told: Iterable[Mapping[str, Any]]) -> Future[list[str]]:
        """Report outcomes without waiting for the answer."""
        now, rows = float(self.clock()), []
        for one in told:
            if not isinstance(one, Mapping) or "id" not in one:
                raise ValueError(f"Got the outcome {one!r}, but expected a dict with the key 'id'.")
            checked = self.rules.check_outcome(
                one.get("reward"), one.get("label"), self._versions.policy.actions
            )
            rows.append(Told(check_id(one["id"]), _seconds(one.get("at"), now), now, *checked))
        return self._log.commits.submit(self._take, rows)

    def _take(self, jobs: list[Sequence[Told]]) -> list[Any]:
        return take_outcomes(self._log, self.rules, jobs)


def _whole(person: Any) -> tuple[Any, Any, Any]:
    """Return a person's id, context and group."""
    given = tuple(person) if isinstance(person, list | tuple) else ()
    if len(given) not in (2, 3):
        raise ValueError(f"Got the person {person!r}, but expected (id, context) or (id, context, group).")
    return (*given, None) if len(given) == 2 else given


def _seconds(at: datetime | float | None, now: float) -> float:
    if at is None:
        return now
    return at.timestamp() if isinstance(at, datetime) else checks.number("at", at)
