"""Which rules there are tables for, and what of an audit each of them counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenhand.auditing.four_fifths import four_fifths
from evenhand.auditing.nyc_ll144 import nyc_ll144
from evenhand.auditing.statutory import Statutory
from evenhand.checks import number, one_of
from evenhand.wording import listed

if TYPE_CHECKING:
    from evenhand.auditing.result import Audit

PRESETS = ("nyc-ll144", "four-fifths")


def fill(
    audit: Audit, preset: str, *, sex: str | None, race: str | None, rate: str, selected: Any, small: float
) -> Statutory:
    """Return the tables of a rule; see `Audit.statutory`."""
    one_of("preset", preset, PRESETS)
    one_of("rate", rate, ("selection", "scoring"))
    number("small", small, low=0, high=1)
    counted = audit.tally
    if counted is None:
        raise ValueError("Got an audit without counts, but expected what `evenhand.audit` returns.")
    decision = audit.about["positive"] if selected is None else selected
    if rate == "selection" and decision not in counted.decided:
        raise ValueError(
            f"Got selected={decision!r}, but the decisions are {listed(counted.decided)}; expected the one "
            "that counts as selected (selected=, or --positive)."
        )
    if preset == "four-fifths":
        if rate != "selection" or sex or race:
            raise ValueError("Got sex, race or rate, which have no effect on the tables of 'four-fifths'.")
        confidence = audit.about["confidence"]
        return four_fifths(
            counted, counted.decided[decision], small=small, confidence=confidence, selected=decision
        )
    hits = counted.above if rate == "scoring" else counted.decided[decision]
    if hits is None:
        raise ValueError(
            "Got rate='scoring', but an audit of decisions; expected one of scores or a model's."
        )
    return nyc_ll144(counted, hits, sex=sex, race=race, rate=rate, small=small, selected=decision)
