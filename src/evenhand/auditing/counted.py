"""The audit of a table that is not in memory: its engine counts the people.

One count of people by group, label and decision gives all metrics of decisions. A few more counts, by
features, give the subgroups. Everything that needs individual people is measured on a sample; see `drawn`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from evenhand.auditing.about import Plan, along_threshold, counted, on_weights, rate_searched
from evenhand.auditing.counted_features import Features
from evenhand.auditing.drawn import PRIME, Draw, OfDrawn
from evenhand.auditing.predictions import read_predictions
from evenhand.auditing.result import About, Audit
from evenhand.auditing.subgroups import COLUMNS
from evenhand.auditing.table import MetricTable
from evenhand.auditing.tally import tally
from evenhand.groups import check_column, missing_groups
from evenhand.metrics.answers import Answers
from evenhand.metrics.counts import MOST_LABELS
from evenhand.metrics.engine import MOST_CELLS, PEOPLE, ROW, Engine
from evenhand.metrics.of_table import Repeats
from evenhand.metrics.weights import check_weights
from evenhand.wording import as_plain, listed


@dataclass(frozen=True)
class Named:
    """The names of the columns that an audit uses."""

    decision: str
    label: str | None
    sensitive: list[str]
    weight: str | None

    @classmethod
    def checked(cls, engine: Engine, decision: str, label: Any, sensitive: Any, weight: Any) -> Named:
        """Return the names of the columns; raise unless all exist and differ."""
        groups = [sensitive] if isinstance(sensitive, str) else sensitive
        given = {"predictions": [decision], "y": [label], "sample_weight": [weight]}
        given["sensitive_features"] = groups
        for argument, names in given.items():
            if not isinstance(names, list | tuple) or not all(isinstance(n, str | None) for n in names):
                raise ValueError(
                    f"Got {argument} that is not the name of a column, but expected one, since X is counted "
                    "where it is."
                )
            for name in names:
                if name is not None or argument == "sensitive_features":
                    check_column(argument, name, engine.schema)
        named = cls(decision, label, list(groups), weight)
        twice = [name for name in named.all if named.all.count(name) > 1]
        if twice or not groups:
            raise ValueError(
                f"Got {listed(named.all)} as columns, but expected some sensitive ones, and each column once."
            )
        return named

    @property
    def all(self) -> list[str]:
        """All columns that are not features."""
        others = [name for name in (self.label, self.weight) if name is not None]
        return [*self.sensitive, self.decision, *others]


def audit_counted(frame: Any, named: tuple[str, Any, Any, Any], plan: Plan) -> Audit:
    """Audit the decisions in a column of a lazy frame; a sample is drawn where individuals are needed."""
    engine, threshold, settings = Engine(frame), plan.threshold, plan.settings
    columns = Named.checked(engine, *named)
    keys = _keys(engine, columns, threshold)
    rows = _counted(engine, columns, keys, threshold is not None)
    answers = replace(_answers(rows, columns, plan.pos_label, threshold), min_group=settings["min_group"])
    table = MetricTable(answers, **plan.resampling)
    notes = [*on_weights(answers), *table.decisions(), *(table.scores() if threshold is None else [])]
    notes += answers.note.splitlines()
    table.persons(settings["epsilon"])
    others = [name for name in engine.schema if name not in (*columns.all, ROW)]
    seed = int(plan.rng.integers(PRIME)) if answers.people > plan.n_drawn else 0
    draw = Draw(engine, keys, rows[[*keys, PEOPLE]], [*others, *columns.all], seed)
    score = None if threshold is None else columns.decision
    people = OfDrawn(draw, answers, columns.sensitive, others, score, columns.weight, plan.near)
    more, pairs, drawn = people.measured(plan.n_drawn, plan.n_listed, plan.resampling)
    metrics = pd.concat([table.frame(), more], ignore_index=True) if len(more) else table.frame()
    subgroups, examined = pd.DataFrame(columns=COLUMNS), 0
    rate, outcome, lacking = rate_searched(answers)
    if not others:
        lacking = ["There are no features, so neighbours and subgroups were left out."]
    elif outcome is not None:
        hit = _hit(keys, answers, columns)
        features = Features(engine, answers, keys, rows[list(keys)], len(columns.sensitive), outcome, hit)
        subgroups, examined, lacking = features.search(others, plan.search(rate))
    about: About = {**counted(answers), **settings, "subgroups_examined": examined}
    notes += [*lacking, *drawn]
    told = (notes, about, along_threshold(answers), tally(answers, _groups(rows, columns)))
    twins = None if plan.twins is None else people.twins(plan.n_drawn, plan.twins, plan.rng)
    return Audit(metrics, pd.DataFrame(), pairs, subgroups, *told, twins)


def _keys(engine: Engine, columns: Named, threshold: float | None) -> dict[str, Any]:
    """Return the expressions to count people by: the sensitive columns, the label and the decision."""
    by = [*columns.sensitive, *([] if columns.label is None else [columns.label])]
    keys = {f"key{at}": engine.column(name) for at, name in enumerate(by)}
    decision = engine.column(columns.decision)
    if threshold is not None:
        if not engine.schema[columns.decision].is_numeric():
            raise ValueError(f"Got no numbers in {columns.decision!r}, but a threshold needs scores.")
        score = decision.cast(nw.Float64)
        decision = nw.when(score.is_finite()).then(score >= threshold)
    return keys | {"decision": decision}


def _counted(engine: Engine, columns: Named, keys: dict[str, Any], scored: bool) -> pd.DataFrame:
    """Count people by group, label and decision; none of these may be missing."""
    told = [name for name in (columns.label, None if scored else columns.decision) if name is not None]
    for name, some in engine.first(told).items() if told else ():
        if some.nunique() > MOST_LABELS:
            raise ValueError(
                f"Got more than {MOST_LABELS:,} different values in {name!r}, but expected labels or "
                "decisions. For scores, give a threshold: a score of at least that is a positive decision."
            )
    rows = engine.people(keys, columns.weight, MOST_CELLS)
    _check_known(rows, columns, scored)
    return rows


def _check_known(rows: pd.DataFrame, columns: Named, scored: bool) -> None:
    """Raise if somebody's group, label or decision is missing, with the number of people."""

    def people(which: pd.Series[bool]) -> int:
        return int(rows.loc[which, PEOPLE].sum())

    for at, name in enumerate(columns.sensitive):
        if missing := people(rows[f"key{at}"].isna()):
            raise missing_groups(missing, "" if len(columns.sensitive) == 1 else f" in column {name!r}")
    told = {"labels": f"key{len(columns.sensitive)}"} if columns.label is not None else {}
    for what, key in (told if scored else told | {"decisions": "decision"}).items():
        if missing := people(rows[key].isna()):
            raise ValueError(f"Got {missing} missing {what}, but expected one per person.")


