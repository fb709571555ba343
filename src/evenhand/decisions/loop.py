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
from evenhand.decisions.replaying import Replay, replay
from evenhand.decisions.rules import make_rules
from evenhand.decisions.versions import Learned, Versions


class DecisionLoop(Asking):
    """Decides about one person at a time, keeps a log, and learns from what its decisions earned.

    Every answer is on disk before it is given. Threads may share a loop, and processes a PostgreSQL log.

    Parameters
    ----------
    model : CooperativeBandits, CooperativeEnsemble, GradientBandit or Deployed, optional
        A fitted model, to begin a log with; a log that exists has its own. Contexts are dicts of columns for
        what `evenhand.load` read from `evenhand fit`, rows of numbers for an estimator. Of an ensemble, the
        networks learn and the trees stay as they are.
    log : str or Path
        A file for SQLite, or 'postgresql://user@host/name'. It is made if it does not exist.
    explore : float
        The least probability of every action, for everybody. Without any, a log teaches nothing about
        actions that the policy does not take.
    explore_per_day : int, optional
        How many decisions of a day (UTC) may differ from the policy's own because of `explore`, in all
        processes that share the log together. They go where an outcome teaches most: `explore` is then the
        mean least probability, in every group alike; a person's own is between a quarter and four times of
        it. Once the day's are used up, nobody has a least probability until midnight.
    held_out : float
        The share of people whose decisions are never learned from: candidates are judged on them.
    reveals : set, optional
        The actions after which an outcome is seen, such as {'grant'}; by default all.
    unrevealed : float
        What the other actions earn.
    within : timedelta or float, optional
        How long an outcome may take, as a timedelta or in seconds; a later one is kept, but not used.
    overdue : float, optional
        What a decision earns whose outcome didn't come in time. By default such decisions are left out.
    earns : dict, optional
        What an action earns by the label that is seen later: {'grant': {'repaid': 1, 'defaulted': -3}}. By
        default 1 where action and label are equal, 0 elsewhere.
    reward_range : tuple of float, optional
        The least and the most that a decision can earn; by default what `earns` says, or 0 to 1.
    max_discrimination, max_flip : float, optional
        Bounds that a candidate must keep to be promoted.
    confidence : float
        How surely, over all promotions of the log together.
    seed : str, optional
        32 hexadecimal digits that actions are drawn with, kept in the log; by default random. Whoever knows
        it can choose an id that gets the action they want.
    clock : callable
        Returns seconds since 1970.

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
        if model is None and "://" not in str(log) and not Path(log).exists():  # it is not to be made empty
            raise ValueError(f"Got no model, and no log {log}: expected a model to begin one with.")
        self._log = Log(log)
        try:
            told = partial(
                make_rules, seed=seed, explore=explore, explore_per_day=explore_per_day, held_out=held_out,
                reveals=reveals, unrevealed=unrevealed, within=within, overdue=overdue, earns=earns,
                reward_range=reward_range,
            )  # fmt: skip
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
        """Make a candidate that has learned everything whose reward has become known since the last time.

        It goes on from the newest policy, or, after a rollback, from the one in force. Deciding goes on
        meanwhile with the policy in force.

        Returns
        -------
        Learned or None
            None if there is nothing new.
        """
        with self._log.learning:
            lessons.join(self._log, self.rules, self.clock())
            return self._versions.learn(self.clock())

    def candidate(self) -> Judgement | None:
        """Judge the newest policy that was never in force, as often as you like; None if there is none."""
        with self._log.learning:
            candidate = self._versions.candidate()
            if candidate is None:
                return None
            lessons.join(self._log, self.rules, self.clock())
            return judge(
                self._log, self.rules, self.bounds, candidate, self._versions.policy,
                promotion=self._versions.promotion, now=self.clock(),
            )  # fmt: skip

    def promote(self, *, force: bool = False, note: str = "") -> Judgement | None:
        """Put the candidate in force if it is surely better and within the bounds.

        Parameters
        ----------
        force : bool
            Put it in force anyway; the log says that it was forced.
        note : str
            Who or why, for the log.

        Returns
        -------
        Judgement or None
            `promoted` says whether, `against` why not; None if there is no candidate.
        """
        found = self.candidate()
        if found is None or (found.against and not force):
            return found
        why = "forced" if found.against else "promoted"
        done = replace(found, promoted=True)
        self._versions.put_in_force(found.version, why, note, done.as_dict(), self.clock())
        return done

    def rollback(self, *, note: str = "") -> int:
        """Put the policy in force again that was before; return its version.

        What was learned since is no candidate any more: the next `learn` goes on from the policy in force.
        """
        return self._versions.roll_back(note, self.clock())

    def policies(self) -> list[dict[str, Any]]:
        """Return every policy: its parent, what it learned from, when and why it was put in force."""
        return self._versions.listed()

    # The log -------------------------------------------------------------------------------------------

    def replay(self) -> Replay:
        """Make every policy and every decision again from the log alone, and compare them bit for bit."""
        return replay(self._log, self.rules)

    def erase(self, *ids: str) -> int:
        """Delete all that the log has under these ids; return how many decisions that were.

        `replay` says afterwards what is missing. Policies that learned from them stay as they are.
        """
        return keeping.erase(self._log, [check_id(id) for id in ids], self.clock())

    def export(self, folder: str | Path, preset: str | None = None) -> list[Path]:
        """Write the log as files to a folder, for audits; return them.

        Parameters
        ----------
        folder : path
            Where to write.
        preset : {'eu-ai-act-12'}, optional
            By default, all of the log as Parquet. 'eu-ai-act-12' writes its events in order of time: what was
            decided, by which version, with the hash of the input in its place; and what they leave out.
        """
        if preset is None:
            return keeping.export(self._log, Path(folder))
        checks.one_of("preset", preset, [recording.PRESET])
        return recording.record(self._log, Path(folder), self.clock())

    def close(self) -> None:
        """Finish what is being written and close the log."""
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
