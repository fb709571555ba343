"""Results on disk: CSV, Markdown, and one summary that the report is made of."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from evenhand.code_version import code_version, versions
from evenhand.datasets import Dataset
from evenhand.protocol.compare import TITLES, markdown, published
from evenhand.protocol.trial import PUBLISHED_METRICS

if TYPE_CHECKING:
    from evenhand.protocol.reproduce import Results

_CRITERIA = {"table1_discrimination": "discrimination", "table2_delta": "delta", "table_bounded": "bounded"}


def write_all(results: Results) -> None:
    """Write `summary.json`, `tables.md`, and a CSV a table, the curves and the theorem; each whole or not."""
    out = results.out
    out.mkdir(parents=True, exist_ok=True)
    for name, table in results.tables.items():
        _replace(out / f"{name}.csv", table.to_csv(index=False))
    _replace(out / "best.csv", results.best.to_csv(index=False))
    _replace(out / "convergence.csv", _long(results.curves, ("reward",)))
    _replace(out / "theorem.csv", _long(results.theorem, ("smallest", "mean")))
    _replace(out / "failures.csv", results.failures.to_csv(index=False))
    _replace(out / "tables.md", str(results) + "\n")
    _replace(
        out / "summary.json", json.dumps(summary(results), indent=1, allow_nan=False, ensure_ascii=False)
    )


def tables_in_words(tables: dict[str, pd.DataFrame], sentences: list[str]) -> str:
    """Return all tables and sentences as Markdown."""
    parts = [f"## {TITLES[name]}\n\n{markdown(table)}" for name, table in tables.items()]
    parts = [
        "Each cell: ours [95 % interval over seeds] (published, difference). The published consistency can't "
        "be matched exactly: its neighbour lists are off by one for about half of the people.",
        *parts,
    ]
    if sentences:
        parts.append("## In words\n\n" + "\n".join(f"- {sentence}" for sentence in sentences))
    return "\n\n".join(parts)


def summary(results: Results) -> dict[str, Any]:
    """Return everything in one plain dict: settings, versions, hashes, tables, curves, words, and studies.

    A study is a data set as the report shows it: models, published numbers, convergence, submodels, notes.
    """
    whole: dict[str, Any] = _plain(
        {
            "settings": results.settings,
            "command": results.settings["command"],
            "versions": versions(code_version("evenhand.protocol.trial")),
            "datasets": [
                {
                    "name": dataset.name,
                    "people": len(dataset),
                    "rows": dataset.rows,
                    "fingerprint": dataset.fingerprint,
                    "source": dataset.source,
                    "notes": dataset.notes,
                }
                for dataset in results.datasets
            ],
            "tables": {
                name: {"title": TITLES[name], "rows": table.to_dict("records")}
                for name, table in results.tables.items()
            },
            "curves": results.curves,
            "theorem": results.theorem,
            "sentences": results.sentences,
            "failures": results.failures.to_dict("records"),
            "studies": [_study(results, dataset) for dataset in results.datasets],
        }
    )
    return whole


def _study(results: Results, dataset: Dataset) -> dict[str, Any]:
    models, paper = [], []
    for table, criterion in _CRITERIA.items():
        cells = results.tables[table]
        cells = cells[cells["dataset"] == dataset.name]
        for method, rows in cells.groupby("method", sort=False):
            models.append(_model(str(method), rows, criterion))
        theirs = published()
        theirs = theirs[(theirs["table"] == table) & (theirs["dataset"] == dataset.name)]
        paper += [
            {
                "method": row["method"],
                "criterion": criterion,
                "metrics": {name: {"value": row[name]} for name in PUBLISHED_METRICS},
            }
            for row in theirs.to_dict("records")
        ]
    submodels = results.tables.get("table3_submodels")
    if submodels is not None:
        submodels = submodels[submodels["dataset"] == dataset.name]
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
        else [_model(str(name), rows, None) for name, rows in submodels.groupby("method", sort=False)],
        "notes": [
            *dataset.notes,
            *(sentence for sentence in results.sentences if f" {dataset.name}" in sentence),
        ],
    }


def _model(name: str, rows: pd.DataFrame, criterion: str | None) -> dict[str, Any]:
    return {
        "name": name,
        "method": name,
        "family": name,
        "criterion": criterion,
        "divergence_weight": None,
        "chosen": name == "CCB both" and criterion == "delta",
        "front": False,
        "metrics": {
            row["metric"]: {"value": row["ours"], "low": row["low"], "high": row["high"]}
            for row in rows.to_dict("records")
        },
    }


def _long(curves: list[dict[str, Any]], series: tuple[str, ...]) -> str:
    frames = [
        pd.DataFrame(
            {"dataset": c["dataset"], "method": c["method"], "step": c["step"]} | {s: c[s] for s in series}
        )
        for c in curves
    ]
    columns = ["dataset", "method", "step", *series]
    return (pd.concat(frames) if frames else pd.DataFrame(columns=columns)).to_csv(index=False)


def _plain(value: Any) -> Any:
    """Return the value with NaN as None, which JSON knows, and tuples and NumPy's numbers as plain ones."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _replace(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
