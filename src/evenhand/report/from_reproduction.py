"""The summary of a reproduction: results of `evenhand.protocol.reproduce` in the form of every report."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from evenhand.bandits.cooperative import CooperativeBandits
from evenhand.code_version import Made, Source, code_version, made
from evenhand.metrics.measures import measure
from evenhand.protocol.compare import THEIRS, TITLES, Results, published
from evenhand.protocol.measuring import PUBLISHED_METRICS
from evenhand.protocol.reproduce import CRITERION_TABLES
from evenhand.protocol.theorem import published_reward
from evenhand.protocol.trial import Trial
from evenhand.report.summarise import cell, model_of, summary_of
from evenhand.report.summary import (
    Metrics,
    ModelEntry,
    Overview,
    PublishedEntry,
    RewardStudy,
    Study,
    Summary,
    Table,
)
from evenhand.tables.dataset import Dataset
from evenhand.wording import as_plain
from evenhand.workflow.candidates import answers_of
from evenhand.workflow.choosing import Choice
from evenhand.workflow.frontier import Frontier

PUBLISHED_WEIGHT = 10.0
_COLUMNS = ("dataset", "method", "metric", "ours", "low", "high", "published", "difference")


def summary_of_reproduction(results: Results, details: Mapping[str, Study] | None = None) -> Summary:
    """Return the report's summary of a reproduction.

    `details` has, per data set, a study of models for all λ: for the slider, the groups and the people.
    """
    studies = [
        _with_detail(_study(results, dataset), (details or {}).get(dataset.name))
        for dataset in results.datasets
    ]
    education = [
        _table(name, table) for name, table in results.tables.items() if "education" in name and len(table)
    ]
    overview: Overview | None = None
    if education and studies:
        studies[-1]["tables"] = education
    elif education:
        overview = {"sentence": "", "tables": education, "notes": []}
    title = "Metric-free individual fairness, reproduced"
    whole: Summary = as_plain(summary_of("reproduce", title, studies, _made(results), overview))
    return whole


def _study(results: Results, dataset: Dataset) -> Study:
    models: list[ModelEntry] = []
    paper: list[PublishedEntry] = []
    for criterion, table in CRITERION_TABLES.items():
        for method, rows in _of(results.tables[table], dataset):
            chosen = method == "CCB both" and criterion == "delta"
            models.append(model_of(method, _metrics(rows), criterion=criterion, chosen=chosen))
        theirs = published()
        paper += [
            {
                "method": row["method"],
                "criterion": criterion,
                "metrics": {
                    name: {"value": row[name], "low": None, "high": None} for name in PUBLISHED_METRICS
                },
                "beside": [name for name, of in THEIRS.items() if of == row["method"]],
            }
            for row in theirs[theirs["table"] == table].to_dict("records")
            if row["dataset"] == dataset.name
        ]
    submodels = results.tables.get("table3_submodels")
    return {
        "name": dataset.name,
        "label": str(dataset.label.name),
        "pos_label": str(dataset.pos_label),
        "sensitive": str(dataset.sensitive.columns[0]),
        "people": len(dataset),
        "models": models,
        "published": paper,
        "convergence": [
            {
                "name": curve["method"],
                "steps": curve["step"],
                "series": {"accumulated reward": curve["reward"]},
            }
            for curve in results.curves
            if curve["dataset"] == dataset.name
        ],
        "submodels": []
        if submodels is None
        else [model_of(name, _metrics(rows)) for name, rows in _of(submodels, dataset)],
        "notes": [*dataset.notes, *(text for text in results.sentences if f" {dataset.name}" in text)],
    }


def _with_detail(study: Study, detail: Study | None) -> Study:
    """Add the models for all λ, and the groups and people of the one that was chosen on the validation part.

    That one is then the page's chosen model: groups and people of another one would stand beside its numbers.
    """
    if detail is None:
        return study
    compared: list[ModelEntry] = [{**model, "chosen": False} for model in study["models"]]
    path: list[ModelEntry] = [
        {
            **model,
            "family": f"{model['family']}, along λ",
            "name": f"{model['name']} (seed 0)",
        }
        for model in detail["models"]
        if model["divergence_weight"] is not None
    ]
    return {
        **study,
        "models": [*compared, *path],
        "widest": detail.get("widest"),
        "groups": detail["groups"],
        "persons": detail["persons"],
        "published_reward": detail["published_reward"],
        "decided_by": detail["decided_by"],
    }


def published_study(frontier: Frontier, choice: Choice) -> RewardStudy:
    """Train the published reward on the same people, and measure its push where policies still differ."""
    settings, parts = frontier.settings, frontier.parts
    loosest, chosen = frontier.trained[0], choice.candidate
    model = CooperativeBandits.published(
        PUBLISHED_WEIGHT, epochs=settings.epochs, random_state=settings.seed
    ).fit(parts.train.X, parts.train.y, sensitive_features=parts.train.s)
    pushes = published_reward(answers_of(loosest.model, parts.test, parts))
    return {
        "divergence": pushes["divergence"],
        "published_push": pushes["published_push"],
        "published_noise": pushes["published_noise"],
        "log_ratio_push": pushes["log_ratio_push"],
        "on": f"the policies trained with {loosest.name}, which still differ",
        "models": [
            model_of(
                f"published reward, λ = {PUBLISHED_WEIGHT:g}",
                measure(answers_of(model, parts.test, parts)),
            ),
            model_of(
                chosen.name, choice.test, family=chosen.family, divergence_weight=chosen.divergence_weight
            ),
        ],
    }


def _of(table: pd.DataFrame, dataset: Dataset) -> list[tuple[str, pd.DataFrame]]:
    found = table[table["dataset"] == dataset.name].groupby("method", sort=False)
    return [(str(method), rows) for method, rows in found]


def _metrics(rows: pd.DataFrame) -> Metrics:
    """Return measures, including delta; intervals are cut to possible values, which few seeds can exceed."""
    found: Metrics = {
        row["metric"]: {
            "value": row["ours"],
            "low": _cut(row["low"]),
            "high": _cut(row["high"], math.inf if row["metric"] == "gap" else 1.0),
        }
        for row in as_plain(rows.to_dict("records"))
    }
    right, unequal = found["accuracy"]["value"], found["discrimination"]["value"]
    if right is not None and unequal is not None:
        found["delta"] = {"value": right - unequal, "low": None, "high": None}
    return found


def _cut(value: float | None, highest: float = math.inf) -> float | None:
    return None if value is None else min(highest, max(0.0, value))


def _table(name: str, table: pd.DataFrame) -> Table:
    return {
        "title": TITLES[name],
        "caption": "Mean over courses; simulated students in the sizes that the paper states.",
        "columns": list(_COLUMNS),
        "rows": [[cell(row[name], 4) for name in _COLUMNS] for row in as_plain(table.to_dict("records"))],
    }


def _made(results: Results) -> Made:
    data: list[Source] = [
        {"name": data.name, "people": len(data), "fingerprint": data.fingerprint, "source": data.source}
        for data in results.datasets
    ]
    code = code_version(Trial.__module__)
    return made(results.command, seeds=range(results.seeds), data=data, code=code)
