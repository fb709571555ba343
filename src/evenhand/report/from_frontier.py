"""The summary of a frontier: every model on the test part, and the chosen one in detail."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenhand.arrays import Floats
from evenhand.metrics.group_table import widest
from evenhand.metrics.measures import Measure, measure
from evenhand.report.persons import persons
from evenhand.report.summarise import model_of, summary_of
from evenhand.report.summary import ModelEntry, Study, Summary
from evenhand.wording import group_called
from evenhand.workflow.candidates import Candidate, answers_of
from evenhand.workflow.choosing import Choice
from evenhand.workflow.drawing import upwards
from evenhand.workflow.frontier import Frontier
from evenhand.workflow.table import PERSON_NUMBER, with_dates

Measured = Callable[[Floats], dict[str, Measure]]
# Networks learn person by person; where there are trees, they are watched, with the finished networks.
_COUNTED = {"networks": "people seen in training", "trees": "rounds of trees", "both": "rounds of trees"}


def summary_of_frontier(frontier: Frontier, choice: Choice) -> Summary:
    """Return the report's summary of a frontier and the model chosen from it."""
    study = study_of(frontier, choice)
    study["notes"] += [*choice.notes, PERSON_NUMBER]
    dataset = frontier.dataset
    return summary_of("fit", f"{dataset.name}: {dataset.label.name}", [study], choice.made)


def study_of(frontier: Frontier, choice: Choice) -> Study:
    """Return the study of one data set: its models, groups, curve, submodels and people."""
    dataset, parts, chosen = frontier.dataset, frontier.parts, choice.candidate
    test, answers = parts.test, answers_of(chosen.model, parts.test, parts)
    said: Floats = np.asarray(answers.probabilities_by_group)
    apart, small = widest(answers), (answers.sizes > 0) & ~answers.compared

    def measured(said: Floats) -> dict[str, Measure]:
        return measure(answers.with_answers(said))

    models = [
        model_of(
            _name(candidate, chosen),
            frontier.tested(candidate),
            family=candidate.family,
            divergence_weight=candidate.divergence_weight,
            chosen=candidate is chosen,
        )
        for candidate in frontier.shown
    ]
    models += [model_of(one.name, frontier.tested(one), family=one.family) for one in frontier.blind]
    return {
        "name": dataset.name,
        "label": str(dataset.label.name),
        "pos_label": "" if dataset.pos_label is None else str(dataset.pos_label),
        "sensitive": str(dataset.sensitive.columns[0]),
        "people": dataset.people,
        "models": models,
        "decided_by": chosen.name,
        "chosen_by": choice.by,
        "upwards": upwards(frontier.rare),
        "widest": None if apart is None else {key: str(value) for key, value in apart._asdict().items()},
        "filled_up_to": answers.min_group if small.any() else None,
        "groups": choice.groups,
        "convergence": [
            {
                "name": chosen.name,
                "steps": chosen.curve["steps"],
                "series": chosen.curve["series"],
                "counted": _COUNTED[chosen.policies],
            }
        ],
        "submodels": _submodels(frontier, choice, said, measured),
        "persons": persons(with_dates(test.contexts, dataset.dates), answers, numbers=frontier.test_rows),
        "notes": [
            *frontier.notes,
            "Every number here is from the test part, except in training curves.",
        ],
    }


def _name(candidate: Candidate, chosen: Candidate) -> str:
    """Return the name in the report, which shows models of several kinds side by side."""
    alone = candidate.policies != chosen.policies
    return f"{candidate.policies}, {candidate.name}" if alone else candidate.name


def _submodels(frontier: Frontier, choice: Choice, said: Floats, measured: Measured) -> list[ModelEntry]:
    groups, column = choice.candidate.model.groups_.tolist(), str(frontier.dataset.sensitive.columns[0])
    rows = [
        model_of(
            f"the policy of {group_called(name, column)}",
            measured(np.repeat(said[:, [code]], len(groups), axis=1)),
        )
        for code, name in enumerate(groups)
    ]
    swapped = choice.candidate.model.reversed().probabilities_by_group(frontier.parts.test.X)
    return [*rows, model_of("reversed", measured(swapped))]
