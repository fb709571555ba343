"""Prepare a table larger than memory: training people are shuffled on disk, others are held for measuring."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer

from evenhand.arrays import Array, Codes, Floats
from evenhand.atomic import try_writing
from evenhand.checks import integer
from evenhand.tables.coding import Coding, Encoder
from evenhand.tables.csv_pieces import pieces_of
from evenhand.tables.dataset import Dataset, Whole
from evenhand.tables.files import no_sheet
from evenhand.tables.load import weights_in
from evenhand.tables.mapping import mapped
from evenhand.tables.pieces import FilePieces, Pieces, drawn
from evenhand.tables.splits import FRACTIONS, Split
from evenhand.tables.spool import Spool
from evenhand.tables.surveying import BUCKET, KEPT, PART, Survey, survey
from evenhand.wording import people
from evenhand.workflow.candidates import Settings

BUFFER = 200_000  # people
LEAST = 1_000  # people
_PREFIX = "people-"  # of folders in which people are shuffled


def pieces_for(
    table: Any, buffer_rows: int | None, *, encoding: str, decimal: str | None, sheet: str | None
) -> Pieces | None:
    """Return a table in pieces if it is to be streamed; None if it is to be read into memory."""
    if buffer_rows is not None:
        integer("buffer_rows", buffer_rows, low=LEAST)
    pieces = pieces_of(table, encoding=encoding, decimal=decimal)
    if pieces is None and buffer_rows is not None:
        raise ValueError(
            f"Got buffer_rows={buffer_rows}, but only Parquet and CSV files, frames of Dask, relations of "
            "DuckDB and data sets of Arrow can be streamed."
        )
    if isinstance(pieces, FilePieces):
        no_sheet(Path(table), sheet)
    return pieces if pieces is not None and (buffer_rows is not None or pieces.large) else None


def on_stream(dataset: Dataset, rows: Split, settings: Settings) -> list[str]:
    """Say which models learned from how many people, if not everybody is held in memory."""
    if dataset.whole is None:
        return []
    networks, some = people(dataset.whole.training), people(len(rows.train))
    measured = f"{len(rows.validation):,} and {len(rows.test):,} others"
    learned = [] if settings.policies == "trees" else ["networks learned from all of them"]
    learned += [] if settings.policies == "networks" else [f"trees from {some} drawn at random"]
    return [
        f"The table is streamed. The training part has {networks}: {', '.join(learned)}, references from "
        f"{some} drawn at random. Validation and test are {measured}."
    ]


@dataclass(frozen=True)
class Stream:
    """The training people on disk, and what is known about them before training begins."""

    spool: Spool
    coding: Coding
    preprocessor: ColumnTransformer
    classes: Array
    groups: Array
    total: Codes  # people in each group
    mean_weight: float | None
    key: Any  # identifies the table

    def buckets(self, seed: int) -> Iterator[tuple[Any, Codes, Codes, Floats | None]]:
        """Yield features, labels, groups and weights, bucket by bucket, in endless epochs."""
        encode, epoch = Encoder(self.coding, self.preprocessor), 0
        while True:
            for bucket in np.random.default_rng([seed, epoch]).permutation(self.spool.buckets):
                found = self.spool.read(int(bucket))
                if len(found):
                    weights = None if self.mean_weight is None else found["weight"] / self.mean_weight
                    labels, groups = (found[name].astype(np.int64) for name in ("label", "group"))
                    yield encode(found["numbers"], found["codes"]), labels, groups, weights
            epoch += 1


@contextmanager
def streamed(
    pieces: Pieces, *, seed: int, buffer_rows: int | None, folder: str | Path | None, **options: Any
) -> Iterator[tuple[Dataset, Split, Stream]]:
    """Read a table twice; yield the people held in memory, their split, and the stream.

    People are shuffled in `folder`, or in a temporary folder, and removed when the block ends. `options` are
    those of `survey`.
    """
    size = BUFFER if buffer_rows is None else buffer_rows
    found = survey(pieces, seed=seed, sample=size, **options)
    with TemporaryDirectory(prefix=_PREFIX, dir=_cleared(folder)) as place:
        yield _second_reading(found, Path(place), seed, size)


def _cleared(folder: str | Path | None) -> Path | None:
    """Return the folder, without people that a killed run left there; None if it can't be written."""
    try:
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
            try_writing(Path(folder) / "people")
            for left in Path(folder).glob(f"{_PREFIX}*"):
                shutil.rmtree(left, ignore_errors=True)
    except OSError:
        return None
    return None if folder is None else Path(folder)


