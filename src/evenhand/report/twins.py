"""Counterparts as the page shows them: decisions that differ, the columns responsible, and some pairs."""

from __future__ import annotations

from typing import Any

from evenhand.auditing import Twins
from evenhand.auditing.twin_result import how
from evenhand.metrics.measures import Measure
from evenhand.report.persons import shown
from evenhand.report.summary import Table, TwinDirection, TwinPair, TwinsShown
from evenhand.wording import group_called

_PAIRS = 60  # on a page, in all directions together
_COLUMNS = 40  # of a pair, and of a figure


def twins_shown(found: Twins) -> TwinsShown:
    """Return the findings about counterparts in the form that the page shows."""
    clear = found.flips[found.flips["clear"]]
    each = max(1, _PAIRS // max(1, len(clear)))
    ends = zip(clear["group"], clear["counterpart_group"], strict=True)
    return {
        "how": how(found.about),
        "flips": _flips(found),
        "positive": "" if found.about["positive"] is None else str(found.about["positive"]),
        "directions": [_direction(found, group, other, each) for group, other in ends],
    }


def _flips(found: Twins) -> Table:
    def share(value: float) -> str:
        return f"{100 * value:.1f} %"

    level = f"{100 * found.about['confidence']:g} % interval"
    columns = ["group", "counterparts in", "people", "share", level, "by chance", "above chance"]
    rows = [
        [
            *(group_called(row[name], found.about["column"]) for name in ("group", "counterpart_group")),
            f"{row['people']:,} of {row['of']:,}",
            share(row["share"]), f"{100 * row['low']:.1f} to {100 * row['high']:.1f}",
            f"{share(row['by_chance'])}, seldom above {100 * row['by_chance_high']:.1f}",
            "yes" if row["clear"] else "no",
        ]
        for row in found.flips.to_dict("records")
    ]  # fmt: skip
    positive = found.about["positive"]
    got = "got another decision" if positive is None else f"got “{positive}” while they did not"
    return {
        "title": "Counterparts in other groups",
        "caption": f"People whose counterpart {got}. By chance: the share with groups assigned at random.",
        "columns": columns,
        "rows": rows,
        "numeric": True,
    }


def _direction(found: Twins, group: Any, other: Any, most: int) -> TwinDirection:
    def of_direction(table: Any) -> list[dict[str, Any]]:
        if table.empty:
            return []
        chosen = (table["group"] == group) & (table["counterpart_group"] == other)
        return [dict(row) for row in table[chosen].to_dict("records")]

    columns = of_direction(found.columns)[:_COLUMNS]
    return {
        "group": group_called(group, found.about["column"]),
        "counterpart_group": group_called(other, found.about["column"]),
        "columns": [str(row["column"]) for row in columns],
        "shares": [_measure(row) for row in columns],
        "clear": [bool(row["clear"]) for row in columns],
        "pairs": [_pair(found, row) for row in of_direction(found.people)[:most]],
    }


def _pair(found: Twins, row: dict[str, Any]) -> TwinPair:
    steps = found.steps
    path = steps[
        (steps["person"] == row["person"])
        & (steps["counterpart"] == row["counterpart"])
        & (steps["counterpart_group"] == row["counterpart_group"])
    ]
    return {
        "person": int(row["person"]) + 1,
        "counterpart": None if row["counterpart"] < 0 else int(row["counterpart"]) + 1,
        "decisions": [str(row["decision"]), str(row["counterpart_decision"])],
        "probabilities": [_rounded(row["probability"]), _rounded(row["counterpart_probability"])],
        "steps": [
            {
                "column": str(step["column"]),
                "values": [shown(step["value"]), shown(step["counterpart_value"])],
                "changed": bool(step["changed"]),
                "decision": str(step["decision"]),
                "probability": _rounded(step["probability"]),
            }
            for step in path.head(_COLUMNS).to_dict("records")
        ],
    }


def _measure(row: dict[str, Any]) -> Measure:
    return {"value": float(row["share"]), "low": float(row["low"]), "high": float(row["high"])}


def _rounded(probability: float) -> float | None:
    return None if probability != probability else round(float(probability), 4)