def _groups(rows: pd.DataFrame, columns: Named) -> Any:
    """Return the sensitive columns of the counted rows, under their own names."""
    found = rows[[f"key{at}" for at in range(len(columns.sensitive))]].set_axis(columns.sensitive, axis=1)
    return found if len(columns.sensitive) > 1 else found.iloc[:, 0]


def _answers(rows: pd.DataFrame, columns: Named, pos_label: Any, threshold: float | None) -> Answers:
    """Return the counted rows as answers, each row standing for its people."""
    y = None if columns.label is None else np.asarray(rows[f"key{len(columns.sensitive)}"])
    said = np.asarray(rows["decision"])
    if threshold is not None:  # use any score with the same decision
        below = np.nextafter(threshold, -np.inf)
        said = np.array([np.nan if pd.isna(high) else threshold if high else below for high in said])
    given = {"sensitive_features": _groups(rows, columns), "pos_label": pos_label, "threshold": threshold}
    answers = read_predictions(said, y, **given)
    if pos_label is None and len(answers.labels) == 2:
        pos_label = answers.labels[1]
    weights = squares = None
    if columns.weight is not None:
        weights, squares = (rows[name].to_numpy(dtype=float) for name in ("weight", "squares"))
        weights = check_weights(weights, len(rows))
    repeats = Repeats(rows[PEOPLE].to_numpy(), squares)
    return replace(answers, y=y, pos_label=pos_label, own_scores=None, weights=weights, repeats=repeats)


def _hit(keys: dict[str, Any], answers: Answers, columns: Named) -> Any:
    """Return the outcome to compare in subgroups, as an expression."""
    if answers.threshold is not None:
        return keys["decision"]
    label = f"key{len(columns.sensitive)}"
    return keys["decision"] == (keys[label] if answers.pos_label is None else as_plain(answers.pos_label))
