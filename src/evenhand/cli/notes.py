"""What `fit` has to say beside its numbers: columns that tell the group, groups too small to say much."""

from __future__ import annotations

import shlex

from evenhand.datasets import Dataset
from evenhand.groups import encode_groups
from evenhand.metrics.response_columns import telling_columns
from evenhand.protocol.splits import Split

FEW = 30  # people of a group, in a part that is measured


def on_columns(dataset: Dataset) -> list[str]:
    """Name the columns that tell the group: leaving out the sensitive one leaves nothing out then."""
    name = str(dataset.sensitive_features.name)
    own = encode_groups(dataset.sensitive_features, len(dataset)).codes
    telling = telling_columns(dataset.contexts, None, own)
    certain = [column for column in dataset.contexts.columns if column in {*telling.alone, *telling.more}]
    return [_told(str(column), "tells", name) for column in certain] + [
        _told(str(column), "may tell", name) for column in telling.perhaps
    ]


def _told(column: str, how: str, name: str) -> str:
    return (
        f"{column!r} {how} {name!r}, or a part of it: what is decided by such a column, no flip rate shows. "
        f"Leave it out with --drop {shlex.quote(column)}."
    )


def on_groups(dataset: Dataset, parts: Split) -> list[str]:
    """Name the groups of which few people choose or test the model."""
    notes = []
    for name in sorted(dataset.sensitive_features.unique().tolist(), key=str):
        here = (dataset.sensitive_features == name).to_numpy()
        counts = {part: int(here[getattr(parts, part)].sum()) for part in ("validation", "test")}
        if min(counts.values()) < FEW:
            notes.append(
                f"The group {str(name)!r} has {counts['validation']} people in the validation part and "
                f"{counts['test']} in the test part: fewer than {FEW} say little about a group."
            )
    return notes
