"""What to know beside the numbers: columns that reveal the group, small groups, bounds that weren't kept."""

from __future__ import annotations

import shlex
from typing import Any

from evenhand.datasets import Dataset
from evenhand.groups import encode_groups
from evenhand.metrics.group_columns import telling_columns
from evenhand.metrics.measures import value_of
from evenhand.tables.splits import Split
from evenhand.wording import people

FEW = 30  # people of a group, in a part that is measured


def on_columns(dataset: Dataset) -> list[str]:
    """Name the columns that reveal the group: with them, leaving out the sensitive column hides nothing."""
    name = str(dataset.sensitive_features.name)
    own = encode_groups(dataset.sensitive_features, len(dataset)).codes
    telling = telling_columns(dataset.contexts, None, own)
    certain = [column for column in dataset.contexts.columns if column in {*telling.alone, *telling.more}]
    return [_revealing(str(column), "reveals", name) for column in certain] + [
        _revealing(str(column), "may reveal", name) for column in telling.perhaps
    ]


def _revealing(column: str, how: str, name: str) -> str:
    return (
        f"{column!r} {how} {name!r}, or a part of it. The flip rate doesn't show what is decided by such a "
        f"column. Leave it out with drop={[column]!r}, on the command line --drop {shlex.quote(column)}."
    )


def on_groups(dataset: Dataset, parts: Split) -> list[str]:
    """Name the groups that have few people in the validation or the test part."""
    notes = []
    for name in sorted(dataset.sensitive_features.unique().tolist(), key=str):
        here = (dataset.sensitive_features == name).to_numpy()
        counts = {part: int(here[getattr(parts, part)].sum()) for part in ("validation", "test")}
        if min(counts.values()) < FEW:
            notes.append(
                f"The group {str(name)!r} has {people(counts['validation'])} in the validation part and "
                f"{counts['test']} in the test part: measures of fewer than {FEW} people say little."
            )
    return notes


def on_bounds(bounds: dict[str, float], test: dict[str, Any]) -> list[str]:
    """Name the bounds that the chosen model kept on the validation part but not on the test part.

    >>> on_bounds({"flip_rate": 0.01}, {"flip_rate": {"value": 0.02, "low": 0.005, "high": 0.04}})
    ['On the test part the bound was not kept: flip rate 0.0200 (0.0050 to 0.0400), asked for at most 0.01.']
    """
    notes = []
    for name, bound in bounds.items():
        found = test[name]
        if value_of(test, name) > bound:
            between = "" if found["low"] is None else f" ({found['low']:.4f} to {found['high']:.4f})"
            notes.append(
                f"On the test part the bound was not kept: {name.replace('_', ' ')} {found['value']:.4f}"
                f"{between}, asked for at most {bound:g}."
            )
    return notes
