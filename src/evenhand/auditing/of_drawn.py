"""What needs single people, of a table that is only counted: measured on people who were drawn from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand.auditing.drawn import Draw, Drawn
from evenhand.auditing.people import PAIR_COLUMNS, neighbour_pairs, with_rows
from evenhand.auditing.predictions import at_threshold
from evenhand.auditing.table import MetricTable
from evenhand.auditing.twin_result import Twins
from evenhand.auditing.twins import Settings, compared_groups, find_twins
from evenhand.metrics.answers import Answers
from evenhand.metrics.gower import gower_neighbours
from evenhand.metrics.group_columns import sensitive_columns

NO_ROWS = (
    "The engine has no numbers of rows to draw people by, so consistency and neighbours, AUC and calibration "
    "were left out. Audit a sample of the rows in memory to have them."
)
_NAMES = {"consistency": "consistency and neighbours", "auc": "AUC", "calibration_error": "calibration"}


@dataclass(frozen=True)
class OfDrawn:
    """Measures people drawn from a table, whose decisions, counted, are `answers`.

    `score` and `weight` are columns, where there are any; `near` are options of `gower_neighbours`.
    """

    draw: Draw
    answers: Answers
    sensitive: list[str]
    features: list[str]
    score: str | None
    weight: str | None
    near: Mapping[str, Any]

    def measured(
        self, n: int, n_listed: int, resampling: Mapping[str, Any]
    ) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
        """Return metrics of `n` people, the most similar of them who were decided differently, and notes."""
        pairs = pd.DataFrame(columns=PAIR_COLUMNS)
        if not self.features and self.score is None:
            return pd.DataFrame(), pairs, []
        drawn = self.draw.in_proportion(n)
        if drawn is None:
            return pd.DataFrame(), pairs, [NO_ROWS]
        answers = self._answers(drawn)
        table = MetricTable(answers, **resampling)
        notes = table.scores() if self.score is not None else []
        others = self._others(drawn, answers)
        if others.shape[1] and len(others) > self.near["k"]:
            everybody = np.arange(len(others))
            found = gower_neighbours(others, **self.near)
            table.consistency(found.indices, everybody, drawn.strata)
            pairs = neighbour_pairs(others, answers, everybody, found, n_listed)
            pairs = with_rows(pairs, ("person", "neighbour"), drawn.rows)
        metrics = table.frame()
        if drawn.strata is not None and len(metrics):
            told = ", ".join(_NAMES[name] for name in metrics["metric"])
            notes.append(
                f"Measured on {len(others):,} people, drawn from every group, label and decision in "
                f"proportion, each compared with the others of them: {told}. Intervals include the draw."
            )
        return metrics, pairs, notes

    def twins(self, n: int, how: Settings, rng: np.random.Generator) -> Twins:
        """Find twins among `n` people, about as many from each group that is compared, or among everybody."""
        sizes = self.answers.people_by(self.answers.own, len(self.answers.groups))
        chosen, notes = compared_groups(sizes, self.answers.groups, how.min_group)
        if sizes.sum() <= n:
            drawn = self.draw.in_proportion(n)
        else:
            drawn = self.draw.of_groups(self.answers.own, len(self.sensitive), chosen, n)
        if drawn is None:
            raise ValueError(f"Got twins, but expected X in memory. {NO_ROWS}")
        given: Any = drawn.frame[self.sensitive]
        given = given if len(self.sensitive) > 1 else given.iloc[:, 0]
        frame = drawn.frame[[*self.features, *self.sensitive]]
        found = find_twins(None, frame, self._answers(drawn), given, how, rng).numbered(drawn.rows)
        if len(frame) == sizes.sum():
            return found
        told = (
            f"These are twins among {len(frame):,} people drawn at random, about as many from each group. "
            "Intervals include the draw."
        )
        return replace(found, notes=[*notes, *found.notes, told])

    def _answers(self, drawn: Drawn) -> Answers:
        """Return what was decided about the people drawn; each stands for the others of their stratum."""
        of, weights = self.answers, None if drawn.strata is None else drawn.strata.weights
        if self.weight is not None:
            own = drawn.frame[self.weight].to_numpy(dtype=float)
            weights = own if weights is None else own * weights
        answers = replace(
            of, own=of.own[drawn.at], decided=of.decided_own[drawn.at], weights=weights, repeats=None,
            y=None if of.y is None else of.y[drawn.at],
        )  # fmt: skip
        if self.score is None:
            return answers
        scores = drawn.frame[self.score].to_numpy(dtype=float)
        return replace(answers, own_scores=at_threshold(scores, of.labels, of.pos_label, of.threshold)[1])

    def _others(self, drawn: Drawn, answers: Answers) -> pd.DataFrame:
        """Return the features that do not reveal the group."""
        frame = drawn.frame[[*self.features, *self.sensitive]]
        found = frame.drop(columns=sensitive_columns(frame, frame[self.sensitive], answers.own))
        return pd.DataFrame(found.infer_objects())
