"""The findings in plain words: what was measured, without a verdict."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from evenhand.auditing.predictions import decisions_at
from evenhand.auditing.table import rate_of
from evenhand.metrics.asking import BLIND, HOW
from evenhand.wording import got, group_called, members_of, people

if TYPE_CHECKING:
    from evenhand.auditing.result import Audit

_DIVERGENCES = {
    "kl": "in nats of Kullback-Leibler divergence",
    "jensen_shannon": "in nats of Jensen-Shannon divergence",
    "hellinger": "as Hellinger distance",
}


def describe(audit: Audit) -> str:
    """Return the summary, one paragraph per finding."""
    parts = [_who(audit), _right(audit), _groups(audit), _flips(audit), _neighbours(audit), _subgroups(audit)]
    parts += [found.summary() for found in (audit.twins, audit.worst, audit.search) if found is not None]
    return "\n".join([part for part in parts if part] + [f"Note: {note}" for note in audit.notes])


def groups_here(audit: Audit) -> list[Any]:
    """Return the groups that have people here; the model may know more groups."""
    return [name for name, count in audit.about["groups"].items() if count]


def share(value: float | None) -> str:
    """Return a share as a percentage."""
    return "unknown" if value is None or math.isnan(value) else f"{100 * value:.1f} %"


def _points(value: float) -> str:
    """Return a difference of probabilities in percentage points; small ones are not rounded to 0."""
    return f"{100 * value:.1f}" if value == 0 or value >= 0.0005 else f"{100 * value:.1g}"


def _who(audit: Audit) -> str:
    about = audit.about
    here = groups_here(audit)
    groups = _listed([f"{group_called(name, column_of(audit))}: {about['groups'][name]:,}" for name in here])
    text = f"{people(about['people'])} in {len(here)} group{'s' * (len(here) != 1)} ({groups})."
    nobody = [group_called(name, column_of(audit)) for name in about["groups"] if name not in here]
    if nobody:
        text += f" Nobody here is in {_listed(nobody)}, which the model also knows."
    decided, bar, positive = about["decisions"], about["threshold"], about["positive"]
    if bar is not None and positive not in decisions_at(bar):
        text += f" A score of {bar:g} or more is the decision {positive!r}."
    if len(decided) == 1:
        only = next(iter(decided))
        told = f"has {scored}" if (scored := _scored(audit, only)) else f"got the decision {only!r}"
        text += f" Everybody {told}: if all decisions are the same, no group can differ."
    elif positive is not None:
        text += f" {share(audit.value('positive_rate'))} {_got(audit, positive)}"
        text += f"; it is the true label of {share(about['label_rate'])}." if about["labelled"] else "."
    return text


def column_of(audit: Audit) -> str:
    """Return the name of the sensitive column, if there is one and it has a name; else 'group'."""
    columns = [] if audit.tally is None else audit.tally.columns
    return columns[0] if len(columns) == 1 else "group"


def _scored(audit: Audit, decision: Any) -> str:
    """Return which score a decision means, if it is named after a threshold because there are no labels."""
    bar = audit.about["threshold"]
    below, above = (None, None) if bar is None else decisions_at(bar)
    if decision == above:
        return f"a score of {above}"
    return f"a score {below}" if decision == below else ""


def _got(audit: Audit, decision: Any) -> str:
    """Return that people got a decision, or have the score that it means."""
    scored = _scored(audit, decision)
    return f"have {scored}" if scored else got(decision)


def _right(audit: Audit) -> str:
    if not audit.about["labelled"]:
        return "Accuracy was not measured: no labels were given to compare the decisions with."
    text = f"{_with_interval(audit, 'accuracy')} of the decisions are correct"
    text += f": {_between_groups(audit, 'accuracy')}." if len(groups_here(audit)) > 1 else "."
    if "auc" in set(audit.metrics["metric"]):
        auc = audit.value("auc")
        text += "" if math.isnan(auc) else f" AUC {auc:.3f}."
    trained = audit.about.get("trained_on")
    if trained is not None:
        text += (
            f" The model has seen these people: it was trained on {trained:,} of the "
            f"{audit.about['people']:,}. Audit it on others to learn how well it decides about new people."
        )
    return text


def _groups(audit: Audit) -> str:
    if len(groups_here(audit)) < 2:
        return "There is only one group, so nothing can be compared between groups."
    row = audit.row("discrimination")
    if math.isnan(row["value"]):
        return "Only one group has people who count, so nothing can be compared between groups."
    points = f"{_points(row['value'])} points ({100 * row['low']:.1f} to {100 * row['high']:.1f})"
    label = (audit.about["widest"] or {}).get("label")
    if audit.about["positive"] is not None:
        metric = "positive_rate"
        rates = _between_groups(audit, metric)
        text, so = f"{rates[:1].upper()}{rates[1:]} {_got(audit, label)}", ": a difference of"
    elif label is None or len(audit.about["labels"]) == 1:
        return ""
    else:
        metric = rate_of(label)
        text, so = (
            f"No label was named as the positive one. Of the {len(audit.about['labels'])} labels, the groups "
            f"differ most in {label!r}: {_between_groups(audit, metric)} got it",
            ", a difference of",
        )
    few = _too_small(audit, metric)  # the difference may then be larger than that of the rates told
    return f"{text}{'; with the smaller groups, the difference is' if few else so} {points}.{few}"


def _too_small(audit: Audit, metric: str) -> str:
    """Name the groups that are filled up in the difference, with their own rates."""
    about = audit.about
    few = [
        f"{share(audit.value(metric, name))} of {members_of(name, column_of(audit))} ({_number(audit, name)})"
        for name in groups_here(audit)
        if name not in about["compared"]
    ]
    if not few:
        return ""
    return (
        f" In the difference, groups of fewer than {about['min_group']} people are filled up to this number "
        f"with average people; their own rates are {_listed(few)}."
    )


def _number(audit: Audit, group: Any) -> str:
    """Return the number of people in a group; if weights make it less certain, also the effective number."""
    n, effective = audit.about["groups"][group], audit.about["evidence"][group]
    return people(n) + (f", as certain as {effective:.1f} with equal weights" if effective < n else "")


def _flips(audit: Audit) -> str:
    how = HOW[audit.about["how"]]
    if audit.about["how"] in ("given", "unmeasured"):
        return f"Whether decisions depend on the group was not measured: {how}."
    if audit.about["how"] in BLIND:
        return (
            f"We found no way in which a decision changes with the group: {how}. Several features together, "
            "or one that reveals it less well, may still stand in for it."
        )
    flips = _with_interval(audit, "flip_rate")
    text = f"{flips} of people would get a different decision in another group: {how}."
    if "gap_share_total_variation" in set(audit.metrics["metric"]):
        name, epsilon = audit.about["divergence"], audit.about["epsilon"]
        apart = audit.value("gap_share_total_variation")
        text += (
            f" For {share(apart) if apart else 'nobody'}, the probabilities of the decisions "
            f"differ from those in another group by {100 * epsilon:g} percentage points or more (total "
            "variation); the largest difference is "
            f"{_points(audit.value('gap_maximum_total_variation'))} points."
        )
        if name != "total_variation":
            largest = audit.value(f"gap_maximum_{name}")
            text += f" The list of people gives their gaps {_DIVERGENCES[name]}, at most {largest:.3g}."
    return text


def _neighbours(audit: Audit) -> str:
    if "consistency" not in set(audit.metrics["metric"]):
        return ""
    k, value = audit.about["k"], _with_interval(audit, "consistency")
    return f"On average, people get the same decision as {value} of the {k} people most similar to them."


def _subgroups(audit: Audit) -> str:
    if audit.subgroups.empty:
        return ""
    worst, examined = audit.subgroups.iloc[0], audit.about["subgroups_examined"]
    least, most = (members_of(worst[f"group_{side}"], column_of(audit)) for side in ("least", "most"))
    return (
        f"Of {examined:,} subgroup{'s' * (examined != 1)}, the largest certain difference is among "
        f"{worst['subgroup']} ({people(worst['people'])}): {worst['rate']} for {share(worst['rate_least'])} "
        f"of {least} and {share(worst['rate_most'])} of {most}. Allowing for all comparisons, the "
        f"difference is at least {_points(worst['low'])} points."
    )


def _with_interval(audit: Audit, metric: str) -> str:
    row = audit.row(metric)
    if math.isnan(row["low"]):
        return share(row["value"])
    return f"{share(row['value'])} ({100 * row['low']:.1f} to {100 * row['high']:.1f})"


def _between_groups(audit: Audit, metric: str) -> str:
    """Return a metric's lowest and highest known value among the groups that are compared."""
    rows = audit.metrics[(audit.metrics["metric"] == metric) & audit.metrics["group"].notna()]
    rows = rows[rows["value"].notna() & rows["group"].isin(audit.about["compared"])]
    rows = rows.sort_values("value", kind="stable")
    ends, column = [rows.iloc[0], rows.iloc[-1]], column_of(audit)
    least, most = (share(end["value"]) for end in ends)
    if least == most:
        some = set(groups_here(audit)) - set(audit.about["compared"])
        return f"{least} of every {'larger ' * bool(some)}group"
    lowest, highest = (f"{share(end['value'])} of {members_of(end['group'], column)}" for end in ends)
    return f"{lowest} and {highest}" if len(rows) < 3 else f"from {lowest} to {highest}"


def _listed(texts: list[str]) -> str:
    return ", ".join(texts[:8]) + (f", and {len(texts) - 8} more" if len(texts) > 8 else "")
