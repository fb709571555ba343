"""The summary that every report is made of: plain JSON, with a type for each of its parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from evenhand.atomic import write_text
from evenhand.checks import one_of
from evenhand.code_version import Made
from evenhand.metrics.measures import GroupRow, Measure
from evenhand.report.typed import check_typed

SCHEMA = "evenhand-summary-1"
# What `summarise.summary_of` always writes, and the page reads without checking.
_WHOLE = (
    "sentence", "models", "published", "groups", "convergence", "submodels", "persons",
    "published_reward", "decided_by", "tables", "notes",
)  # fmt: skip
KINDS = ("fit", "audit", "reproduce", "compare")

Metrics = dict[str, Measure]
Value = str | float | int | None  # a cell of somebody's row


class ModelEntry(TypedDict):
    """A model and its measures; the slider moves along the models of one family that have a λ."""

    name: str
    method: str
    family: str
    criterion: str | None
    divergence_weight: float | None
    chosen: bool
    front: bool
    metrics: Metrics


class PublishedEntry(TypedDict):
    """What a paper reports of one of its methods."""

    method: str
    criterion: str
    metrics: Metrics
    beside: NotRequired[list[str]]  # methods with other names that are also compared with it


class Curve(TypedDict):
    """How training went: measures against steps."""

    name: str
    steps: list[float]
    series: dict[str, list[float]]
    counted: NotRequired[str]  # what the steps are; by default, people seen in training


class Person(TypedDict):
    """One person: what each group's policy decides about them, and their features."""

    person: int
    group: str
    label: str | None
    decisions: list[str]
    probabilities: list[float | None]
    gap: float | None
    flips: bool
    features: list[Value]


class Persons(TypedDict):
    """The people that a page lists; of all `people`, `flips` have a decision that flips."""

    groups: list[str]
    columns: list[str]
    rows: list[Person]
    people: int
    flips: int


class RewardStudy(TypedDict):
    """What the published reward does on the same people."""

    divergence: float
    published_push: float
    published_noise: float
    log_ratio_push: float
    on: NotRequired[str]
    models: NotRequired[list[ModelEntry]]


class Table(TypedDict):
    """A table of text. `words` come before it; in a `numeric` table, the first column names the row."""

    title: str
    caption: str
    columns: list[str]
    rows: list[list[str]]
    words: NotRequired[str]
    numeric: NotRequired[bool]


class Sheet(TypedDict):
    """Tables that are printed on one sheet, with what has to be said beside them."""

    title: str
    tables: list[Table]
    notes: list[str]


class TwinStep(TypedDict):
    """A column of a person and their counterpart, and the decision once it has the counterpart's value."""

    column: str
    values: list[Value]
    changed: bool
    decision: str
    probability: float | None


class TwinPair(TypedDict):
    """A person and their counterpart; lists hold the person's value first, then the counterpart's."""

    person: int
    counterpart: int | None
    decisions: list[str]
    probabilities: list[float | None]
    steps: list[TwinStep]


class TwinDirection(TypedDict):
    """People of a group with counterparts in another: the columns that carry it, and some pairs."""

    group: str
    counterpart_group: str
    columns: list[str]
    shares: list[Measure]
    clear: list[bool]
    pairs: list[TwinPair]


class TwinsShown(TypedDict):
    """Counterparts in other groups: a table of all directions, and those clearly above chance."""

    how: str
    flips: Table
    positive: str
    directions: list[TwinDirection]


class Study(TypedDict):
    """One data set; `summarise.summary_of` fills in what is left out.

    `points` are the models from which a family's model was chosen; they are faint in the figure, with one
    front per family.
    """

    name: str
    label: str
    pos_label: str
    sensitive: str
    people: int
    models: list[ModelEntry]
    sentence: NotRequired[str]
    points: NotRequired[list[ModelEntry]]
    published: NotRequired[list[PublishedEntry]]
    groups: NotRequired[list[GroupRow]]
    convergence: NotRequired[list[Curve]]
    submodels: NotRequired[list[ModelEntry]]
    persons: NotRequired[Persons | None]
    published_reward: NotRequired[RewardStudy | None]
    decided_by: NotRequired[str]
    chosen_by: NotRequired[str]  # what it is best by, and within which bounds
    upwards: NotRequired[str]  # the measure drawn upwards, and of the front; by default, accuracy
    widest: NotRequired[dict[str, str] | None]  # the label whose share differs most, and the groups
    filled_up_to: NotRequired[int | None]  # smaller groups count in differences as if they had so many people
    trained_on: NotRequired[int | None]  # how many of these people an audited model was trained on
    sheet: NotRequired[Sheet | None]  # a rule's tables, filled with what was audited
    twins: NotRequired[TwinsShown | None]
    tables: NotRequired[list[Table]]
    notes: NotRequired[list[str]]


class Overview(TypedDict):
    """What holds for all studies together."""

    sentence: str
    tables: list[Table]
    notes: list[str]


class Summary(TypedDict):
    """A whole report."""

    schema: str
    kind: str
    title: str
    overview: NotRequired[Overview | None]
    studies: list[Study]
    made: Made


def write_summary(summary: Summary, path: str | Path) -> Path:
    """Write a summary as JSON, whole or not at all; return its path."""
    return write_text(path, as_json(summary))


def as_json(summary: Summary) -> str:
    """Return a summary as JSON."""
    return json.dumps(summary, indent=1, allow_nan=False, ensure_ascii=False)


def read_summary(path: str | Path) -> Summary:
    """Read a summary that `write_summary` wrote.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it holds something else; the message says what is wrong with it.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}; expected a summary saved by evenhand.")
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON ({error}); expected a summary saved by evenhand.") from error
    return check_summary(held, str(path))


def check_summary(summary: Any, origin: str = "the summary") -> Summary:
    """Return the summary if it has the shape that a page needs, else raise ValueError."""
    if not isinstance(summary, dict) or summary.get("schema") != SCHEMA:
        came = summary.get("schema") if isinstance(summary, dict) else type(summary).__name__
        raise ValueError(f"{origin} has the schema {came!r}, but expected {SCHEMA!r}.")
    one_of("kind", summary.get("kind"), KINDS)
    check_typed(summary, Summary, origin)
    for number, study in enumerate(summary["studies"]):
        for name in _WHOLE:
            if name not in study:
                raise ValueError(f"{origin}, study {number + 1} has no {name!r}; expected a whole summary.")
    return summary  # type: ignore[return-value]
