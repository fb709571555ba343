"""The summary of an audit: its findings in the shape that every report has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenhand.auditing import Audit, Statutory
from evenhand.auditing.sentences import column_of, groups_here
from evenhand.auditing.table import rate_of
from evenhand.code_version import Made, made
from evenhand.metrics.measures import SHOWN, GroupRow, Measure
from evenhand.report.persons import shown
from evenhand.report.render import write_html
from evenhand.report.summarise import cell, model_of, summary_of
from evenhand.report.summary import Metrics, Persons, Sheet, Study, Summary, Table
from evenhand.report.twins import twins_shown

_BY_GROUP = ("positive_rate", "true_positive_rate", "false_positive_rate", "accuracy", "flip_rate")
_TITLES = {
    "group_least": "lowest group", "people_least": "its people", "rate_least": "its rate",
    "group_most": "highest group", "people_most": "its people", "rate_most": "its rate",
}  # fmt: skip
_MOST_ROWS = 20  # of a table; people have a longer one of their own
_NUMBERED = "A person's number is their row in the table, from 1; positions in Python count from 0."
_NOT_FEATURES = ("person", "group", "label", "decision", "flips", "gap")


def summary_of_audit(
    found: Audit, *, name: str, label: str, sensitive: str, how: Made, model: str = "This model",
    filled: Statutory | None = None,
) -> Summary:  # fmt: skip
    """Return the summary of an audit; the page shows these names for the data, its columns and the model.

    >>> from evenhand.auditing import audit
    >>> from evenhand.code_version import made
    >>> found = audit([0, 1, 1, 0], None, [0, 1, 0, 0], sensitive_features=["f", "f", "m", "m"])
    >>> how = made("python", seeds=[0], data=[])
    >>> study = summary_of_audit(found, name="four", label="y", sensitive="sex", how=how)["studies"][0]
    >>> study["models"][0]["metrics"]["accuracy"]["value"]
    0.75
    """
    findings = found.to_dict()
    about = findings["about"]
    study: Study = {
        "name": name,
        "label": label,
        "pos_label": "" if about["positive"] is None else str(about["positive"]),
        "sensitive": sensitive,
        "people": about["people"],
        "models": [model_of(model, _metrics(findings), chosen=True)],
        "groups": _groups(findings),
        "persons": _persons(found, findings),
        "sheet": None if filled is None else _sheet(filled),
        "tables": _tables(findings) + _worst(found) + _searched(found),
        "twins": None if found.twins is None else twins_shown(found.twins),
        "widest": about["widest"] and {key: str(value) for key, value in about["widest"].items()},
        "filled_up_to": about["min_group"] if set(groups_here(found)) - set(about["compared"]) else None,
        "trained_on": about.get("trained_on"),
        "notes": [line for line in findings["summary"].splitlines() if line],
    }
    return summary_of("audit", f"Audit of {name}: {label}", [study], how)


def write_audit(
    found: Audit, path: str | Path, *, name: str = "this model", label: str | None = None,
    filled: Statutory | None = None,
) -> Path:  # fmt: skip
    """Write the report of an audit as one HTML file; return its path."""
    how = made("evenhand.auditing.audit", seeds=[], data=[])
    names = {"name": name, "label": label or found.label or "label", "sensitive": column_of(found)}
    whole = summary_of_audit(found, **names, how=how, filled=filled)
    if not found.people.empty or not found.neighbours.empty:
        whole["studies"][0]["notes"].append(_NUMBERED)
    return write_html(whole, path)


def _metrics(findings: dict[str, Any]) -> Metrics:
    gap = f"gap_mean_{findings['about']['divergence']}"
    overall = {row["metric"]: row for row in findings["metrics"] if row["group"] is None}
    named = {name: overall.get(gap if name == "gap" else name) for name in SHOWN}
    return {name: _measure(row) for name, row in named.items() if row is not None}


def _groups(findings: dict[str, Any]) -> list[GroupRow]:
    rows: list[GroupRow] = []
    for group, people in findings["about"]["groups"].items():
        told = {
            found["metric"]: _measure(found) for found in findings["metrics"] if str(found["group"]) == group
        }
        rates = {name: told[name] for name in _BY_GROUP if name in told}
        row: GroupRow = {"group": group, "people": people, **rates}  # type: ignore[typeddict-item]
        if findings["about"]["positive"] is None:
            row["decided"] = {
                str(label): told[rate_of(label)]
                for label in findings["about"]["labels"]
                if rate_of(label) in told
            }
        rows.append(row)
    return rows


def _persons(found: Audit, findings: dict[str, Any]) -> Persons | None:
    """Return the audit's people in the order of every report: those who flip first, then by gap."""
    people, about = findings["people"], findings["about"]
    if not people:
        return None
    groups = list(about["groups"])
    added = [name for name in people[0] if name.startswith(("decided as ", "P("))]
    columns = [name for name in people[0] if name not in _NOT_FEATURES and name not in added]
    overall = {row["metric"]: row for row in findings["metrics"] if row["group"] is None}
    # The audit's own table knows which values are dates; its JSON has only text.
    known = found.people.loc[:, [str(name) in columns for name in found.people.columns]]
    features = [[shown(value) for value in row] for row in known.itertuples(index=False, name=None)]
    ordered = sorted(
        zip(people, features, strict=True),
        key=lambda both: (not both[0]["flips"], -(both[0].get("gap") or 0)),
    )
    return {
        "groups": groups,
        "columns": columns,
        "rows": [
            {
                "person": person["person"],
                "group": str(person["group"]),
                "label": "" if person["label"] is None else str(person["label"]),
                "decisions": [str(person[f"decided as {group}"]) for group in groups],
                "probabilities": [_probability(person, group, about["positive"]) for group in groups],
                "gap": None if person.get("gap") is None else round(person["gap"], 9),
                "flips": person["flips"],
                "features": values,
            }
            for person, values in ordered
        ],
        "people": about["people"],
        "flips": round(overall["flip_rate"]["value"] * about["people"]),
    }


