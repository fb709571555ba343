"""What needs single people, of a table too large to hold: measured on a sample of its rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Codes
from evenhand.auditing import Audit
from evenhand.auditing.counted import NO_SCORES, ONLY_COUNTED
from evenhand.tables.files import pyarrow_for

SAMPLED = 10_000  # rows
_OF_SAMPLE = {  # metrics that are taken from it, in words
    "consistency": "consistency and neighbours", "auc": "AUC", "calibration_error": "calibration"
}  # fmt: skip


def sample_rows(files: list[Path], columns: list[str], seed: Any, n: int = SAMPLED) -> pd.DataFrame:
    """Return rows of Parquet files drawn at random, indexed by their numbers over all files, from 0.

    The same seed draws the same rows. One part of a file (a row group) is in memory at a time.
    """
    pyarrow = pyarrow_for(files[0])
    opened = [pyarrow.parquet.ParquetFile(path) for path in files]
    total = sum(file.metadata.num_rows for file in opened)
    wanted = np.sort(np.random.default_rng(seed).choice(total, min(n, total), replace=False))
    drawn, start = [], 0
    for path, file in zip(files, opened, strict=True):
        for group in range(file.num_row_groups):
            end = start + file.metadata.row_group(group).num_rows
            here = wanted[np.searchsorted(wanted, start) : np.searchsorted(wanted, end)]
            if len(here):
                try:
                    rows = file.read_row_group(group, columns=columns)
                except (pyarrow.ArrowException, OSError) as error:
                    raise ValueError(f"{path} is not a complete Parquet file: {error}") from error
                drawn.append(rows.take(here - start).to_pandas().set_axis(here, axis=0))
            start = end
    return pd.DataFrame(pd.concat(drawn))


def with_sample(found: Audit, sample: Audit, rows: Codes) -> Audit:
    """Return a counted audit with what needs single people measured on a sample, which has these rows."""
    of_sample = sample.metrics[sample.metrics["metric"].isin(list(_OF_SAMPLE))]
    if of_sample.empty:  # there are neither features nor scores
        return found
    pairs = {name: rows[sample.neighbours[name].to_numpy(dtype=np.int64)] for name in ("person", "neighbour")}
    told = ", ".join(_OF_SAMPLE[name] for name in of_sample["metric"])
    note = (
        f"Measured on {len(rows):,} people drawn at random, each compared with the others of them: {told}. "
        "Intervals allow for the draw. Lists of other people were left out."
    )
    return replace(
        found,
        metrics=pd.concat([found.metrics, of_sample], ignore_index=True),
        neighbours=sample.neighbours.assign(**pairs),
        notes=[note if other == ONLY_COUNTED else other for other in found.notes if other != NO_SCORES],
    )
