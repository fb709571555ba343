"""Which rule should compare groups of which a few are tiny? Regret of the model that each rule chooses.

    python experiments/tiny_groups.py         # writes results/tiny_groups/; about 20 minutes on two cores

Six public tables with four to eight groups each. 2,000 people learn and choose, as in `evenhand fit`: most are of the two
largest groups, and the others have 6, 12, 25, 60 or 150 people, in a random order. Everybody else is the test part, in
which all groups are large. Each rule chooses among the same twelve models by accuracy − discrimination − flip rate on the
validation part; rules differ only in how they compare the groups' rates there. The regret is what the best of the twelve
has more of the same on the test part, where discrimination is over all groups, the tiny ones too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from asking import asked
from elsewhere import csv, frame
from joblib import Parallel, delayed

from evenhand import explore
from evenhand.datasets import load
from evenhand.metrics import rates as shares
from evenhand.metrics.measures import measure, value_of
from evenhand.metrics.rates import divide
from evenhand.workflow.candidates import Candidate, answers_of
from evenhand.workflow.frontier import Frontier

LEARNERS, VALIDATION = 2_000, 300
PLANTED = (6, 12, 25, 60, 150)
MOST_TESTED = 8_000

Table = tuple[pd.DataFrame, pd.Series, pd.Series]


def adult() -> Table:
    """Americans: more than 50,000 dollars a year, by race."""
    data = load("adult")
    people = data.contexts.drop(columns="race").assign(sex=data.sensitive["sex"])
    return people, data.label == data.pos_label, data.sensitive["race"]


def compas() -> Table:
    """Defendants: no new crime within two years, by race."""
    data = load("compas")
    race = data.sensitive["race"]
    known = race.isin(["African-American", "Caucasian", "Hispanic", "Other"])
    return data.contexts[known], data.label[known] != data.pos_label, race[known]


def credit() -> Table:
    """Taiwanese cardholders: paid next month, by sex and schooling."""
    table = csv("UCI_Credit_Card.csv")
    schools = [f"EDUCATION_{level}" for level in (1, 2, 3)]
    known = table[schools].any(axis=1)
    due = "default-payment-next-month"
    group = table["SEX"].astype(str) + "-" + table[schools].idxmax(axis=1)
    left_out = [name for name in table if name.startswith("EDUCATION")]
    people = table.drop(columns=["ID", "SEX", due, *left_out])
    return people[known], table.loc[known, due] == 0, group[known]


def income() -> Table:
    """Full-time workers: more than 20 dollars an hour, by gender and region."""
    table = frame("CPSSW8")
    group = table["gender"].astype(str) + "-" + table["region"].astype(str)
    return table.drop(columns=["earnings", "gender", "region"]), table["earnings"] > 20, group


def insurance() -> Table:
    """Americans in work: insured, by gender and ethnicity."""
    table = frame("HealthInsurance")
    group = table["gender"].astype(str) + "-" + table["ethnicity"].astype(str)
    return table.drop(columns=["insurance", "gender", "ethnicity"]), table["insurance"] == "yes", group


def law() -> Table:
    """Law students: a first year 0.3 deviations above average, by sex and race."""
    table = csv("law.csv.zip")
    races = [name for name in table if name.startswith("Race_")]
    race = table[races].idxmax(axis=1)
    known = race.isin(race.value_counts().index[:4])
    group = table["Sex_1"].astype(str) + "-" + race
    return table.loc[known, ["LSAT", "UGPA"]], table.loc[known, "ZFYA"] > 0.3, group[known]


TABLES: dict[str, Callable[[], Table]] = {
    "adult": adult, "compas": compas, "credit": credit, "income": income, "insurance": insurance, "law": law
}  # fmt: skip

Row = dict[str, str | float | int]
Rule = Callable[[np.ndarray, np.ndarray], float]  # of how many people, and how many positive, in each group


def apart(rates: np.ndarray) -> float:
    return float(rates.max() - rates.min())


def at_least(least: int) -> Rule:
    def rule(people: np.ndarray, hits: np.ndarray) -> float:
        enough = people >= least
        here = enough if enough.sum() > 1 else people > 0
        return apart(hits[here] / people[here])

    return rule


def shrunk(strength: float | None) -> Rule:
    """Move each rate towards the pooled one as if it were of so many people more; None learns how many."""

    def rule(people: np.ndarray, hits: np.ndarray) -> float:
        people, hits = people[people > 0], hits[people > 0]
        pooled = hits.sum() / people.sum()
        weight = strength if strength is not None else learned(people, hits / people, pooled)
        return apart((hits + weight * pooled) / (people + weight))

    return rule


def filled(least: int) -> Rule:
    """Count a smaller group as if it had so many people, of whom those it lacks are decided like everybody."""

    def rule(people: np.ndarray, hits: np.ndarray) -> float:
        here = people > 0
        return apart(divide(*shares.filled(hits[here, None], people[here, None], least)))

    return rule


def learned(people: np.ndarray, rates: np.ndarray, pooled: float) -> float:
    """Return the strength of the prior of which the rates would differ as much as they do, by moments."""
    noise = pooled * (1 - pooled)
    spread = (people * (rates - pooled) ** 2).sum() - (len(people) - 1) * noise
    scale = people.sum() - (people**2).sum() / people.sum()
    between = max(spread / scale, 1e-4)
    return float(max(noise / between - 1, 0))


def surely(deviations: float) -> Rule:
    """The largest difference of two rates that is left when each is so many deviations of chance nearer."""

    def rule(people: np.ndarray, hits: np.ndarray) -> float:
        people, hits = people[people > 0], hits[people > 0]
        rates, noise = hits / people, (hits + 1) / (people + 2)
        errors = deviations * np.sqrt(noise * (1 - noise) / people)
        return max(0.0, float((rates - errors).max() - (rates + errors).min()))

    return rule


CRITERIA = ("even", "delta")
RULES: dict[str, Rule] = {
    "as it is": at_least(1),
    **{f"groups of at least {least}": at_least(least) for least in (5, 10, 20, 30, 50)},
    **{f"shrunk by {weight} people": shrunk(weight) for weight in (5, 10, 20, 40)},
    "shrunk, strength learned": shrunk(None),
    **{f"filled up to {least}": filled(least) for least in (10, 20, 30, 40, 60)},
    **{f"surely, {deviations:g} deviations": surely(deviations) for deviations in (0.5, 1, 2)},
    "flips and accuracy alone": lambda people, hits: 0.0,
}


def planted(group: pd.Series, rng: np.random.Generator) -> np.ndarray:
    """Return the rows of those who learn: mostly of the two largest groups, few of each other."""
    order = rng.permutation(len(group))
    sizes = group.value_counts()
    wanted = dict(zip(sizes.index[2:], rng.permutation(np.resize(PLANTED, len(sizes) - 2)), strict=True))
    rest, both = LEARNERS - sum(wanted.values()), sizes.iloc[:2].sum()
    wanted |= {name: int(rest * sizes[name] / both) for name in sizes.index[:2]}
    of_group = group.to_numpy()[order]
    return np.concatenate([order[of_group == name][:most] for name, most in wanted.items()])


def chosen_by_each(name: str, seed: int) -> list[Row]:
    people, label, group = (part.reset_index(drop=True) for part in TABLES[name]())
    rng = np.random.default_rng(seed)
    learning = rng.permutation(planted(group, rng))
    others = rng.permutation(np.setdiff1d(np.arange(len(group)), learning))
    table = people.assign(label=np.where(label, "yes", "no"), group=group)
    # Everybody trains somewhere: a group with nobody in the training part has no policy.
    first = table.iloc[learning].groupby("group").head(2).index.to_numpy()
    learning = np.concatenate([first, learning[~np.isin(learning, first)]])
    rows = (learning[:-VALIDATION], learning[-VALIDATION:], others[:MOST_TESTED])
    frontier = explore(table, label="label", sensitive="group", split=rows, random_state=seed, n_jobs=1)
    judged = [Judged.of(frontier, one) for one in frontier.trained]
    found = []
    for criterion, rule in product(CRITERIA, RULES):
        best = max(one.worth(criterion) for one in judged)
        chosen = max(judged, key=lambda one: one.seems(criterion, RULES[rule]))
        found.append(
            {"table": name, "seed": seed, "criterion": criterion, "rule": rule, "model": chosen.name,
             "regret": best - chosen.worth(criterion), **chosen.tested}
        )  # fmt: skip
    return found


class Judged(NamedTuple):
    """A model: what it is worth on the test part, and what a rule sees of it on the validation part."""

    name: str
    tested: dict[str, float]
    validated: dict[str, float]
    people: np.ndarray
    hits: np.ndarray

    @classmethod
    def of(cls, frontier: Frontier, one: Candidate) -> Judged:
        test, validation = (
            replace(answers_of(one.model, part, frontier.parts), min_group=1)
            for part in (frontier.parts.test, frontier.parts.validation)
        )
        tested, validated = (
            {name: value_of(found, name) for name in ("accuracy", "discrimination", "flip_rate")}
            for found in (measure(test, intervals=False), measure(validation, intervals=False))
        )
        n_groups = len(validation.groups)
        people = np.bincount(validation.own, minlength=n_groups)
        hits = np.bincount(validation.own[validation.positives], minlength=n_groups)
        return cls(one.name, tested, validated, people, hits)

    def worth(self, criterion: str) -> float:
        return self._even(criterion, self.tested, self.tested["discrimination"])

    def seems(self, criterion: str, rule: Rule) -> float:
        return self._even(criterion, self.validated, rule(self.people, self.hits))

    def _even(self, criterion: str, found: dict[str, float], unequal: float) -> float:
        return found["accuracy"] - unequal - (found["flip_rate"] if criterion == "even" else 0)


def main() -> None:
    given = asked(__doc__, "results/tiny_groups", seeds=10, jobs=-1)
    work = (delayed(chosen_by_each)(name, seed) for name, seed in product(TABLES, range(given.seeds)))
    found: Iterator[list[Row]] = Parallel(n_jobs=given.jobs, return_as="generator_unordered")(work)
    table = pd.DataFrame([row for rows in found for row in rows])
    table.to_csv(given.out / "choices.csv", index=False)
    table = table.sort_values(["table", "seed"], kind="stable")
    by = ["criterion", "rule"]
    shown = table.groupby(by, sort=False)[["regret", "accuracy", "discrimination", "flip_rate"]].mean()
    shown = shown.join(table.pivot_table(index=by, columns="table", values="regret", sort=False))
    shown.to_csv(given.out / "rules.csv")
    print(shown.round(4).to_string())


if __name__ == "__main__":
    main()
