"""What a file's audit is asked for, and what it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Codes, Floats
from evenhand.auditing import Audit, audit
from evenhand.code_version import Source
from evenhand.progress import Progress
from evenhand.tables.load import groups_in
from evenhand.workflow.deployed import Deployed


@dataclass(frozen=True)
class FileAudit:
    """The audit of a file, and what a report says about the file."""

    audit: Audit  # people are numbered by their row in the file, from 0
    label: str
    sensitive: str
    source: Source


@dataclass(frozen=True)
class Columns:
    """The roles of the file's columns, as far as they were given."""

    label: str | None
    sensitive: Sequence[str] | None
    positive: str | None
    drop: Sequence[str]
    categorical: Sequence[str]
    unknown: str
    merge_small: str | None
    part: str
    map: Mapping[Any, Any]
    weight: str | None

    def check_unused(self, held: Deployed) -> None:
        """Raise if a name would be ignored, since a model of `evenhand fit` knows its columns."""
        if self.sensitive and held.sensitive and list(self.sensitive) != held.sensitive:
            raise ValueError(
                f"Got the sensitive column {', '.join(self.sensitive)}, which has no effect with this model: "
                f"it has a policy for every group of {', '.join(held.sensitive)}. To compare other groups, "
                "audit its decisions: evenhand predict, then evenhand audit on what that wrote, with "
                f"--predictions decision --sensitive {', '.join(self.sensitive)}."
            )
        grouped = self.sensitive and not held.sensitive
        merging = [self.merge_small] if self.merge_small and not grouped else []
        for what, names in (
            ("drop", self.drop), ("categorical", self.categorical), ("merge_small", merging),
        ):  # fmt: skip
            if names:
                raise ValueError(
                    f"Got {', '.join(names)} in {what}, which has no effect with this model: it knows its "
                    "columns."
                )

    def groups(
        self, rows: pd.DataFrame, names: list[str], origin: str, notes: list[str], least: int
    ) -> tuple[pd.Series[Any], dict[str, str]]:
        """Return each row's group, missing if it is unknown, and the groups that were merged."""
        merging: dict[str, Any] = {"merge_small": self.merge_small, "min_group": least}
        groups, merged = groups_in(rows, names, origin, notes, unknown=self.unknown, **merging)
        return groups.reindex(rows.index), merged


@dataclass(frozen=True)
class Settings:
    """How to measure."""

    options: dict[str, Any]  # of `audit`
    progress: Progress

    def audit(
        self, asked: Any, X: pd.DataFrame, y: Any, groups: Any, pos_label: Any, rows: Codes, weights: Any
    ) -> Audit:
        """Run the audit; number people by their row in the file, even if others were left out."""
        with self.progress.stage("Measuring"):
            found = audit(
                asked, X if X.shape[1] else None, None if y is None else y.to_numpy(),
                sensitive_features=groups, pos_label=pos_label, sample_weight=weights, **self.options,
            )  # fmt: skip
        return found.numbered(rows)


def amounts(weights: pd.Series[Any]) -> Floats:
    """Return how many people each row of a file stands for; 0 where that is no number.

    >>> amounts(pd.Series(["2", None, "?"])).tolist()
    [2.0, 0.0, 0.0]
    """
    found = pd.to_numeric(weights, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    return np.where(np.isfinite(found), np.maximum(found, 0), 0)
