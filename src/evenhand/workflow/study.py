"""One data set's study for a report: every candidate on the test part, and the chosen one in detail."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from evenhand import CooperativeBandits
from evenhand.datasets import Dataset
from evenhand.metrics import person_flips
from evenhand.metrics.measures import measure, published_reward
from evenhand.report.summarise import group_rows, model_of, persons
from evenhand.tables.preprocessing import Parts
from evenhand.workflow.table import with_dates
from evenhand.workflow.tradeoff import Candidate, said_by_group

PUBLISHED_WEIGHT = 10.0


def study_of(
    dataset: Dataset,
    parts: Parts,
    found: list[Candidate],
    chosen: Candidate,
    tested: list[int],
    *,
    seed: int,
    epochs: float | str,
) -> dict[str, Any]:
    """Return the study: models, groups, curve, submodels, people, and what the published reward does here.

    `tested` are the test people's rows in the data set, or in the file that it came from, from 0.
    """
    test, labels, groups = parts.test, chosen.model.classes_, chosen.model.groups_.tolist()
    said, own = said_by_group(chosen.model, test)

    def measured(said: Any) -> dict[str, Any]:
        return measure(test.y, said, own, labels=labels, pos_label=parts.pos_label)

    models = [
        model_of(
            candidate.name,
            measured(said_by_group(candidate.model, test)[0]),
            family=candidate.family,
            divergence_weight=candidate.divergence_weight,
            chosen=candidate is chosen,
        )
        for candidate in found
    ]
    best = next(model for model in models if model["chosen"])
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
        "groups": group_rows(
            test.y,
            labels[said[np.arange(len(own)), own].argmax(1)],
            own,
            groups,
            parts.pos_label,
            person_flips(said.argmax(2), own),
        ),
        "convergence": [{"name": chosen.name, **chosen.curve}],
        "submodels": _submodels(chosen, said, parts, measured),
        "persons": persons(
            with_dates(test.contexts, dataset.dates),
            said,
            own,
            groups=groups,
            labels=labels.tolist(),
            y=test.y,
            pos_label=parts.pos_label,
            numbers=tested,
        ),
        "published_reward": _published(parts, found[0], best, measured, seed, epochs),
        "notes": [*dataset.notes, "Chosen on the validation part; every number here is from the test part."],
    }


def _submodels(chosen: Candidate, said: Any, parts: Parts, measured: Any) -> list[dict[str, Any]]:
    groups = chosen.model.groups_
    rows = [
        model_of(f"the policy of {name}", measured(np.repeat(said[:, [code]], len(groups), axis=1)))
        for code, name in enumerate(groups)
    ]
    swapped, _ = said_by_group(chosen.model.reversed(), parts.test)
    return [*rows, model_of("reversed", measured(swapped))]


def _published(
    parts: Parts, loosest: Candidate, best: dict[str, Any], measured: Any, seed: int, epochs: float | str
) -> dict[str, Any]:
    """Train the published reward on the same people, and measure its push where policies still differ."""
    model = CooperativeBandits.published(PUBLISHED_WEIGHT, epochs=epochs, random_state=seed)
    model.fit(parts.train.X, parts.train.y, sensitive_features=parts.train.s)
    said, _ = said_by_group(model, parts.test)
    return published_reward(*said_by_group(loosest.model, parts.test)) | {
        "on": f"the policies trained with {loosest.name}, which still differ",
        "models": [
            model_of(f"published reward, λ = {PUBLISHED_WEIGHT:g}", measured(said)),
            best | {"chosen": False},
        ],
    }
