"""The bias audit tables of New York City's Local Law 144 (6 RCNY § 5-301), laid out like its examples."""

from __future__ import annotations

from typing import Any

import pandas as pd

from evenhand.auditing.statutory import NOTE, Statutory, highest, left_out, on_unknown, on_weights, rated
from evenhand.auditing.tally import Tally
from evenhand.checks import one_of
from evenhand.wording import listed

_ROLES = {
    "sex": ("sex", "gender"),
    "race": ("race", "ethnicity", "race_ethnicity", "race/ethnicity", "ethnic"),
}


def nyc_ll144(
    counted: Tally, hits: pd.Series[int], *, sex: str | None, race: str | None, rate: str, small: float,
    selected: Any,
) -> Statutory:  # fmt: skip
    """Return the tables by sex, by race/ethnicity and by both, for people selected or with high scores."""
    roles = _roles(counted.columns, sex, race)
    known = counted.known(roles)
    hits = hits.loc[known.decided.index]
    layout = {
        "Sex Categories": [roles[0]],
        "Race/Ethnicity Categories": [roles[1]],
        "Intersectional Categories": [roles[1], roles[0]],
    }
    tables = {title: _table(rated(hits, known, columns, small), rate) for title, columns in layout.items()}
    notes = [on_unknown(known, "sex or race/ethnicity"), *on_weights(counted)]
    if rate == "scoring":
        notes.append(
            f"A scoring rate is the share of a category with a score above {counted.median:g}, the median "
            f"of all {counted.scored:,.0f} people who were scored."
        )
    else:
        notes.append(f"A selection rate is the share of a category that got the decision {selected!r}.")
    if any((table[NOTE] != "").any() for table in tables.values()):
        notes.append(
            f"Categories with fewer than {100 * small:g} % of the people are left out of the impact ratios, "
            "as § 5-301(d) allows. The auditor has to justify that in the published summary."
        )
    notes += [
        "An impact ratio is a category's rate over the highest rate in its table. It doesn't show why rates "
        "differ, whether people were equally qualified, how much of a difference between few people is "
        "chance, or whether anybody's decision depends on their sex or race.",
        "The rule asks for more than these tables: the date of the audit, the source and explanation of the "
        "data, the tool's distribution date, and an independent auditor.",
    ]
    return Statutory("nyc-ll144", "NYC Local Law 144: bias audit, 6 RCNY § 5-301", tables, notes)


def _table(found: pd.DataFrame, rate: str) -> pd.DataFrame:
    ratios = (found["Rate"] / highest(found)).where(found["Included"])
    counts = {"# of Applicants": found["People"], "# Selected": found["Hits"]}
    if rate == "scoring":
        del counts["# Selected"]
    rates = {f"{rate.capitalize()} Rate": found["Rate"], "Impact Ratio": ratios, NOTE: left_out(found)}
    return pd.DataFrame(counts | rates)


def _roles(columns: list[str], sex: str | None, race: str | None) -> list[str]:
    """Return which sensitive column is sex and which is race/ethnicity; common names are recognised."""
    found: list[str | None] = []
    for role, told in (("sex", sex), ("race", race)):
        guesses = [name for name in columns if name.strip().lower() in _ROLES[role]]
        found.append(guesses[0] if told is None and len(guesses) == 1 else told)
        if told is not None:
            one_of(role, told, columns)
    if len(columns) == 2 and found.count(None) == 1:  # the other one
        found = [name or next(other for other in columns if other not in found) for name in found]
    one, other = found
    if one is None or other is None or one == other:
        raise ValueError(
            f"Got the sensitive columns {listed(columns)}, but expected one that is the sex and another that "
            "is the race/ethnicity. Audit with both as sensitive features, and name them "
            "as sex= and race= (--sex, --race) if they have other names."
        )
    return [one, other]
