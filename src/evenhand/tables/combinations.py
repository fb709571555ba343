"""Labels and groups of a table past memory: its combinations are counted, and settled as people are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Array, Codes
from evenhand.groups import encode_groups, sorted_unique
from evenhand.tables.columns import is_number
from evenhand.tables.load import Settled, settled
from evenhand.tables.mapping import mapped
from evenhand.tables.roles import Roles

MOST = 10_000  # combinations of a label and sensitive values
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Combinations:
    """The label and the group of everybody who has both, whatever their number.

    `labels` and `groups` are positions among `classes` and `names`, one for each combination of a label and
    sensitive values; -1 for people who are left out. `people` counts the others, (labels, groups).
    """

    columns: list[str]
    keys: dict[Key, int]
    settled: Settled
    labels: Codes
    groups: Codes
    classes: Array
    names: Array
    people: Codes

    @classmethod
    def of(
        cls, counts: dict[Key, int], roles: Roles, changes: Mapping[Any, Any] | None, origin: str,
        notes: list[str], **options: Any,
    ) -> Combinations:  # fmt: skip
        """Settle the combinations that were counted; `options` are those of `settled`."""
        columns, each = [roles.label, *roles.sensitive], pd.Series(list(counts.values()))
        values = zip(*counts, strict=True)
        frame = pd.DataFrame({name: pd.Series(column) for name, column in zip(columns, values, strict=True)})
        found = settled(mapped(frame, changes, [roles.label]), roles, origin, notes, each=each, **options)
        target, number = found.target.to_numpy(dtype=object), is_number(found.target)
        classes, label = sorted_unique(target)
        classes = np.array(classes.tolist()) if number else classes
        groups = encode_groups(found.groups, len(target))
        labels, places = np.full(len(each), -1), np.full(len(each), -1)
        labels[found.people.index], places[found.people.index] = label, groups.codes
        people = np.zeros((len(classes), len(groups.names)), dtype=np.int64)
        np.add.at(people, (label, groups.codes), each[found.people.index].to_numpy())
        keys = {key: at for at, key in enumerate(counts)}
        return cls(columns, keys, found, labels, places, classes, groups.names, people)

    def in_rows(self, rows: pd.DataFrame) -> tuple[Codes, Codes]:
        """Return each row's label and group, -1 for people who are left out."""
        codes, keys = combinations_in(rows, self.columns)
        at = np.array([self.keys.get(key, -1) for key in keys], dtype=np.int64)
        if (at < 0).any():
            row = rows.index[int((at < 0)[codes].argmax())]
            raise ValueError(f"Row {row} of the table is no longer what it was when labels were counted.")
        return self.labels[at][codes], self.groups[at][codes]


def combinations_in(rows: pd.DataFrame, columns: list[str]) -> tuple[Codes, list[Key]]:
    """Return each row's combination of values as a position in a list of them; a gap is None.

    >>> codes, keys = combinations_in(pd.DataFrame({"y": [1, 1, 0], "s": ["f", None, "f"]}), ["y", "s"])
    >>> codes.tolist(), keys
    ([0, 1, 2], [(1, 'f'), (1, None), (0, 'f')])
    """
    codes, keys = np.zeros(len(rows), dtype=np.int64), [()]
    for name in columns:
        at, values = pd.factorize(rows[name])
        told = [*values.tolist(), None]
        both, codes = np.unique(codes * len(told) + np.where(at < 0, len(told) - 1, at), return_inverse=True)
        keys = [(*keys[code // len(told)], told[code % len(told)]) for code in both]
    return codes, keys
