"""The four-fifths rule (29 CFR § 1607.4 D), with tests, intervals and the changes that would cross it."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import hypergeom, norm

from evenhand.arrays import Array, Floats
from evenhand.auditing.statutory import NOTE, Statutory, highest, left_out, on_unknown, on_weights, rated
from evenhand.auditing.tally import Tally
from evenhand.metrics.exact_ratio import exact_ratio_limits
from evenhand.metrics.shares import difference_limits

RULE, RISK = 0.8, 0.05
_RATIOS = ["Impact Ratio", "Low", "High", "Shortfall", "To Cross 4/5"]
_TESTS = ["Difference", "From", "To", "z", "z-test p", "Fisher p", "Holm p", "To Cross 0.05"]


def four_fifths(
    counted: Tally, hits: pd.Series[int], *, small: float, confidence: float, selected: object
) -> Statutory:
    """Return rates, ratios and tests for the categories of each sensitive column, and of all combined."""
    columns = counted.columns
    known = counted.known(columns)
    hits = hits.loc[known.decided.index]
    layout = {name: [name] for name in columns}
    if len(columns) > 1:
        layout[" & ".join(columns)] = columns
    found = {title: compared(rated(hits, known, names, small), confidence) for title, names in layout.items()}
    p = pd.concat([table["Fisher p"] for table in found.values()]).to_numpy(dtype=float)
    adjusted, at = holm(p), 0
    tables = {}
    for title, table in found.items():
        table = table.assign(**{"Holm p": adjusted[at : at + len(table)]})
        at += len(table)
        tables[title] = table[["People", "Selected", "Selection Rate", *_RATIOS, NOTE]]
        tables[f"{title}: tests"] = table.loc[table["Fisher p"].notna(), _TESTS]
    notes = _notes(known, selected, small, confidence, int((~np.isnan(p)).sum()))
    return Statutory("four-fifths", "Four-fifths rule, 29 CFR § 1607.4 D", tables, notes)


def compared(table: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Compare each included category with the one that has the highest rate."""
    best = highest(table)
    top = table.index[table["Included"] & (table["Rate"] == best)]
    reference = table.loc[top[0]] if len(top) else None
    rows: list[dict[str, float]] = []
    for name, row in table.iterrows():
        found = dict.fromkeys([*_RATIOS, *_TESTS], np.nan)
        if reference is not None and row["Included"]:
            found["Impact Ratio"] = row["Rate"] / best
            if name != top[0]:
                counts = (
                    of[part] * (of["Effective"] / of["People"])
                    for of in (row, reference)
                    for part in ("Hits", "People")
                )
                found |= compare(*counts, confidence=confidence)
                if row["Effective"] != row["People"] or reference["Effective"] != reference["People"]:
                    found |= dict.fromkeys(["Shortfall", "To Cross 4/5", "To Cross 0.05"], np.nan)
        rows.append(found)
    told = table.drop(columns="Effective").set_axis(["People", "Selected", "Selection Rate", NOTE], axis=1)
    told = told.assign(**{NOTE: left_out(table)})
    return told.join(pd.DataFrame(rows, index=table.index))


def compare(
    hits: float, people: float, of_hits: float, of_people: float, *, confidence: float = 0.95
) -> dict[str, float]:
    """Return the comparison of a group with another group that has a higher rate.

    Exact limits and Fisher's test count whole people: effective numbers are rounded for them.

    >>> found = compare(8, 40, 24, 60)
    >>> round(found["Fisher p"], 3), found["To Cross 4/5"], found["To Cross 0.05"]
    (0.049, 4.0, 1.0)
    """
    some, all_of_them, others, all_others = map(round, (hits, people, of_hits, of_people))
    low, high = exact_ratio_limits(some, all_of_them, others, all_others, confidence)
    rate, other, pooled = hits / people, of_hits / of_people, (hits + of_hits) / (people + of_people)
    error = np.sqrt(pooled * (1 - pooled) * (1 / people + 1 / of_people))
    z = float((rate - other) / error) if error else 0.0
    least, most = difference_limits(of_hits, of_people, hits, people, confidence)
    selected, p = fisher(all_of_them, all_others, some + others)
    at = int(some - selected[0])
    with np.errstate(divide="ignore"):
        ratios = selected / people / ((hits + of_hits - selected) / of_people)
    return {
        "Low": low,
        "High": high,
        "Shortfall": people * pooled - hits,
        "To Cross 4/5": moves(ratios < RULE, at),
        "Difference": rate - other,
        "From": -float(most),
        "To": -float(least),
        "z": z,
        "z-test p": float(2 * norm.sf(abs(z))),
        "Fisher p": float(p[at]),
        "To Cross 0.05": moves(p < RISK, at),
    }


def fisher(people: int, of_people: int, selected: int) -> tuple[Array, Floats]:
    """Return the possible numbers of a group's people among the selected, and Fisher's two-sided p for each.

    The p-value is the sum of the probabilities of all numbers that are no more likely.
    """
    numbers = np.arange(max(0, selected - of_people), min(people, selected) + 1)
    chance = hypergeom.pmf(numbers, people + of_people, people, selected)
    order = np.sort(chance)
    total = np.concatenate([[0.0], np.cumsum(order)])
    return numbers, np.minimum(total[np.searchsorted(order, chance * (1 + 1e-7), side="right")], 1.0)


def moves(finding: Array, at: int) -> float:
    """Return how many selections would have to move from one group to the other to change the finding.

    `finding` says, for each possible number of selected people in the group, whether the finding holds. If it
    holds now, we look for the next larger number without it; if not, for the next smaller number with it. NaN
    if there is none.

    >>> moves(np.array([True, True, False, False]), 3), moves(np.array([True, True, False, False]), 0)
    (2.0, 2.0)
    """
    onwards = finding[at:] if finding[at] else finding[at::-1]
    changed = np.flatnonzero(onwards != finding[at])
    return float(changed[0]) if len(changed) else np.nan


def holm(p: Floats) -> Floats:
    """Return p-values that hold for all comparisons at once (Holm 1979); NaN stays.

    >>> holm(np.array([0.01, np.nan, 0.04, 0.03])).round(2).tolist()
    [0.03, nan, 0.06, 0.06]
    """
    order = np.argsort(p)[: int((~np.isnan(p)).sum())]
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)), 1.0)
    return adjusted


def _notes(known: Tally, selected: object, small: float, confidence: float, comparisons: int) -> list[str]:
    few = f"; categories with fewer than {100 * small:g} % of the people are not compared" if small else ""
    return [
        f"Selected: got the decision {selected!r}. {on_unknown(known, ' or '.join(known.columns))}",
        *on_weights(known, tested=True),
        "Each category is compared with the one of the highest rate in its table, which is itself chosen by "
        f"looking{few}.",
        f"Low and High: exact {100 * confidence:g} % limits of the impact ratio (Chan and Zhang). From and "
        "To: Newcombe's limits of the difference. Each holds by itself. Shortfall: how many more would have "
        "been selected at the two groups' common rate. To Cross 4/5 and To Cross 0.05: how many selections "
        "would have to go from one group to the other for the ratio to cross 0.8, or Fisher's p to cross "
        "0.05 (the flip-flop rule); – if no number would.",
        "Fisher's exact test and the pooled two-proportion z-test, both two-sided. Comparisons made: "
        f"{comparisons}, some of which differ by chance. Holm p is Fisher's, corrected for all of them.",
        "A ratio below 0.8 is a rule of thumb for a closer look. The tables don't show why rates differ, "
        "whether people were equally qualified, or whether anybody's decision depends on their group.",
    ]
