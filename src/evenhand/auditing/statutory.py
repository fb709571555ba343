"""Tables that a regulation requires, made from an audit's counts. They give numbers, not a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand.auditing.tally import Tally
from evenhand.checks import number, one_of
from evenhand.wording import as_plain, listed, people

if TYPE_CHECKING:
    from evenhand.auditing.result import Audit

PRESETS = ("nyc-ll144", "four-fifths")
SMALL = 0.02  # categories with a smaller share of the people may be left out of comparisons
NOTE = "Note"
_PERCENT = ("Selection Rate", "Scoring Rate", "Difference", "From", "To")
_DIGITS = {  # decimal places of numbers that are not counts
    "Impact Ratio": 3, "Low": 3, "High": 3, "z": 2, "z-test p": 4, "Fisher p": 4, "Holm p": 4, "Shortfall": 1
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class Statutory:
    """The tables of a regulation, filled with an audit's counts.

    Attributes
    ----------
    preset : str
        The regulation: 'nyc-ll144' or 'four-fifths'.
    title : str
        The name of the regulation.
    tables : dict of DataFrame
        The tables by heading, one row per category. Unknown rates, and ratios that were left out, are NaN.
        The column 'Note' says which categories were left out.
    notes : list of str
        Who is not in the tables, how the numbers were computed, and what they do not show.
    """

    preset: str
    title: str
    tables: dict[str, pd.DataFrame]
    notes: list[str]

    def texts(self) -> dict[str, pd.DataFrame]:
        """Return the tables as they are printed: categories first, and without an empty 'Note' column."""
        return {name: _texts(table) for name, table in self.tables.items()}

    def summary(self) -> str:
        """Return the tables and notes as plain text."""
        parts = [f"{name}\n{_aligned(self.tables[name], table)}" for name, table in self.texts().items()]
        return "\n\n".join([self.title, *parts, "\n".join(f"Note: {note}" for note in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python objects, with None for NaN, for JSON."""
        rows = {name: table.reset_index().to_dict("records") for name, table in self.tables.items()}
        return {"preset": self.preset, "title": self.title, "tables": as_plain(rows), "notes": self.notes}

    def _repr_html_(self) -> str:
        tables = [
            f"<h4>{escape(name)}</h4>{table.to_html(index=False)}" for name, table in self.texts().items()
        ]
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return f"<h3>{escape(self.title)}</h3>{''.join(tables)}<ul>{notes}</ul>"

    def __repr__(self) -> str:
        return self.summary()


def rated(hits: pd.Series[Any], counted: Tally, columns: list[str], small: float) -> pd.DataFrame:
    """Return categories with their people, hits, rate, and whether they are compared: `Included`.

    With weights, a category is as certain as `Effective` people with equal weights (Kish 1965).
    """
    counts = counted.decided.sum(axis=1)
    squares = counts if counted.squares is None else counted.squares
    table = pd.DataFrame({"People": counts, "Hits": hits, "Effective": squares}).groupby(level=columns).sum()
    table["Effective"] = table["People"] ** 2 / table["Effective"]
    enough = (table["People"] > 0) & (table["People"] >= small * table["People"].sum())
    return table.assign(Rate=table["Hits"] / table["People"], Included=enough)


def highest(table: pd.DataFrame) -> float:
    """Return the highest rate among the included categories; NaN if it is 0 or there are none."""
    rates = table["Rate"][table["Included"]]
    return float(rates.max()) if len(rates) and rates.max() > 0 else np.nan


def left_out(table: pd.DataFrame) -> pd.Series[str]:
    """Return a note for each category that is not included, with its share."""
    shares = table["People"] / table["People"].sum()
    notes = [
        "" if included else f"left out ({100 * share:.1f} %)"
        for share, included in zip(shares, table["Included"], strict=True)
    ]
    return pd.Series(notes, index=table.index)


def on_unknown(counted: Tally, what: str) -> str:
    """Return the note on people who are in no table."""
    verb = "is" if counted.unknown == 1 else "are"
    return f"{people(counted.unknown)} with unknown {what} {verb} in no table."


def on_weights(counted: Tally, *, tested: bool = False) -> list[str]:
    """Return a note if people have weights."""
    if counted.squares is None:
        return []
    tests = (
        " Tests and limits use the effective number of people (Kish 1965), rounded to whole people in "
        "Fisher's test and in the limits of the impact ratio. The numbers of selections that would have to "
        "change are left out."
    )
    return ["People are weighted by sample_weight." + tests * tested]


def _texts(table: pd.DataFrame) -> pd.DataFrame:
    texts = table.index.to_frame(index=False).astype(str)
    for name in map(str, table):
        if name != NOTE or (table[name] != "").any():
            texts[name] = [_text(name, value) for value in table[name]]
    return texts


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if pd.isna(value):
        return "–"
    if name.endswith(" p") and value < 0.0001:
        return "<0.0001"
    return f"{100 * value:.1f} %" if name in _PERCENT else f"{value:,.{_DIGITS.get(name, 0)}f}"


def _aligned(table: pd.DataFrame, texts: pd.DataFrame) -> str:
    """Return a table as aligned lines: the rows' names to the left, numbers to the right."""
    columns = []
    for at, name in enumerate(texts):
        cells = [str(name), *texts[name]]
        width = max(map(len, cells))
        left = at < table.index.nlevels or name == NOTE
        columns.append([cell.ljust(width) if left else cell.rjust(width) for cell in cells])
    return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True))


def fill(
    audit: Audit, preset: str, *, sex: str | None, race: str | None, rate: str, selected: Any, small: float
) -> Statutory:
    """Return the tables of a regulation; see `Audit.statutory`."""
    # These load SciPy's tests, which few audits need, and both import this file.
    from evenhand.auditing.four_fifths import four_fifths
    from evenhand.auditing.nyc_ll144 import nyc_ll144

    one_of("preset", preset, PRESETS)
    one_of("rate", rate, ("selection", "scoring"))
    number("small", small, low=0, high=1)
    counted = audit.tally
    if counted is None:
        raise ValueError("Got an audit without counts, but expected what `evenhand.audit` returns.")
    decision = audit.about["positive"] if selected is None else selected
    if rate == "selection" and decision not in counted.decided:
        raise ValueError(
            f"Got selected={decision!r}, but the decisions are {listed(counted.decided.columns)}; expected "
            "the one that counts as selected (selected=, or --positive)."
        )
    if preset == "four-fifths":
        if rate != "selection" or sex or race:
            raise ValueError("Got sex, race or rate, which have no effect on the tables of 'four-fifths'.")
        confidence = audit.about["confidence"]
        return four_fifths(
            counted, counted.decided[decision], small=small, confidence=confidence, selected=decision
        )
    hits = counted.above if rate == "scoring" else counted.decided[decision]
    if hits is None and audit.about["threshold"] is not None:
        raise ValueError(
            "Got rate='scoring' for a table that was only counted, so the median of its scores is not known; "
            "expected people in memory (a frame, or a file of at most 1,000,000 rows), or rate='selection'."
        )
    if hits is None:
        raise ValueError(
            "Got rate='scoring' for an audit of decisions; expected an audit of scores or of a model."
        )
    return nyc_ll144(counted, hits, sex=sex, race=race, rate=rate, small=small, selected=decision)
