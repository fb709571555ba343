"""The summary of a frontier: every model on the test part, and the chosen one in detail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from evenhand.arrays import Floats
from evenhand.bandits.cooperative import CooperativeBandits
from evenhand.metrics.measures import Measure, measure, published_reward
from evenhand.report.summarise import Study, Summary, model_of, persons, summary_of
from evenhand.workflow.candidates import said_by_group
from evenhand.workflow.choice import Choice
from evenhand.workflow.frontier import Frontier
from evenhand.workflow.table import PERSON_NUMBER, with_dates

PUBLISHED_WEIGHT = 10.0

Measured = Callable[[Floats], dict[str, Measure]]


def summary_of_frontier(frontier: Frontier, choice: Choice) -> Summary:
    """Return the report's summary of a frontier and the model chosen from it."""
    study = study_of(frontier, choice)
    study["notes"] += [*choice.notes, PERSON_NUMBER]
    dataset = frontier.dataset
    return summary_of("fit", f"{dataset.name}: {dataset.label.name}", [study], choice.made)


def study_of(frontier: Frontier, choice: Choice) -> Study:
    """Return the study of one data set: its models, groups, curve, submodels, people and published reward."""
    dataset, parts, chosen = frontier.dataset, frontier.parts, choice.candidate
    test, labels, groups = parts.test, chosen.model.classes_, chosen.model.groups_.tolist()
    said, own = said_by_group(chosen.model, test)

    def measured(said: Floats) -> dict[str, Measure]:
        return measure(test.y, said, own, labels=labels, pos_label=parts.pos_label)

    models = [
        model_of(
            candidate.name,
            frontier.tested(candidate),
            family=candidate.family,
            divergence_weight=candidate.divergence_weight,
            chosen=candidate is chosen,
        )
        for candidate in frontier.trained
    ]
    blind = LogisticRegression(max_iter=500).fit(parts.train.X, parts.train.y.astype(labels.dtype))
    alike = np.repeat(blind.predict_proba(test.X)[:, None], len(groups), axis=1)
    models.append(model_of("logistic regression, blind to the group", measured(alike), family="blind"))
    return {
        "name": dataset.name,
        "label": str(dataset.label.name),
        "pos_label": "" if dataset.pos_label is None else str(dataset.pos_label),
        "sensitive": str(dataset.sensitive.columns[0]),
        "people": len(dataset),
        "models": models,
        "decided_by": chosen.name,
        "groups": choice.groups,
        "convergence": [{"name": chosen.name, **chosen.curve}],
        "submodels": _submodels(choice, said, frontier, measured),
        "persons": persons(
            with_dates(test.contexts, dataset.dates),
            said,
            own,
            groups=groups,
            labels=labels.tolist(),
            y=test.y,
            pos_label=parts.pos_label,
            numbers=frontier.test_rows,
        ),
        "published_reward": _published(choice, frontier, measured),
        "notes": [*frontier.notes, "Chosen on the validation part; every number here is from the test part."],
    }


def _submodels(choice: Choice, said: Floats, frontier: Frontier, measured: Measured) -> list[dict[str, Any]]:
    model = choice.candidate.model
    rows = [
        model_of(f"the policy of {name}", measured(np.repeat(said[:, [code]], len(model.groups_), axis=1)))
        for code, name in enumerate(model.groups_)
    ]
    swapped, _ = said_by_group(model.reversed(), frontier.parts.test)
    return [*rows, model_of("reversed", measured(swapped))]


def _published(choice: Choice, frontier: Frontier, measured: Measured) -> dict[str, Any]:
    """Train the published reward on the same people, and measure its push where policies still differ."""
    settings, parts, loosest = frontier.settings, frontier.parts, frontier.trained[0]
    model = CooperativeBandits.published(
        PUBLISHED_WEIGHT, epochs=settings.epochs, random_state=settings.seed
    ).fit(parts.train.X, parts.train.y, sensitive_features=parts.train.s)
    said, _ = said_by_group(model, parts.test)
    chosen = choice.candidate
    entry = model_of(
        chosen.name, choice.test, family=chosen.family, divergence_weight=chosen.divergence_weight
    )
    return published_reward(*said_by_group(loosest.model, parts.test)) | {
        "on": f"the policies trained with {loosest.name}, which still differ",
        "models": [model_of(f"published reward, λ = {PUBLISHED_WEIGHT:g}", measured(said)), entry],
    }
