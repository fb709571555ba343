"""Erase rows of a log on request, and export copies of it for audits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import delete, func, insert, select

from evenhand.atomic import replacing
from evenhand.decisions.lessons import hold_sitting
from evenhand.decisions.log import Log
from evenhand.decisions.schema import (
    ABOUT,
    contradictions,
    decisions,
    erasures,
    lessons,
    outcomes,
    policies,
    promotions,
)
from evenhand.tables.files import pyarrow_for


def erase(log: Log, ids: Sequence[str], now: float) -> int:
    """Delete everything that the log has under these ids; return the number of decisions deleted."""

    def work() -> int:
        with log.write() as connection:
            hold_sitting(connection)  # so that no lesson is written about what is erased here
            numbers = list(connection.scalars(select(decisions.c.number).where(decisions.c.id.in_(ids))))
            taught = connection.execute(delete(lessons).where(lessons.c.decision.in_(numbers))).rowcount
            deleted = [
                connection.execute(delete(table).where(table.c.id.in_(ids))).rowcount
                for table in (decisions, outcomes, contradictions)
            ]
            if any(deleted):
                connection.execute(insert(erasures).values(at=now, decisions=len(numbers), lessons=taught))
        if log.engine.dialect.name == "sqlite":  # SQLite's journal still has the rows
            with log.engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        return len(numbers)

    return int(log.commits.do(work))


def erased(log: Log) -> int:
    """Return the number of decisions that have been erased."""
    return int(log.scalar(select(func.coalesce(func.sum(erasures.c.decisions), 0))))


def export(log: Log, folder: Path) -> list[Path]:
    """Write Parquet files: decisions with outcomes, contradictions, policies, promotions and erasures."""
    pyarrow = pyarrow_for(folder / "decisions.parquet")
    joined = (
        select(
            decisions,
            outcomes.c.at.label("outcome_at"), outcomes.c.reward.label("outcome_reward"),
            outcomes.c.label.label("outcome_label"), lessons.c.reward.label("earned"), lessons.c.why,
            lessons.c.sitting,
        )
        .outerjoin(outcomes, outcomes.c.id == decisions.c.id)
        .outerjoin(lessons, lessons.c.decision == decisions.c.number)
        .order_by(decisions.c.number)
    )  # fmt: skip
    queries = {
        "decisions": joined,
        "contradictions": select(contradictions).order_by(contradictions.c.number),
        "policies": select(*ABOUT).order_by(policies.c.version),
        "promotions": select(promotions).order_by(promotions.c.number),
        "erasures": select(erasures).order_by(erasures.c.number),
    }
    folder.mkdir(parents=True, exist_ok=True)
    types = {int: pyarrow.int64(), float: pyarrow.float64(), str: pyarrow.string(), bool: pyarrow.bool_()}
    for name, query in queries.items():
        schema = pyarrow.schema(
            [(column.name, types[column.type.python_type]) for column in query.selected_columns]
        )
        with (
            replacing(folder / f"{name}.parquet") as partial,
            pyarrow.parquet.ParquetWriter(partial, schema) as file,
        ):
            for piece in log.pieces(query):
                rows = [row._asdict() for row in piece]
                file.write_table(pyarrow.Table.from_pylist(rows, schema=schema))
    return [folder / f"{name}.parquet" for name in queries]
