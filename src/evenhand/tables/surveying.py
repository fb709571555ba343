"""The first reading of a table larger than memory: count labels and groups, and sample rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Array, Codes
from evenhand.groups import encode_groups, sorted_unique
from evenhand.tables.columns import kinds_of_columns, tidy_columns
from evenhand.tables.load import Settled, settled
from evenhand.tables.mapping import mapped
from evenhand.tables.pieces import Pieces, drawn
from evenhand.tables.roles import Roles, find_roles

MOST = 10_000  # combinations of a label and sensitive values
Key = tuple[Any, ...]
SAMPLE, PART, BUCKET, KEPT = range(4)  # streams of random numbers by row


@dataclass(frozen=True)
class Combinations:
    """The label and the group of every combination of a label and sensitive values in a table.

    `labels` and `groups` are positions in `classes` and `names`, one per combination; -1 if its people are
    left out. `people` counts the others; its shape is (labels, groups).
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
        """Find labels and groups for counted combinations; `options` are those of `settled`."""
        columns, each = [roles.label, *roles.sensitive], pd.Series(list(counts.values()))
        values = zip(*counts, strict=True)
        frame = pd.DataFrame({name: pd.Series(column) for name, column in zip(columns, values, strict=True)})
        found = settled(mapped(frame, changes, [roles.label]), roles, origin, notes, each=each, **options)
        target = found.target.to_numpy(dtype=object)
        classes, label = sorted_unique(target)
        classes = classes if found.target.dtype == object else np.array(classes.tolist())
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
    """Return each row's combination of values as a position in a list of combinations; a gap is None.

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


@dataclass(frozen=True)
class Survey:
    """What is known about a table after the first reading."""

    pieces: Pieces
    roles: Roles
    used: list[str]  # the columns that are read
    changes: Mapping[Any, Any] | None
    rows: int
    combinations: Combinations
    contexts: pd.DataFrame  # features of the sample
    dates: dict[str, str]
    notes: list[str]

    @property
    def kinds(self) -> dict[str, str]:
        """Each feature's kind."""
        return kinds_of_columns(self.contexts, self.dates)


def survey(
    pieces: Pieces, *, label: str | None, sensitive: str | Sequence[str] | None, drop: str | Sequence[str],
    categorical: str | Sequence[str], map: Mapping[Any, Any] | None, weight: str | None, seed: int,
    sample: int, **people: Any,
) -> Survey:  # fmt: skip
    """Read a table once; `people` are the options of `settled`.

    Roles are guessed from the first rows; what a column holds is decided on `sample` rows drawn at random.
    """
    origin = pieces.origin
    first = next((batch for batch in pieces.batches() if len(batch)), pd.DataFrame())
    notes = list(pieces.notes)
    if not first.shape[1]:
        raise ValueError(f"{origin} has no rows; expected at least one.")
    roles = find_roles(
        first, origin, notes, label=label, sensitive=sensitive, drop=drop, categorical=categorical,
        weight=weight,
    )  # fmt: skip
    used = [name for name in first.columns if name not in roles.dropped or name == roles.weight]
    counts, met = _counted(pieces, used, [roles.label, *roles.sensitive], seed, sample)
    rows = sum(counts.values())
    found = Combinations.of(counts, roles, map, origin, notes, **people)
    inside = found.in_rows(met)[0] >= 0
    met = mapped(met, map, [roles.label], origin if rows <= sample else "")
    known = met[inside].drop(columns=[roles.label, *roles.sensitive, *roles.dropped], errors="ignore")
    said: list[str] = []
    contexts, dates = tidy_columns(known, said, codes=roles.codes, place=pieces.place)
    roles.check_features(contexts, origin)
    if rows > sample:
        said.insert(0, f"What each column holds was decided on {sample:,} rows drawn at random.")
    notes = [*notes, *said, *found.settled.said]
    return Survey(pieces, roles, used, map, rows, found, contexts, dates, notes)


def _counted(
    pieces: Pieces, used: list[str], columns: list[str], seed: int, sample: int
) -> tuple[dict[Key, int], pd.DataFrame]:
    """Return how many rows have each label and group, and a random sample of rows, in their order.

    Every row has its own random number, whatever was read before it; those with the lowest are the sample.
    """
    counts: Counter[Key] = Counter()
    pool: list[pd.DataFrame] = []
    numbers, below = np.empty(0), 1.0
    for batch in pieces.batches(used):
        at, keys = combinations_in(batch, columns)
        counts.update(dict(zip(keys, np.bincount(at, minlength=len(keys)).tolist(), strict=True)))
        if len(counts) > MOST:
            raise ValueError(
                f"{pieces.origin} has more than {MOST:,} combinations of {', '.join(map(repr, columns))}; "
                "expected a few labels and groups. Put numbers into bands first."
            )
        own = drawn(batch.index.to_numpy(), seed, SAMPLE)
        pool.append(batch[own < below])
        numbers = np.concatenate([numbers, own[own < below]])
        if len(numbers) > 2 * sample:
            below = np.partition(numbers, sample)[sample]
            pool = [pd.concat(pool)[numbers < below]]
            numbers = numbers[numbers < below]
    lowest = np.sort(np.argsort(numbers)[:sample])
    return dict(counts), pd.concat(pool).iloc[lowest]
