"""A demonstration: a model that is too strict, a stream of applicants, and outcomes that come later."""

from __future__ import annotations

import heapq
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from evenhand.bandits import CooperativeBandits
from evenhand.datasets import available, load, simulate_registrar
from evenhand.decisions.loop import DecisionLoop
from evenhand.tables.columns import kinds_of_columns
from evenhand.tables.dataset import Dataset
from evenhand.tables.preprocessing import encode, make_preprocessor
from evenhand.workflow.deployed import Deployed

TICK = 0.2  # seconds between two batches of applicants
LEARN_EVERY = 10.0  # seconds
_AT_ONCE = 20  # applicants in a batch
_WITHIN = 8.0  # seconds that an outcome may take; outcomes take 1 to 7
_MOST = 200_000  # applicants; a forgotten demonstration must not fill the disk
_TAUGHT = 300  # people that the first model was trained on


class Story(NamedTuple):
    """The people of a demonstration, and its words for decisions and outcomes."""

    people: Dataset
    good: str  # the label of those who should get `yes`
    yes: str
    no: str
    well: str
    badly: str
    told: str


def choose_story(cache_dir: str | Path | None = None) -> Story:
    """Return loans with German credit if that is in the cache, else simulated students. Download nothing."""
    if available(cache_dir=cache_dir).at["german", "ready"] == "yes":
        people = load("german", cache_dir=cache_dir)
        return Story(people, "good", "grant", "refuse", "repaid", "defaulted", "loans, with German credit")
    course = replace(simulate_registrar("CS"), courses=("CS201",)).tasks()["CS201"]
    told = "places in a course, with simulated students (German credit is not on this machine)"
    return Story(course, "pass", "admit", "refuse", "passed", "failed", told)


def too_strict(story: Story, seed: int = 0) -> Deployed:
    """Return a model of an old practice that refused most people who would have done well."""
    rng = np.random.default_rng(seed)
    people = story.people
    rows = rng.permutation(len(people))[:_TAUGHT]
    contexts = people.contexts.iloc[rows]
    preprocessor = make_preprocessor(contexts).fit(contexts)
    got = (people.label.iloc[rows] == story.good).to_numpy() & (rng.random(len(rows)) < 0.3)
    model = CooperativeBandits(random_state=seed).fit(
        encode(preprocessor, contexts),
        np.where(got, story.yes, story.no),
        sensitive_features=people.sensitive_features.iloc[rows].to_numpy(),
    )
    kinds = kinds_of_columns(people.contexts, people.dates)
    return Deployed(preprocessor, model, kinds, "decision", people.sensitive_columns, story.yes)


def begin(story: Story, log: str | Path) -> DecisionLoop:
    """Begin a log in which only `yes` reveals an outcome, some seconds later."""
    return DecisionLoop(
        too_strict(story), log, explore=0.15, held_out=0.5, reveals={story.yes}, within=_WITHIN, overdue=-1.0,
        earns={story.yes: {story.well: 1.0, story.badly: -1.0}}, max_flip=0.1,
    )  # fmt: skip


class Stream:
    """Applicants drawn from the data with replacement, and the outcomes of those who got `yes`."""

    def __init__(self, loop: DecisionLoop, story: Story, seed: int = 1) -> None:
        self._loop, self._story = loop, story
        self._rng = np.random.default_rng(seed)
        people = story.people
        own = people.sensitive[people.sensitive_columns]
        self._rows = pd.concat([people.contexts.astype(object), own], axis=1).to_dict("records")
        self._well = (people.label == story.good).to_numpy()
        self._later: list[tuple[float, str, str]] = []  # when it will be seen, whose, and what
        self._came = 0

    def step(self) -> None:
        """Let a batch of applicants apply, and report the outcomes that are due."""
        now = self._loop.clock()
        due = []
        while self._later and self._later[0][0] <= now:
            at, id, label = heapq.heappop(self._later)
            due.append({"id": id, "label": label, "at": at})
        self._loop.outcome_many(due)
        if self._came >= _MOST:
            return
        drawn = self._rng.integers(len(self._rows), size=_AT_ONCE)
        ids = [f"applicant {self._came + at}" for at in range(1, _AT_ONCE + 1)]
        asked = [(id, self._rows[row], None) for id, row in zip(ids, drawn, strict=True)]
        for answer, row in zip(self._loop.decide_many(asked), drawn, strict=True):
            if answer.action == self._story.yes:
                seen = self._story.well if self._well[row] else self._story.badly
                at = now + self._rng.uniform(1.0, _WITHIN - 1.0)
                heapq.heappush(self._later, (at, answer.id, seen))
        self._came += _AT_ONCE