def _second_reading(
    found: Survey, folder: Path, seed: int, buffer_rows: int
) -> tuple[Dataset, Split, Stream]:
    told = found.combinations
    everybody = int(told.people.sum())
    # More people than this would hardly make the measures more certain.
    share = min(FRACTIONS[1], buffer_rows / everybody)
    training = everybody * (1 - 2 * share)
    coding = Coding(found.contexts, found.kinds)
    spool = Spool(
        folder, numbers=len(coding.numbers), categories=len(coding.categories),
        buckets=math.ceil(training / buffer_rows), people=math.ceil(training),
    )  # fmt: skip
    held: list[tuple[Array, ...]] = []  # people in memory, batch by batch
    met, total, weight = np.zeros_like(told.people), np.zeros(len(told.names), np.int64), 0.0
    for batch in found.pieces.batches(found.used, coding.categories):
        labels, groups = told.in_rows(batch)
        known = labels >= 0
        if not known.any():
            continue
        rows = mapped(batch, found.changes, [found.roles.label])[known]
        labels, groups, at = labels[known], groups[known], rows.index.to_numpy()
        numbers, codes = coding.code(rows, found.pieces.place)
        weights = np.ones(len(at))
        if found.roles.weight is not None:
            weights = weights_in(rows[found.roles.weight], found.pieces.origin, some=False).to_numpy()
        chance = drawn(at, seed, PART)
        parts = np.where(chance < share, 1, np.where(chance < 2 * share, 2, 0))
        train = parts == 0
        coding.learn(numbers[train], codes[train])
        bucket = np.floor(drawn(at, seed, BUCKET) * spool.buckets).astype(np.int64)
        coded = (numbers, codes, labels, groups, weights)
        spool.add(bucket[train], *(part[train] for part in coded))
        counts = train & (weights > 0)
        np.add.at(met, (labels, groups), 1)
        total += np.bincount(groups[counts], minlength=len(total))
        weight += float(weights[counts].sum())
        kept = ~train | (drawn(at, seed, KEPT) < buffer_rows / training)
        held.append(tuple(part[kept] for part in (parts, at, *coded)))
    if (met != told.people).any():
        raise ValueError(
            f"{found.pieces.origin} has {people(int(met.sum()))} at the second reading, or others than at "
            f"the first, which found {people(everybody)}; expected the same each time."
        )
    dataset, split = _dataset(found, coding, held)
    mean = None if found.roles.weight is None else weight / total.sum()
    about = (told.classes, told.names, total, mean, found.pieces.key())
    return dataset, split, Stream(spool, coding, coding.preprocessor(), *about)


def _dataset(found: Survey, coding: Coding, held: list[tuple[Array, ...]]) -> tuple[Dataset, Split]:
    """Return the people held in memory as a data set that also has the counts of the whole table."""
    parts, rows, numbers, codes, labels, groups, weights = map(np.concatenate, zip(*held, strict=True))
    told, settled = found.combinations, found.combinations.settled
    name = str(settled.groups.name)
    by_label, by_group = told.people.sum(1).tolist(), told.people.sum(0).tolist()
    order = np.argsort(by_group, kind="stable")[::-1]
    whole = Whole(
        dict(zip(told.classes.tolist(), by_label, strict=True)),
        {told.names[at]: by_group[at] for at in order},
        coding.people,
    )
    source = found.pieces
    dataset = Dataset(
        name=source.name,
        contexts=coding.contexts(numbers, codes),
        label=pd.Series(told.classes[labels], name=found.roles.label),
        sensitive=pd.DataFrame({name: pd.Series(told.names[groups], dtype=object)}),
        pos_label=settled.positive,
        description=f"The user's own table, {source.origin}",
        source=source.origin,
        licence="the user's own",
        notes=found.notes,
        dates=found.dates,
        kept_rows=rows,
        crossed=tuple(found.roles.sensitive) if len(found.roles.sensitive) > 1 else (),
        merged=settled.merged,
        sha256=source.sha256(),
        decimal=source.decimal,
        weights=None if found.roles.weight is None else pd.Series(weights, name=found.roles.weight),
        whole=whole if len(parts) < sum(by_label) else None,
    )
    return dataset, Split(*(np.flatnonzero(parts == part) for part in range(3)))
