"""The summary of a reproduction: what `evenhand.protocol` writes, in the shape that every report has."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from evenhand.report.summarise import Study, Summary, summary_of

_COLUMNS = ("dataset", "method", "metric", "ours", "low", "high", "published", "difference")
# A chosen model's study may add these to what the sweep knows of a data set.
_ADDED = ("groups", "persons", "published_reward", "decided_by")


def summary_of_reproduction(
    results: Mapping[str, Any], details: Mapping[str, Study] | None = None
) -> Summary:
    """Return the report's summary of a reproduction.

    Parameters
    ----------
    results : the dict that `evenhand.protocol.write.summary` makes (`summary.json`).
    details : by data set, a study of models trained along λ: the slider, the groups and the people.
    """
    studies = [_joined(study, (details or {}).get(study["name"])) for study in results["studies"]]
    education = [table for name, table in results["tables"].items() if "education" in name and table["rows"]]
    if education and studies:
        studies[-1] = studies[-1] | {"tables": [_table(table) for table in education]}
    return summary_of("reproduce", "Metric-free individual fairness, reproduced", studies, _made(results))


def _joined(study: Study, detail: Study | None) -> Study:
    study = study | {part: [_within(model) for model in study[part]] for part in ("models", "submodels")}
    if detail is None:
        return study
    path = [
        model
        | {"chosen": False, "family": f"{model['family']}, along λ", "name": f"{model['name']} (seed 0)"}
        for model in detail["models"]
        if model["divergence_weight"] is not None
    ]
    return study | {"models": [*study["models"], *path]} | {name: detail[name] for name in _ADDED}


def _within(model: dict[str, Any]) -> dict[str, Any]:
    """Cut intervals to what is possible, which few seeds' intervals exceed, and add delta."""
    metrics: dict[str, Any] = {}
    for name, found in model["metrics"].items():
        highest = None if name == "gap" else 1.0
        metrics[name] = found | {"low": _cut(found["low"], None), "high": _cut(found["high"], highest)}
    right, unequal = (metrics[name]["value"] for name in ("accuracy", "discrimination"))
    if right is not None and unequal is not None:
        metrics["delta"] = {"value": right - unequal, "low": None, "high": None}
    return model | {"metrics": metrics}


def _cut(value: float | None, highest: float | None) -> float | None:
    if value is None:
        return None
    return max(0.0, value) if highest is None else min(highest, max(0.0, value))


def _table(table: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "title": table["title"],
        "caption": "Mean over courses; simulated students in the sizes that the paper states.",
        "columns": list(_COLUMNS),
        "rows": [[_cell(row.get(name)) for name in _COLUMNS] for row in table["rows"]],
    }


def _cell(value: Any) -> str:
    return "–" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)


def _made(results: Mapping[str, Any]) -> dict[str, Any]:
    versions = dict(results["versions"])
    return {
        "command": results["command"],
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "evenhand": f"{versions.pop('evenhand')} (code {str(versions.pop('code', ''))[:12]})",
        "python": versions.pop("python"),
        "platform": versions.pop("machine"),
        "packages": versions,
        "seeds": list(range(results["settings"]["seeds"])),
        "data": [
            {name: data[name] for name in ("name", "people", "fingerprint", "source")}
            for data in results["datasets"]
        ],
    }
