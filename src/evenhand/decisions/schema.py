"""The tables of a decision log, and the migrations that bring an older log up to date."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    func,
    insert,
    select,
    text,
)

from evenhand.decisions.errors import WrongLogError

metadata = MetaData()
_Number = BigInteger().with_variant(Integer, "sqlite")  # SQLite increments INTEGER keys only
_ID = String(200)


def _numbered(name: str, *columns: Column[Any]) -> Table:
    """Return a table whose rows are numbered as they are written; no number is used twice."""
    number = Column("number", _Number, primary_key=True, autoincrement=True)
    return Table(name, metadata, number, *columns, sqlite_autoincrement=True)


schema_version = Table("schema_version", metadata, Column("version", Integer, primary_key=True))

settings = Table(
    "settings", metadata, Column("name", String(40), primary_key=True), Column("value", Text, nullable=False)
)

decisions = _numbered(
    "decisions",
    Column("id", _ID, nullable=False, unique=True),
    Column("at", Double, nullable=False),  # seconds since 1970, by the decider's clock
    Column("group", Text, nullable=False),
    Column("context", Text, nullable=False),  # JSON: the columns that the model reads
    Column("action", Text, nullable=False),
    Column("probability", Double, nullable=False),
    Column("by_group", Text, nullable=False),  # JSON: every group's probabilities, in the policy's order
    Column("version", Integer, nullable=False),
    Column("revealed", Boolean, nullable=False),
    Column("held_out", Boolean, nullable=False),
    Column("floor", Double, nullable=False),  # the minimum probability of every action
    Column("explored", Boolean),  # whether the policy alone would have decided differently; None: unknown
)

_at = Index("decisions_at", decisions.c.at)  # to find overdue decisions

# The first outcome of an id counts. Others that contradict it are kept in a table of their own.
outcomes = _numbered(
    "outcomes",
    Column("id", _ID, nullable=False, unique=True),
    Column("at", Double, nullable=False),
    Column("received", Double, nullable=False),
    Column("reward", Double),
    Column("label", Text),
)
contradictions = _numbered(
    "contradictions",
    Column("id", _ID, nullable=False, index=True),
    Column("at", Double, nullable=False),
    Column("received", Double, nullable=False),
    Column("reward", Double),
    Column("label", Text),
)

# The reward of each decision, once it is known. `sitting` says when, and so which policies learned from it.
lessons = Table(
    "lessons",
    metadata,
    Column("decision", _Number, primary_key=True, autoincrement=False),
    Column("sitting", Integer, nullable=False),
    Column("reward", Double, nullable=False),
    Column("why", String(20), nullable=False),  # outcome, unrevealed or overdue
)
_in_order = Index("lessons_in_order", lessons.c.sitting, lessons.c.decision)

policies = Table(
    "policies",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("parent", Integer),  # None: the log began with it
    Column("at", Double, nullable=False),
    Column("learned_to", Integer, nullable=False),  # the last sitting
    Column("rows", Integer, nullable=False),  # the number of lessons on top of the parent's
    Column("piece", Integer, nullable=False),  # the number of lessons learned at a time
    Column("fingerprint", String(64), nullable=False),
    Column("model", LargeBinary, nullable=False),  # a skops file
)
ABOUT = [column for column in policies.c if column.name != "model"]  # all columns but the model itself
promotions = _numbered(
    "promotions",
    Column("at", Double, nullable=False),
    Column("version", Integer, nullable=False),
    Column("why", String(20), nullable=False),  # start, promoted, forced or rolled back
    Column("note", Text, nullable=False),
    Column("evidence", Text, nullable=False),  # JSON
)
erasures = _numbered(
    "erasures",
    Column("at", Double, nullable=False),
    Column("decisions", Integer, nullable=False),
    Column("lessons", Integer, nullable=False),
)


def _number_outcomes(connection: Connection) -> None:
    """Give outcomes numbers, and add the indexes for joining and learning piece by piece."""
    connection.execute(text("CREATE TABLE unnumbered AS SELECT * FROM outcomes"))
    outcomes.drop(connection)
    outcomes.create(connection)
    names = "id, at, received, reward, label"
    connection.execute(
        text(f"INSERT INTO outcomes ({names}) SELECT {names} FROM unnumbered ORDER BY received")
    )
    connection.execute(text("DROP TABLE unnumbered"))
    connection.execute(text("DROP INDEX ix_lessons_sitting"))
    for index in (_at, _in_order):
        index.create(connection)


def _tell_floors(connection: Connection) -> None:
    """Add each decision's floor, which was the same for everybody."""
    told = connection.scalar(select(settings.c.value).where(settings.c.name == "rules"))
    floor = json.loads(told)["explore"] if told else 0.0
    connection.execute(
        text(f"ALTER TABLE decisions ADD COLUMN floor DOUBLE PRECISION NOT NULL DEFAULT {floor!r}")
    )
    connection.execute(text("ALTER TABLE decisions ADD COLUMN explored BOOLEAN"))


# The n-th brings a log from version n to n + 1; a new log needs none. Never change a released one.
MIGRATIONS: list[Callable[[Connection], None]] = [_number_outcomes, _tell_floors]


def migrate(connection: Connection) -> None:
    """Create the tables of a new log, or bring an old one up to date; raise if it is of a newer version."""
    schema_version.create(connection, checkfirst=True)
    version, newest = connection.scalar(select(func.max(schema_version.c.version))), len(MIGRATIONS) + 1
    if version is None:
        metadata.create_all(connection)
    elif version > newest:
        raise WrongLogError(
            f"Got a log of version {version}, but this evenhand knows versions up to {newest}: "
            "expected a newer evenhand."
        )
    else:
        for migration in MIGRATIONS[version - 1 :]:
            migration(connection)
    if version != newest:
        connection.execute(insert(schema_version).values(version=newest))
