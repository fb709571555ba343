"""Audit the decisions in a large Parquet file, or in a folder of them: DuckDB counts, nothing is loaded."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from evenhand.auditing import Audit, audit
from evenhand.checks import one_of
from evenhand.code_version import Source
from evenhand.frames import duckdb_module
from evenhand.groups import JOINT
from evenhand.tables.files import pyarrow_for
from evenhand.tables.grouping import UNKNOWN, has_no_group
from evenhand.tables.paths import bare_name
from evenhand.tables.pieces import LARGE, ParquetPieces
from evenhand.tables.roles import Roles, find_roles, guessed_positive, written_alike
from evenhand.wording import listed, people
from evenhand.workflow.audit_plan import FileAudit
from evenhand.workflow.prediction_column import added_by_predict, check_predictions, would_flip
from evenhand.workflow.table import NoUsableRowsError

if TYPE_CHECKING:
    from evenhand.metrics.engine import Engine

_WEIGHT = "weight in evenhand's table"


@dataclass(frozen=True)
class LargeFile:
    """Parquet files that are audited without loading them."""

    path: Path
    files: list[Path]

    def audit(
        self, predictions: str | None, *, label: str | None, sensitive: Sequence[str] | None, positive: Any,
        drop: Sequence[str] | None, weight: str | None, unknown: str, seed: int, **settings: Any,
    ) -> FileAudit:  # fmt: skip
        """Audit a column of decisions, or of scores at a threshold.

        People without a label or a group are left out, and counted in the notes. `settings` are those of
        `evenhand.audit`.
        """
        if predictions is None:
            raise ValueError(f"{self.path} is only counted, which needs the column with the predictions.")
        duckdb = duckdb_module(str(self.path))
        settings["random_state"] = seed
        pieces = ParquetPieces(self.path, self.files)
        try:
            with ThreadPoolExecutor(1) as beside:  # what one reads from disk, the other finds cached
                digest = beside.submit(pieces.sha256)
                table = duckdb.read_parquet([str(path) for path in self.files])
                found, target, groups = self._audited(
                    table, predictions, label, sensitive, positive, drop or (), weight, unknown, settings
                )
        except duckdb.Error as error:
            pieces.check()
            told = str(error).strip().splitlines()[0]
            raise ValueError(f"{self.path} can't be counted as Parquet: {told}") from error
        pieces.check()
        whole = digest.result()
        source: Source = {
            "name": bare_name(self.path), "people": found.about["people"], "sha256": whole,
            "source": str(self.path),
        }  # fmt: skip
        return FileAudit(found, target, JOINT.join(groups), source)

    def _audited(
        self, table: Any, predictions: str, label: str | None, sensitive: Sequence[str] | None, positive: Any,
        drop: Sequence[str], weight: str | None, unknown: str, settings: dict[str, Any],
    ) -> tuple[Audit, str, list[str]]:  # fmt: skip
        import narwhals as nw

        from evenhand.metrics.engine import ROW, Engine
        from evenhand.workflow.predicted_flips import PredictedFlips

        engine, origin = Engine(nw.from_native(table)), str(self.path)
        some = engine.first(list(engine.schema))
        if some.empty:
            raise ValueError(f"{origin} has no rows; expected at least one person.")
        check_predictions(some, predictions, origin, list(sensitive or ()))
        notes = [f"{origin} was counted by DuckDB: it is a folder, or has more than {LARGE:,} rows."]
        named = label or predictions
        roles = find_roles(some, origin, notes, label=named, sensitive=sensitive, drop=drop, weight=weight)
        truth = None if label is None else roles.label
        keep = one_of("unknown", unknown, ("keep", "drop")) == "keep"
        scored = settings["threshold"] is not None and label is None
        known, labels, lacking = _known(engine, roles, label is not None, scored, keep, notes)
        if labels is not None:
            if positive is None:
                positive, said = guessed_positive(labels)
                notes += said
            positive = written_alike(positive, labels)
        told = (predictions, *roles.sensitive, roles.label)
        added = [name for name in added_by_predict(some) if name not in told]
        notes += [f"Left out, since `evenhand predict` added them: {listed(added)}."] if added else []

        left_out = {*roles.dropped, *added} - {roles.weight}
        used = [name for name in engine.schema if name not in left_out]
        everybody = known(engine.numbered())
        found = audit(
            predictions, everybody.select(*used, ROW), truth, pos_label=positive,
            sensitive_features=roles.sensitive, sample_weight=roles.weight, **settings,
        )  # fmt: skip
        if would_flip(some, predictions) is not None:
            prefix = predictions.removesuffix("decision")
            features = [name for name in used if name not in (*told, roles.weight)]
            names = (roles.sensitive, truth, roles.weight, features)
            found = PredictedFlips(Engine(everybody), prefix, *names).added_to(found, settings["n_listed"])
        tally = None if found.tally is None else replace(found.tally, unknown=lacking)
        return replace(found, tally=tally).with_notes(*notes), roles.label, roles.sensitive


def large_file(path: Path, of_people: dict[str, Any]) -> LargeFile | None:
    """Return a folder of Parquet files, or a file of more than LARGE rows if DuckDB is installed; else None.

    `of_people` are options that need people in memory. With one of them, None is returned for a file, and a
    folder is an error.
    """
    given = [name for name, value in of_people.items() if value]
    if path.is_dir() and (files := sorted(path.glob("*.parquet"))):
        if given:
            raise ValueError(
                f"Got {listed(given)} and the folder {path}, which is only counted; expected a file. "
                "For a model: evenhand predict MODEL FOLDER, then audit what it wrote with --predictions."
            )
        return LargeFile(path, files)
    counts = path.suffix.lower() == ".parquet" and importlib.util.find_spec("duckdb") is not None
    if given or not counts or not path.is_file():
        return None
    pyarrow = pyarrow_for(path)
    try:
        rows = pyarrow.parquet.read_metadata(path).num_rows
    except (pyarrow.ArrowException, OSError):
        return None  # reading the file will say what is wrong with it
    return LargeFile(path, [path]) if rows > LARGE else None


def _known(
    engine: Engine, roles: Roles, labelled: bool, scored: bool, keep: bool, notes: list[str]
) -> tuple[Callable[[Any], Any], pd.Series[Any] | None, int]:
    """Return a filter for people with a label and a group, the labels, and how many lack a known group.

    The last number is weighted if there are weights.
    """
    import narwhals as nw

    from evenhand.metrics.engine import PEOPLE

    told = [*roles.sensitive, *([] if scored else [roles.label])]
    by = {f"key{at}": engine.column(name) for at, name in enumerate(told)}
    weights = {} if roles.weight is None else {_WEIGHT: nw.col(_WEIGHT)}
    counts = (engine if roles.weight is None else _weighted(engine, roles.weight)).count(by, weights)
    keys = counts[list(by)].set_axis(told, axis=1)
    renamed, left = [], []
    lost, here = pd.Series(False, index=keys.index), pd.Series(True, index=keys.index)
    for name in [*([roles.label] if labelled else []), *roles.sensitive]:
        lacking = pd.Series(keys[name].isna() if name == roles.label else has_no_group(keys[name]))
        lost |= lacking & (name != roles.label) & (not keep)
        lacking &= here  # people left out for one reason are not counted for another
        if not lacking.any():
            continue
        column, marks = nw.col(name), keys.loc[lacking, name].dropna().unique().tolist()
        missing = column.is_null() | column.is_in(marks) if marks else column.is_null()
        who = people(int(counts.loc[lacking, PEOPLE].sum()))
        if name != roles.label and keep:
            notes.append(f"{who} with unknown {name!r}: they are the group {UNKNOWN!r}.")
            kept = nw.when(missing).then(nw.lit(UNKNOWN)).otherwise(column.cast(nw.String))
            renamed.append(kept.alias(name))
            continue
        what = f"without {name!r}" if name == roles.label else f"with unknown {name!r}"
        notes.append(f"Left out: {who} {what}.")
        here &= ~lacking
        left.append(~missing)
    if not here.any():
        raise NoUsableRowsError(f"Nobody in the table can be audited. {' '.join(notes)}")
    labels = None if scored else keys[roles.label].dropna()

    def known(frame: Any) -> Any:
        frame = frame.filter(*left) if left else frame
        return frame.with_columns(*renamed) if renamed else frame

    return known, labels, round(float(counts.loc[lost, _WEIGHT if weights else PEOPLE].sum()))


def _weighted(engine: Engine, weight: str) -> Engine:
    """Return the table with how many people each row stands for: 0 where that is no number, as in `amounts`.

    Weights are checked later, in the audit: those of people who are left out may be anything.
    """
    import narwhals as nw

    from evenhand.metrics.engine import Engine

    name = weight.replace('"', '""')
    native = engine.frame.to_native().select(f'*, try_cast("{name}" as double) as "{_WEIGHT}"')
    found = nw.col(_WEIGHT)
    amount = nw.when(found.is_finite() & (found > 0)).then(found).otherwise(nw.lit(0.0))
    return Engine(nw.from_native(native).with_columns(amount.alias(_WEIGHT)))
