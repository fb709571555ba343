"""The tables of a decision log, and the migrations that bring an older log up to date."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    func,
    insert,
    select,
)

from evenhand.decisions.errors import WrongLogError

metadata = MetaData()
_Number = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up INTEGER keys only
_ID = String(200)

schema_version = Table("schema_version", metadata, Column("version", Integer, primary_key=True))

settings = Table(
    "settings", metadata, Column("name", String(40), primary_key=True), Column("value", Text, nullable=False)
)

decisions = Table(
    "decisions",
    metadata,
    Column("number", _Number, primary_key=True, autoincrement=True),
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
    sqlite_autoincrement=True,  # the number of an erased decision is never given again
)

# The first outcome of an id stands; others that contradict it are kept beside it.
outcomes = Table(
    "outcomes",
    metadata,
    Column("id", _ID, primary_key=True),
    Column("at", Double, nullable=False),
    Column("received", Double, nullable=False),
    Column("reward", Double),
    Column("label", Text),
)
contradictions = Table(
    "contradictions",
    metadata,
    Column("number", _Number, primary_key=True, autoincrement=True),
    Column("id", _ID, nullable=False, index=True),
    Column("at", Double, nullable=False),
    Column("received", Double, nullable=False),
    Column("reward", Double),
    Column("label", Text),
    sqlite_autoincrement=True,
)

# What each decision earned, once that is known; `sitting` says when, and with it what a policy learned from.
lessons = Table(
    "lessons",
    metadata,
    Column("decision", _Number, primary_key=True, autoincrement=False),
    Column("sitting", Integer, nullable=False, index=True),
    Column("reward", Double, nullable=False),
    Column("why", String(20), nullable=False),  # outcome, unrevealed or overdue
)

policies = Table(
    "policies",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("parent", Integer),  # None: what the log began with
    Column("at", Double, nullable=False),
    Column("learned_to", Integer, nullable=False),  # the last sitting
    Column("rows", Integer, nullable=False),  # how many lessons came on top of the parent's
    Column("piece", Integer, nullable=False),  # how many were learned at a time
    Column("fingerprint", String(64), nullable=False),
    Column("model", LargeBinary, nullable=False),  # a skops file
)
promotions = Table(
    "promotions",
    metadata,
    Column("number", _Number, primary_key=True, autoincrement=True),
    Column("at", Double, nullable=False),
    Column("version", Integer, nullable=False),
    Column("why", String(20), nullable=False),  # start, promoted, forced or rolled back
    Column("note", Text, nullable=False),
    Column("evidence", Text, nullable=False),  # JSON
    sqlite_autoincrement=True,
)
erasures = Table(
    "erasures",
    metadata,
    Column("number", _Number, primary_key=True, autoincrement=True),
    Column("at", Double, nullable=False),
    Column("decisions", Integer, nullable=False),
    Column("lessons", Integer, nullable=False),
    sqlite_autoincrement=True,
)

# The n-th brings a log from version n to n + 1. None is ever changed once it was released.
MIGRATIONS: list[Callable[[Connection], None]] = [metadata.create_all]


def migrate(connection: Connection) -> None:
    """Bring a log up to date, or raise if it is newer than this program."""
    schema_version.create(connection, checkfirst=True)
    version = connection.scalar(select(func.max(schema_version.c.version))) or 0
    if version > len(MIGRATIONS):
        raise WrongLogError(
            f"Got a log of version {version}, but this evenhand knows versions up to {len(MIGRATIONS)}: "
            "expected a newer evenhand."
        )
    for number, migration in enumerate(MIGRATIONS[version:], start=version + 1):
        migration(connection)
        connection.execute(insert(schema_version).values(version=number))