def _probability(person: dict[str, Any], group: str, positive: Any) -> float | None:
    told = [name for name in person if name.startswith("P(") and name.endswith(f") as {group}")]
    if f"P({positive}) as {group}" in told:
        return float(person[f"P({positive}) as {group}"])
    # With two labels, the audit lists the probability of the second; that of the first is the rest.
    return 1 - float(person[told[0]]) if len(told) == 1 else None


def _tables(findings: dict[str, Any]) -> list[Table]:
    titles = {
        "neighbours": (
            "Similar people, different decisions",
            "The most similar pairs of people with different decisions.",
        ),
        "thresholds": (
            "How the findings change with the threshold",
            "A score of at least the threshold is a positive decision.",
        ),
        "subgroups": (
            "Where groups are treated most differently",
            "Differences that hold for all examined subgroups at once.",
        ),
    }
    return [
        {
            "title": title,
            "caption": caption,
            "columns": [_TITLES.get(name, name.replace("_", " ")) for name in findings[part][0]],
            "rows": [[cell(value, 3) for value in row.values()] for row in findings[part][:_MOST_ROWS]],
        }
        for part, (title, caption) in titles.items()
        if findings[part]
    ]


def _worst(found: Audit) -> list[Table]:
    if found.worst is None:
        return []
    told = found.worst.to_frame()
    title = "The largest possible gap"
    words = "Of all people possible within the columns' ranges and categories, whether or not they exist."
    if found.worst.radius is not None:
        words += f" Only people within {found.worst.radius:g} (Gower distance) of a real person are counted."
    rows = [[str(name), *cells] for name, cells in zip(told.index, told.to_numpy().tolist(), strict=True)]
    return [{"title": title, "caption": words, "columns": ["", *told.columns], "rows": rows, "numeric": True}]


def _searched(found: Audit) -> list[Table]:
    """Return the people that a search found; features that did not change are only in the JSON."""
    if found.search is None or found.search.people.empty:
        return []
    rows = found.search.shown()
    return [{
        "title": "People found whose decision changes with the group",
        "caption": "Made from people of the table by changing values within the columns' ranges. Found by a "
        "search: nothing is proven about others.",
        "columns": [str(name) for name in rows.columns],
        "rows": [
            [cell(value, 3) for value in row] for row in rows.itertuples(index=False, name=None)
        ],
    }]  # fmt: skip


def _sheet(filled: Statutory) -> Sheet:
    tables: list[Table] = []
    for name, texts in filled.texts().items():
        levels = filled.tables[name].index.nlevels
        rows = [[str(name) for name in texts], *texts.to_numpy().tolist()]
        columns, *cells = ([" · ".join(row[:levels]), *row[levels:]] for row in rows)
        tables.append({"title": name, "caption": name, "columns": columns, "rows": cells, "numeric": True})
    return {"title": filled.title, "tables": tables, "notes": filled.notes}


def _measure(row: dict[str, Any]) -> Measure:
    return {"value": row["value"], "low": row["low"], "high": row["high"]}
