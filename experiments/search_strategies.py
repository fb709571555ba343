"""Who finds more people whose decision changes with the group, per prediction and per second?

    python experiments/search_strategies.py       # writes results/search_strategies/; some minutes on two cores

Three strategies search for possible people whom a model decides differently when only the group is changed, on public data
with models that take the group as a column. All ask through the same code, in batches, about the same possible people, and
have the same budget of predictions; nobody counts twice.

- evenhand: `evenhand.search_flips`.
- ExpGA: Fan et al. (2022), as described there: of people drawn from the data, those are seeds in whose explanation the
  group ranks high; a genetic algorithm with crossover (rate 0.9) and mutation (rate 0.05) goes on from them, selecting by the
  difference of probabilities. In place of LIME, which takes thousands of predictions per person, the explanation is how much
  the probability changes when one column is drawn anew; neither its predictions nor its time are counted.
- Themis: Galhotra, Brun and Meliou (2017): people drawn at random, every column by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product
from typing import Any

import asking
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evenhand.auditing.searching.members import BATCH, Found, Members
from evenhand.auditing.searching.possible import possible_people
from evenhand.auditing.searching.search import search
from evenhand.datasets import load
from evenhand.metrics.asking import Question, question
from evenhand.tables.splits import split

MODELS = {
    "logistic regression": LogisticRegression(max_iter=2000),
    "boosted trees": HistGradientBoostingClassifier(random_state=0),
    "random forest": RandomForestClassifier(100, min_samples_leaf=5, random_state=0, n_jobs=1),
}
SEEDS, CROSSED, MUTATED = 200, 0.9, 0.05  # of ExpGA: seeds and rates


def asked(name: str, kind: str) -> Question:
    """Return how to ask a model, trained on one split, about the people that it was trained on."""
    dataset = load(name)
    train = split(dataset, seed=0).train
    X = dataset.contexts.iloc[train].assign(group=dataset.sensitive_features.iloc[train].astype(str))
    X = X.reset_index(drop=True)
    dense = {"sparse_output": False, "handle_unknown": "ignore"}
    encoder = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(**dense), make_column_selector(dtype_exclude="number")),
    )
    model = make_pipeline(encoder, MODELS[kind])
    model.fit(X, dataset.label.iloc[train].to_numpy() == dataset.pos_label)
    return question(model, X, X["group"], 0)


def any_people(members: Members, n: int, rng: np.random.Generator) -> np.ndarray:
    sizes = members.possible.sizes
    return rng.integers(sizes, size=(n, len(sizes)))


class Counted(Members):
    """Keeps everybody who was found."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.kept: list[np.ndarray] = []
        self.uncounted = 0.0  # seconds

    def ask(self, codes: np.ndarray, start: np.ndarray) -> Found:
        found = super().ask(codes, start)
        self.kept.append(found.codes[found.flips])
        return found

    def spread(self, rng: np.random.Generator) -> float:
        """Return in what share of the columns two of those found differ, on average."""
        found = np.concatenate(self.kept)
        return float((found[rng.permutation(len(found))] != found).mean()) if len(found) else float("nan")


def themis(members: Counted, rng: np.random.Generator) -> None:
    while members.people_left:
        members.ask(any_people(members, BATCH, rng), np.zeros(BATCH, dtype=int))


def seeds(members: Counted, rng: np.random.Generator) -> np.ndarray:
    """Return real people for whom the group is among the columns that matter most; this is not counted."""
    began, real = time.process_time(), members.possible.real
    people = real[rng.permutation(len(real))[: 2 * SEEDS]]

    def told(codes: np.ndarray, group: int) -> np.ndarray:
        at = np.full(len(codes), members.asked.members[group][0][0])
        return members.asked.as_members(members.possible.rows(codes), at).scores[:, 1]

    said = told(people, 0)
    effects = []
    for column in range(real.shape[1]):
        other = people.copy()
        other[:, column] = real[rng.integers(len(real), size=len(people)), column]
        effects.append(np.abs(told(other, 0) - said))
    rank = (np.array(effects) > np.abs(told(people, 1) - said)).sum(axis=0)
    members.uncounted = time.process_time() - began
    return people[np.argsort(rank, kind="stable")[:SEEDS]]


def expga(members: Counted, rng: np.random.Generator) -> None:
    population = seeds(members, rng)
    n, m = population.shape
    known: dict[bytes, float] = {}
    while members.people_left:
        found = members.ask(population, np.zeros(n, dtype=int))
        known |= dict(zip(map(bytes, found.codes), found.gap, strict=True))
        fitness = np.array([known.get(bytes(one), 0.0) for one in population])
        chosen = population[rng.choice(n, size=n, p=(fitness + 1e-9) / (fitness + 1e-9).sum())]
        mates = chosen[rng.permutation(n)]
        crossed = (rng.random((n, 1)) < CROSSED) & (rng.random((n, m)) < 0.5)
        population = np.where(crossed, mates, chosen)
        mutated = rng.random((n, m)) < MUTATED
        population = np.where(mutated, any_people(members, n, rng), population)


STRATEGIES: dict[str, Callable[[Counted, np.random.Generator], None]] = {
    "evenhand": search, "ExpGA": expga, "Themis": themis,
}  # fmt: skip


def one(question: Question, strategy: str, seed: int, predictions: int) -> dict[str, Any]:
    features = [name for name in question.seen if name not in question.columns]
    began = time.process_time()
    members = Counted(question, possible_people(question.frame[features]), predictions, float("inf"))
    STRATEGIES[strategy](members, np.random.default_rng(seed))
    seconds = time.process_time() - began - members.uncounted
    return {
        "strategy": strategy, "seed": seed, "found": members.n_found, "predictions": members.predictions,
        "seconds": seconds, "largest_gap": members.gap, "spread": members.spread(np.random.default_rng(seed)),
    }  # fmt: skip


def case(name: str, kind: str, n_seeds: int, predictions: int) -> list[dict[str, Any]]:
    put = asked(name, kind)
    one(put, "Themis", 0, BATCH)  # the first questions take longer
    return [
        {"dataset": name, "model": kind, **one(put, strategy, seed, predictions)}
        for strategy, seed in product(STRATEGIES, range(n_seeds))
    ]


if __name__ == "__main__":
    given = asking.asked(
        __doc__,
        "results/search_strategies",
        datasets=["german", "compas", "adult"],
        seeds=5,
        predictions=10_000,
        jobs=-1,
    )
    rows: list[dict[str, Any]] = []
    done = Parallel(given.jobs, verbose=5, return_as="generator_unordered")(
        delayed(case)(name, kind, given.seeds, given.predictions)
        for name, kind in product(given.datasets, MODELS)
    )
    for part in done:
        rows += part
        pd.DataFrame(rows).to_csv(given.out / "runs.csv", index=False)
    table = pd.DataFrame(rows)
    print(
        table.groupby(["dataset", "model", "strategy"])[["found", "seconds", "largest_gap", "spread"]].mean()
    )
