"""The chosen model, made ready for use: measured on the test part, with its card."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenhand.code_version import Made, made
from evenhand.metrics.group_rows import GroupRow, group_rows
from evenhand.metrics.measures import Measure
from evenhand.workflow.candidates import Candidate, answers_of
from evenhand.workflow.card import card_for
from evenhand.workflow.choosing import in_words
from evenhand.workflow.deployed import Deployed
from evenhand.workflow.notes import on_bounds
from evenhand.workflow.table import kinds_of, source_of

if TYPE_CHECKING:
    from evenhand.workflow.frontier import Frontier


@dataclass(frozen=True)
class Choice:
    """One model of a frontier, how it was chosen, and what it does on the test part."""

    candidate: Candidate
    criterion: str
    bounds: dict[str, float]  # by measure
    test: dict[str, Measure]
    groups: list[GroupRow]
    notes: list[str]  # the bounds that it kept on the validation part but not on the test part
    same_answer: float  # the share of the test people who get the most common decision
    made: Made
    model: Deployed

    @classmethod
    def of(cls, frontier: Frontier, chosen: Candidate, criterion: str, bounds: dict[str, float]) -> Choice:
        """Measure the chosen model on the test part and make it ready for use."""
        dataset, parts, test = frontier.dataset, frontier.parts, frontier.tested(chosen)
        answers = answers_of(chosen.model, parts.test, parts.pos_label)
        groups = group_rows(answers)
        notes = on_bounds(bounds, test)
        kept = [f"Kept on the validation part, as asked: {in_words(bounds)}."] if bounds else []
        how = made(frontier.command, seeds=[frontier.settings.seed], data=[source_of(dataset)])
        card = card_for(
            frontier, chosen, criterion, bounds=[*kept, *notes], metrics=test, groups=groups, made=how
        )
        model = Deployed(
            preprocessor=parts.preprocessor,
            model=chosen.model,
            columns=kinds_of(dataset),
            label=str(dataset.label.name),
            sensitive=dataset.sensitive_columns,
            pos_label=dataset.pos_label,
            card=json.loads(json.dumps(card, default=str)),
        )
        same = float(np.bincount(answers.decided_own).max() / len(answers))
        return cls(chosen, criterion, bounds, test, groups, notes, same, how, model)
