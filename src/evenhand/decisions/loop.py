"""DecisionLoop: decide, log, wait for the outcome, learn, judge, promote, replay."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Self

from evenhand import checks
from evenhand.decisions import keeping, lessons, recording
from evenhand.decisions.asking import Asking
from evenhand.decisions.budget import Budget
from evenhand.decisions.contexts import check_id
from evenhand.decisions.judging import Bounds, Judgement, judge
from evenhand.decisions.log import Log
from evenhand.decisions.policy import Policy
from evenhand.decisions.replaying import Replay, replay
from evenhand.decisions.rules import make_rules
from evenhand.decisions.versions import Learned, Versions


class DecisionLoop(Asking):
    """Decide about one person at a time, keep a log, and learn from the rewards of past decisions.

    Every answer is on disk before it is returned. Threads can share a loop. Processes can share a log in
    PostgreSQL.

    Parameters
    ----------
    model : CooperativeBandits, CooperativeEnsemble, GradientBandit or Deployed, optional
        A fitted model to begin a new log with. A log that exists has its own model; if you give one, it must
        be the model that the log was begun with. Contexts are dicts of columns for a model saved by
        `evenhand fit`, and rows of numbers for an estimator. In an ensemble, only the networks learn.
    log : str or Path
        A file for SQLite, or 'postgresql://user@host/name'. The log is created if it does not exist.
    explore : float
        The minimum probability of every action, for everybody. With 0, a log teaches nothing about actions
        that the policy does not take.
    explore_per_day : int, optional
        The number of decisions per day (UTC) that `explore` may change, over all processes that share the
        log. They are spent where an outcome teaches most. `explore` is then the mean minimum probability,
        the same in every group. Each person's own is between a quarter of it and four times it. Once the
        budget of a day is used up, there is no minimum probability until midnight.
    held_out : float
        The share of people whose decisions are never learned from. Candidates are judged on them.
    reveals : set, optional
        The actions that reveal an outcome, such as {'grant'}; by default all of them.
    unrevealed : float
        The reward of the actions that reveal no outcome.
    within : timedelta or float, optional
        How long an outcome may take, as a timedelta or in seconds. A later outcome is kept but not used.
    overdue : float, optional
        The reward of a decision whose outcome does not come `within` the time. By default, nothing is
        learned from such decisions, and candidates are judged whatever the reward may be.
    earns : dict, optional
        The reward of each action for each label seen later: {'grant': {'repaid': 1, 'defaulted': -3}}.
        Missing pairs earn 0. By default, an action that equals the label earns 1, any other 0.
    reward_range : tuple of float, optional
        The lowest and the highest possible reward. By default, the lowest and the highest of 0 and the values
        in `earns`, `unrevealed` and `overdue`; without `earns`, (0, 1).
    max_discrimination, max_flip : float, optional
        Upper bounds that a candidate must keep to be promoted.
    confidence : float
        The probability that every promoted policy earns more than its predecessor and keeps the bounds. It
        covers all promotions of the log together, except forced ones.
    seed : str, optional
        32 hexadecimal digits that the actions are drawn with, stored in the log; by default random. Keep
        them secret: whoever knows the seed can choose an id that gets the action they want.
    clock : callable
        A function that returns the time in seconds since 1970.

    Raises
    ------
    WrongLogError
        If `log` is not a decision log, or was begun with another model or other rules.
    LogUnavailableError
        If the log can't be opened.
    ValueError
        If there is neither a model nor a log, or a rule is not valid.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from evenhand import CooperativeBandits
    >>> rng = np.random.default_rng(0)
    >>> X, s = rng.normal(size=(500, 2)), rng.choice(["f", "m"], 500)
    >>> y = np.where(X[:, 0] > 0, "grant", "refuse")
    >>> model = CooperativeBandits(random_state=0).fit(X, y, sensitive_features=s)
    >>> with tempfile.TemporaryDirectory() as folder, DecisionLoop(model, f"{folder}/log.db") as loop:
    ...     first = loop.decide("applicant 1", [1.5, 0.2], "f")
    ...     loop.outcome("applicant 1", reward=1.0)
    ...     loop.decide("applicant 1", [1.5, 0.2], "f") == first
    'accepted'
    True
    """

    def __init__(
        self,
        model: Any = None,
        log: str | Path = "decisions.db",
        *,
        explore: float = 0.02,
        explore_per_day: int | None = None,
        held_out: float = 0.3,
        reveals: Collection[Any] | None = None,
        unrevealed: float = 0.0,
        within: timedelta | float | None = None,
        overdue: float | None = None,
        earns: Mapping[Any, Mapping[Any, float]] | None = None,
        reward_range: tuple[float, float] | None = None,
        max_discrimination: float | None = None,
        max_flip: float | None = None,
        confidence: float = 0.95,
        seed: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        for name, value in (("max_discrimination", max_discrimination), ("max_flip", max_flip)):
            if value is not None:
                checks.number(name, value, low=0, high=1)
        checks.number("confidence", confidence, low=0, high=0.999999)
        self.bounds = Bounds(max_discrimination, max_flip, confidence)
        self.clock = clock
        if model is None and "://" not in str(log) and not Path(log).exists():  # don't create an empty one
            raise ValueError(f"Got no model, and no log {log}: expected a model to begin one with.")
        told = partial(
            make_rules, seed=seed, explore=explore, explore_per_day=explore_per_day, held_out=held_out,
            reveals=reveals, unrevealed=unrevealed, within=within, overdue=overdue, earns=earns,
            reward_range=reward_range,
        )  # fmt: skip
        if model is not None:
            told(Policy(model).actions)  # raises before a log is created
        self._log = Log(log)
        try:
            self._versions = Versions.open(self._log, model, told, clock())
            self.rules = self._versions.rules
            self._budget = Budget(self._log, self.rules, self._versions.policy)
        except BaseException:
            self._log.close()
            raise

    # Policies ------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The version of the policy in force."""
        return self._versions.policy.version

    def learn(self) -> Learned | None:
        """Make a candidate that learns from all rewards that its parent has not learned from.

        The parent is the newest policy or, right after a rollback, the policy in force. The policy in force
        keeps deciding meanwhile.

        Returns
        -------
        Learned or None
            The candidate; None if there is nothing new.
        """
        with self._log.learning:
            self._versions.refresh()
            lessons.join(self._log, self.rules, self.clock())
            return self._versions.learn(self.clock())

    def candidate(self) -> Judgement | None:
        """Compare the newest policy with the one in force, as often as you like.

        Return None if the newest policy was already in force, or is older than the last rollback.
        """
        return self._judged()[0]

    def _judged(self) -> tuple[Judgement | None, int]:
        """Return what `candidate` returns, and the number of the promotion that it was compared with."""
        with self._log.learning:
            self._versions.refresh()
            policy, promotion = self._versions.policy, self._versions.promotion
            candidate, now = self._versions.candidate(), self.clock()
            if candidate is None:
                self._versions.refresh()  # another process may have put it in force meanwhile
                return None, promotion
            lessons.join(self._log, self.rules, now)
            found = judge(self._log, self.rules, self.bounds, candidate, policy, promotion=promotion, now=now)
            return found, promotion

    def promote(self, *, force: bool = False, note: str = "") -> Judgement | None:
        """Put the candidate in force if, with confidence, it earns more and keeps the bounds.

        Parameters
        ----------
        force : bool
            Put it in force despite the reasons `against` it. The log then records that it was forced.
        note : str
            Who did it or why, for the log.

        Returns
        -------
        Judgement or None
            `promoted` says whether it is in force now, `against` why not. None if there is no candidate.

        Raises
        ------
        ConflictError
            If somebody else has just changed the policy in force.
        """
        found, compared = self._judged()
        if found is None or (found.against and not force):
            return found
        why = "forced" if found.against else "promoted"
        done = replace(found, promoted=True)
        self._versions.put_in_force(
            found.version, why, note, done.as_dict(), after=compared, now=self.clock()
        )
        return done

    def rollback(self, *, note: str = "") -> int:
        """Put the previous policy back in force and return its version.

        All policies made so far stop being candidates. The next `learn` starts from the policy in force.

        Raises
        ------
        ConflictError
            If there is no previous policy, or somebody else has just changed the policy in force.
        """
        return self._versions.roll_back(note, self.clock())

    def policies(self) -> list[dict[str, Any]]:
        """Return every policy: its parent, how much it learned from, and when and why it was in force."""
        return self._versions.listed()

    # The log -------------------------------------------------------------------------------------------

    def replay(self) -> Replay:
        """Recompute every policy and every decision from the log alone, and compare them bit for bit."""
        return replay(self._log, self.rules)

    def erase(self, *ids: str) -> int:
        """Delete everything that the log has under these ids; return the number of decisions deleted.

        Afterwards, `replay` reports what is missing. Policies that learned from the ids stay as they are.
        """
        return keeping.erase(self._log, [check_id(id) for id in ids], self.clock())

    def export(self, folder: str | Path, preset: str | None = None) -> list[Path]:
        """Write the log as files to a folder, for audits; return their paths.

        Parameters
        ----------
        folder : path
            The folder to write to. It is created if it does not exist.
        preset : {'eu-ai-act-12'}, optional
            By default, the whole log is written as Parquet. 'eu-ai-act-12' writes the events in order of
            time, with hashes instead of inputs, and a summary that says what the record leaves out.
        """
        if preset is None:
            return keeping.export(self._log, Path(folder))
        checks.one_of("preset", preset, [recording.PRESET])
        return recording.record(self._log, Path(folder), self.clock())

    def close(self) -> None:
        """Finish pending writes and close the log."""
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
