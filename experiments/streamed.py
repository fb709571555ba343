"""What a fit past memory loses: the order in which people are met, and one trainer beside several that are averaged.

    python experiments/streamed.py                  # writes results/streamed.json; about 5 minutes on two cores
    python experiments/streamed.py --publish        # also three tables in docs/generated

Adult, networks at λ = 20 with and without parity, the visits of `epochs="auto"`, eight splits. Every way meets the same
training part as often; shown is the difference of accuracy and discrimination on the test part from the fit in memory with
the same split and seed, with the 95 % interval of the mean.

- buckets on disk, as `explore` does: everybody is drawn into a bucket once, and buckets are met in a new order each epoch;
- a buffer over row groups: row groups of 1,000 people in a new order each epoch fill a buffer, which is met when full;
- several trainers: each learns from a partition of its own, and after every 2,000 visits of each, the policies are averaged
  and all go on from the mean; each keeps its optimiser's averages and its running rates;
- trees beside networks that met everybody, which learn from some people drawn at random (four splits).

The file is as it is, or in the order of the label; partitions are cut from it, or made of one sex each.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import stats

from evenhand import CooperativeBandits, CooperativeEnsemble
from evenhand.bandits.fitting import people_met
from evenhand.bandits.pieces import begin, meet
from evenhand.datasets import load_adult
from evenhand.metrics import discrimination
from evenhand.network import Network
from evenhand.rewards import Likelihood, LogRatio, Parity
from evenhand.tables.preprocessing import Part, Parts, prepare
from evenhand.tables.splits import split

ROOT = Path(__file__).parent.parent
RESULTS, GENERATED = ROOT / "results" / "streamed.json", ROOT / "docs" / "generated"
SIZES = (10_000, 3_000, 1_000, 300)
ROW_GROUP, ROUND, TRAINERS = 1_000, 2_000, (2, 4, 16)
TREES = 4  # splits with trees
REWARDS = {
    "λ = 20": Likelihood() + LogRatio(),
    "λ = 20, with parity": Likelihood() + LogRatio() + Parity(bound=0.01),
}

Order = Callable[[np.random.Generator], Iterator[np.ndarray]]


def buckets(n: int, size: int) -> Order:
    """Return the order of people who are shuffled on disk."""

    def order(rng: np.random.Generator) -> Iterator[np.ndarray]:
        number = -(-n // size)
        drawn = rng.integers(number, size=n)
        while True:
            for bucket in rng.permutation(number):
                yield np.flatnonzero(drawn == bucket)

    return order


def buffer(file: np.ndarray, size: int) -> Order:
    """Return the order of people in whose file row groups are shuffled, before a buffer."""

    def order(rng: np.random.Generator) -> Iterator[np.ndarray]:
        groups = np.split(file, np.arange(ROW_GROUP, len(file), ROW_GROUP))
        while True:
            met = np.concatenate([groups[at] for at in rng.permutation(len(groups))])
            yield from np.split(met, np.arange(size, len(met), size))

    return order


class People:
    """One split of Adult in numbers."""

    def __init__(self, parts: Parts) -> None:
        self.classes, self.names = np.unique(parts.train.y.astype(str)), np.unique(parts.train.s.astype(str))
        self.train, self.test = parts.train, parts.test
        self.labels = np.searchsorted(self.classes, parts.train.y.astype(str))
        self.groups = np.searchsorted(self.names, parts.train.s.astype(str))
        self.total = np.bincount(self.groups)
        self.visits = people_met("auto", len(self.labels))

    def begun(self, seed: int) -> list[CooperativeBandits]:
        made = [
            CooperativeBandits(20, reward=reward, standardize=False, random_state=seed)
            for reward in REWARDS.values()
        ]
        begin(made, self.train.X.shape[1], self.classes, self.names)
        return made

    def meet(self, models: list[CooperativeBandits], who: np.ndarray) -> None:
        if len(who):
            meet(models, self.train.X[who], self.labels[who], self.groups[who], self.total)

    def tested(self, models: list[Any]) -> list[list[float]]:
        return [_tested(model, self.test) for model in models]


def _tested(model: Any, test: Part) -> list[float]:
    decided, truth, groups = model.predict(test.X, sensitive_features=test.s), test.y.astype(str), test.s
    apart = discrimination(truth, decided, sensitive_features=groups, pos_label=">50K")
    return [float(np.mean(decided == truth)), float(apart)]


def streamed(people: People, order: Order, seed: int) -> list[list[float]]:
    models = people.begun(seed)
    for who in order(np.random.default_rng([seed, 1])):
        people.meet(models, who)
        if models[0].n_steps_ >= people.visits:
            return people.tested(models)
    raise AssertionError


def averaged(people: People, partitions: list[np.ndarray], seed: int) -> list[list[float]]:
    """Let a trainer learn from each partition, all of them together as often as one would."""
    rng = np.random.default_rng([seed, 2])
    trainers = [people.begun(seed) for _ in partitions]
    for done in count(step=ROUND * len(partitions)):
        if done >= people.visits:
            return people.tested(trainers[0])
        for models, own in zip(trainers, partitions, strict=True):
            people.meet(models, rng.choice(own, min(ROUND, len(own)), replace=False))
        for at in range(len(REWARDS)):
            of_all = [models[at]._training for models in trainers]
            mean = [np.mean([one.policies[part] for one in of_all], axis=0) for part in range(4)]
            for models, training in zip(trainers, of_all, strict=True):
                # All trainers together are as far in the schedule as one would be.
                training.policies = Network(*(part.astype(np.float32) for part in mean))
                training.step = min(done + ROUND * len(partitions), people.visits - 1)
                models[at]._publish()
    raise AssertionError


def beside_trees(
    people: People, networks: list[CooperativeBandits], seed: int
) -> dict[str, list[list[float]]]:
    """Return what networks that met everybody are with trees that learned from everybody, or from some."""
    order, train = np.random.default_rng([seed, 3]).permutation(len(people.labels)), people.train
    found = {"trees|none": people.tested(networks)}
    for size in (len(order), *SIZES[:3]):
        who = order[:size]
        models = [
            CooperativeEnsemble(20, reward=one.reward, random_state=seed).fit_trees(
                one, train.X[who], train.y[who].astype(str), sensitive_features=train.s[who].astype(str)
            )
            for one in networks
        ]
        found[f"trees|{'all' if size == len(order) else size}"] = people.tested(models)
    return found


def one_split(seed: int) -> dict[str, list[list[float]]]:
    adult = load_adult()
    people = People(prepare(adult, split(adult, seed=seed, stratify="both")))
    n, rng = len(people.labels), np.random.default_rng([seed, 0])
    files = {"as it is": rng.permutation(n), "by label": np.argsort(people.labels, kind="stable")}
    by_sex = np.argsort(people.groups, kind="stable")
    memory = people.begun(seed)
    for model in memory:
        model.fit(people.train.X, people.train.y.astype(str), sensitive_features=people.train.s.astype(str))
    found = {
        "in memory": people.tested(memory),
        **(beside_trees(people, memory, seed) if seed < TREES else {}),
    }
    for size in SIZES:
        found[f"buckets|any|{size}"] = streamed(people, buckets(n, size), seed)
        for name, file in files.items():
            found[f"buffer|{name}|{size}"] = streamed(people, buffer(file, size), seed)
    for number in TRAINERS:
        for name, file in (*files.items(), ("by sex", by_sex)):
            found[f"averaged|{name}|{number}"] = averaged(people, np.array_split(file, number), seed)
    found["one trainer"] = streamed(people, buckets(n, ROUND), seed)
    return found


def interval(values: list[float]) -> str:
    mean = float(np.mean(values))
    half = float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return f"{100 * mean:+.2f} ± {100 * half:.2f}"


def table(found: list[dict[str, Any]], rows: dict[str, str], first: str, beside: str) -> list[str]:
    """Return the differences from the fit `beside`, in percentage points."""
    measures = ("accuracy", "discrimination")
    titles = [f"{measure}, {model}" for model in REWARDS for measure in measures]
    lines = [f"| {first} | " + " | ".join(titles) + " |", "| --- " * (len(titles) + 1) + "|"]
    for title, key in rows.items():
        cells = [
            interval([one[key][model][measure] - one[beside][model][measure] for one in found if key in one])
            for model in range(len(REWARDS))
            for measure in range(len(measures))
        ]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return lines


def publish(found: list[dict[str, Any]]) -> None:
    ways = (("buckets on disk, any file", "buckets|any"), ("row groups and a buffer", "buffer|as it is"),
            ("row groups and a buffer, file in the order of the label", "buffer|by label"))  # fmt: skip
    orders = {f"{name}, {size:,} people held": f"{key}|{size}" for name, key in ways for size in SIZES}
    trainers: dict[str, str] = {"one trainer, any partitions": "one trainer"}
    for name, key in (("partitions at random", "as it is"), ("in the order of the label", "by label"),
                      ("in the order of the sex", "by sex")):  # fmt: skip
        trainers |= {f"{number} trainers averaged, {name}": f"averaged|{key}|{number}" for number in TRAINERS}
    trees = {f"networks, and trees from {size:,} people": f"trees|{size}" for size in SIZES[:3]}
    trees["networks alone"] = "trees|none"
    pages = (
        ("streamed", orders, "in memory"),
        ("averaged", trainers, "in memory"),
        ("trees-of-some", trees, "trees|all"),
    )
    for name, rows, beside in pages:
        splits = sum(next(iter(rows.values())) in one for one in found)
        told = (
            f"Percentage points more than the fit of everybody in memory, on Adult's test part, {splits} splits, "
            "with 95 % intervals. Command: `python experiments/streamed.py --publish`."
        )
        lines = [*table(found, rows, "", beside), "", told]
        (GENERATED / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seeds", type=int, default=8, help="how many splits; 0 reads what was written before"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--publish", action="store_true", help="write the pages' tables")
    asked = parser.parse_args()
    RESULTS.parent.mkdir(exist_ok=True)
    found = [] if asked.seeds else json.loads(RESULTS.read_text(encoding="utf-8"))
    for one in Parallel(n_jobs=asked.jobs, return_as="generator")(
        map(delayed(one_split), range(asked.seeds))
    ):
        found.append(one)
        RESULTS.write_text(json.dumps(found), encoding="utf-8")
    if asked.publish:
        publish(found)


if __name__ == "__main__":
    main()
