"""Shifts: how the latest contexts differ from those before the policy in force, column by column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import chi2
from sqlalchemy import select

from evenhand.arrays import Array, Floats
from evenhand.decisions.contexts import parsed
from evenhand.decisions.loop import DecisionLoop
from evenhand.decisions.schema import decisions, policies

SAMPLE = 1_000  # people on each side
FEWEST = 100  # fewer people on a side are not compared
NOTABLE = 0.1  # of the index: the usual bar for a shift that matters
CHANCE = 0.001  # the probability that any column seems to have shifted if none has
_BINS = 10


def drift_of(loop: DecisionLoop) -> dict[str, Any]:
    """Compare the latest people with those who came before the policy in force was learned.

    If fewer than `FEWEST` came before it, the first people of the log are used instead. A column has shifted
    if its population stability index, Σ (now - before)·log(now / before) over shares of people, is notable
    and beyond chance. Without a shift, it is distributed as χ²·(1/people now + 1/people before).
    """
    log, columns = loop._log, (decisions.c.number, decisions.c.context, decisions.c.group)
    learned = select(policies.c.at).where(policies.c.version == loop.version).scalar_subquery()
    newest = select(*columns).order_by(decisions.c.number.desc()).limit(SAMPLE)
    before = log.all(
        select(*columns).where(decisions.c.at < learned).order_by(decisions.c.at.desc()).limit(SAMPLE)
    )
    learned_from = len(before) >= FEWEST
    if learned_from:
        now = log.all(newest.where(decisions.c.number > max(row.number for row in before)))
    else:
        first = log.all(select(*columns).order_by(decisions.c.number).limit(SAMPLE))
        either = sorted({*first, *log.all(newest)})  # by number
        before, now = either[: len(either) // 2], either[len(either) // 2 :]
    found = {"people": len(now), "before": len(before), "learned_from": learned_from, "columns": []}
    if min(len(now), len(before)) >= FEWEST:
        found["columns"] = compare(_columns(before), _columns(now))
    return found


def _columns(rows: Sequence[Any]) -> dict[str, list[Any]]:
    contexts = parsed([row.context for row in rows])
    names = contexts[0] if isinstance(contexts[0], dict) else range(len(contexts[0]))
    named = {name if isinstance(name, str) else f"number {name + 1}": name for name in names}
    return {
        "group": [row.group for row in rows],
        **{shown: [context[at] for context in contexts] for shown, at in named.items()},
    }


def compare(before: dict[str, list[Any]], now: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Return how far each column has shifted, the largest shift first.

    >>> found = compare({"age": [20, 30, 40, 50] * 50}, {"age": [50, 60, 70, None] * 50})
    >>> [(one["column"], one["shifted"], one["before"], one["now"]) for one in found]
    [('age', True, 'middle half: 27.5 to 42.5', 'middle half: 50 to 70')]
    """
    found = []
    for name, values in now.items():
        old, new = before[name], values
        known = {type(value) for value in (*old, *new)} - {type(None)}
        codes, words = (_numbers if known <= {int, float} else _names)(old, new)
        counts = np.array(
            [np.bincount(part, minlength=codes.max() + 1) for part in np.split(codes, [len(old)])]
        )
        counts = counts[:, counts.sum(0) > 0] + 0.5  # half a person: empty cells give no infinity
        shares = counts / counts.sum(1, keepdims=True)
        index = float(((shares[1] - shares[0]) * np.log(shares[1] / shares[0])).sum())
        tail = chi2.isf(CHANCE / len(now), max(counts.shape[1] - 1, 1))
        chance = float(tail * (1 / len(old) + 1 / len(new)))
        shown = {"column": name, "index": index, "chance": chance, "shifted": index > max(NOTABLE, chance)}
        found.append({**shown, "before": words[0], "now": words[1]})
    return sorted(found, key=lambda one: -one["index"])


def _numbers(old: list[Any], new: list[Any]) -> tuple[Array, list[str]]:
    """Return which tenth of the old numbers each is in, gaps apart; and the middle half of each in words."""
    both: Floats = np.array([*old, *new], dtype=np.float64)
    gaps = np.isnan(both)
    past = both[: len(old)][~gaps[: len(old)]]
    edges = np.unique(np.quantile(past, np.arange(1, _BINS) / _BINS)) if len(past) else np.zeros(0)
    codes = np.where(gaps, len(edges) + 1, np.searchsorted(edges, both, side="right"))
    return codes, [_half(both[: len(old)]), _half(both[len(old) :])]


def _half(numbers: Floats) -> str:
    if np.isnan(numbers).mean() > 0.5:
        return f"{100 * np.isnan(numbers).mean():.0f} % missing"
    low, high = map(_short, np.nanquantile(numbers, [0.25, 0.75]))
    return f"middle half: {low}" + (f" to {high}" if high != low else "")


def _short(number: float) -> str:
    """Return a number with three digits, or as a whole number from 1,000 on.

    >>> _short(0.12345), _short(3972.25)
    ('0.123', '3,972')
    """
    return f"{number:,.0f}" if 1_000 <= abs(number) < 1e9 else f"{number:.3g}"


def _names(old: list[Any], new: list[Any]) -> tuple[Array, list[str]]:
    """Return each person's value, rare ones together; and the share with the value that shifted most."""
    told = [["missing" if value is None else str(value) for value in part] for part in (old, new)]
    often = [name for name, _ in Counter([*told[0], *told[1]]).most_common(_BINS - 1)]
    place = {name: at for at, name in enumerate(often)}
    shares = [{name: part.count(name) / len(part) for name in often} for part in told]
    most = max(often, key=lambda name: abs(shares[1][name] - shares[0][name]))
    codes = np.array([place.get(name, len(often)) for part in told for name in part])
    return codes, [f"{100 * share[most]:.0f} % {most}" for share in shares]
