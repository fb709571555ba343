"""Outcomes that are seen only after 'yes': who locks itself in, who learns, at what cost, and how fairly?

    python experiments/selective_labels.py     # writes results/selective_labels/; about two minutes on one core

Adult, COMPAS, German and made-up people come as streams of at most 4,000 people in ten batches. Each person gets 'yes' or 'no'; 'yes'
earns 1 − cost if the outcome is good and −cost if not, 'no' earns nothing, and only 'yes' shows the outcome. After each
batch every policy learns from its own log, and is measured on the same people who never come: what it earns, how much
its rates of 'yes' differ between the groups, whose decision would flip with their group. All begin with the same harsh
policy: a logistic regression on 50 people, which says 'yes' to the best fifth only.

A made-up stream has the trap of that paper: below the harsh policy's bar the good outcome grows rarer, and further below
far commoner than above it. Who never says 'yes' there never finds out.

The question, the utility and the logistic policies are those of Kilbertus et al. (2020), Fair decisions despite imperfect
predictions: a deterministic rule that is fitted again on the labels it chose to see stays worse than policies that explore.
VW has its defaults and the same floor; six other settings of its learning rate and of --cb_type, tried on two seeds, were
better on one stream and worse on another. It needs the package vowpalwabbit; without it, it is left out, and said. A killed run goes on where it stopped.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asking
import numpy as np
import pandas as pd
from frontier import version_of
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from evenhand import CooperativeBandits, Likelihood, LogRatio, Parity
from evenhand.code_version import code_version
from evenhand.datasets import load
from evenhand.decisions.exploration import Explorer, Novelty, with_floor
from evenhand.tables.preprocessing import prepare
from evenhand.tables.splits import split

COSTS = {"made up": 0.55, "adult": 0.5, "compas": 0.6, "german": 0.7}
GOOD = {"adult": ">50K", "compas": "no", "german": "good"}  # COMPAS: no new crime
SEEDS, BATCHES, PEOPLE, TEST, KNOWN, BEST = 10, 10, 4000, 2000, 50, 0.2
FLOOR, FIRST_FLOOR, CLIP = 0.02, 0.1, 10.0


@dataclass
class Log:
    """What a policy has seen: everybody's context, group, decision and its probability, and what it earned."""

    X: list[Any] = field(default_factory=list)
    s: list[Any] = field(default_factory=list)
    yes: list[Any] = field(default_factory=list)
    chance: list[Any] = field(default_factory=list)
    earned: list[Any] = field(default_factory=list)

    def add(self, *parts: Any) -> None:
        for kept, part in zip((self.X, self.s, self.yes, self.chance, self.earned), parts, strict=True):
            kept.append(part)

    def all(self) -> list[Any]:
        return [np.concatenate(kept) for kept in (self.X, self.s, self.yes, self.chance, self.earned)]


class Decider:
    """A policy that learns from its log; `said[person, group]` is P(yes) under each group's policy."""

    start: Callable[[Any], Any]  # the harsh policy, until there is something to learn from

    def __init__(self, cost: float, seed: int) -> None:
        self.cost, self.seed, self.model = cost, seed, None

    def learn(self, log: Log, everything: tuple[Any, Any]) -> None:
        raise NotImplementedError

    def said(self, X: Any) -> Any:
        raise NotImplementedError

    def chances(self, X: Any, s: Any) -> Any:
        """P(yes) as decided, with exploration."""
        said = self.said(X)
        return said[np.arange(len(X)), s % said.shape[1]]


def fitted_lr(X: Any, y: Any) -> Any:
    return LogisticRegression(max_iter=500).fit(X, y) if 0 < y.mean() < 1 else None


class Deterministic(Decider):
    """Fit the labels seen so far, and say yes where the good outcome is likelier than its cost."""

    all_labels = False

    def learn(self, log: Log, everything: tuple[Any, Any]) -> None:
        X, _, yes, _, earned = log.all()
        X, good = everything if self.all_labels else (X[yes], earned[yes] > 0)
        if len(good):
            self.model = fitted_lr(X, good) or self.model

    def said(self, X: Any) -> Any:
        if self.model is None:
            return self.start(X)[:, None]
        return (self.model.predict_proba(X)[:, 1] >= self.cost).astype(float)[:, None]


class Oracle(Deterministic):
    """The same, with everybody's label."""

    all_labels = True


class LogisticPolicy(Decider):
    """Kilbertus et al.: π(yes) = σ(θᵀx), ascended along the utility that inverse propensities estimate."""

    semi = False

    def learn(self, log: Log, everything: tuple[Any, Any]) -> None:
        X, _, yes, chance, earned = log.all()
        X, old, earned = np.c_[X[yes], np.ones(yes.sum())], chance[yes], earned[yes]
        theta = np.zeros(X.shape[1])
        first, second = np.zeros_like(theta), np.zeros_like(theta)
        for step in range(1, 401):  # Adam on the whole log; a weak prior keeps θ finite where all agree
            p = expit(X @ theta)
            kept = p / old < CLIP
            gradient = (kept * earned / old * p * (1 - p)) @ X / len(yes) - 1e-4 * theta
            first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
            theta += 0.05 * first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-9)
        self.model = theta

    def said(self, X: Any) -> Any:
        score = X @ self.model[:-1] + self.model[-1]
        return np.where(self.semi & (score >= 0), 1.0, expit(score))[:, None]


class SemiLogistic(LogisticPolicy):
    """The same, but sure of its yes: only a no is explored."""

    semi = True


class Ours(Decider):
    """CooperativeBandits on the logged rewards, with a floor that is higher where an outcome teaches more."""

    reward: Any = Likelihood() + LogRatio()

    def __init__(self, cost: float, seed: int) -> None:
        super().__init__(cost, seed)
        self.explorer, self.novelty = Explorer(FLOOR), None

    def fit(self, X: Any, s: Any, yes: Any, chance: Any, earned: Any) -> Any:
        model = CooperativeBandits(reward=self.reward, checkpoint_every=10**9, random_state=self.seed)
        taken = yes.astype(int)
        return model.fit_logged(X, taken, earned, chance, sensitive_features=s, classes=[0, 1])

    def learn(self, log: Log, everything: tuple[Any, Any]) -> None:
        X, s, yes, chance, earned = log.all()
        self.novelty = Novelty(X.shape[1]).learn(X[yes])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model = self.fit(X, s, yes, chance, earned)

    def said(self, X: Any) -> Any:
        return self.model.probabilities_by_group(X)[:, :, 1]

    def chances(self, X: Any, s: Any) -> Any:
        own = self.said(X)[np.arange(len(X)), s]
        floors = self.explorer.floors(s.tolist(), self.novelty.of(X))
        return with_floor(np.c_[1 - own, own], floors)[:, 1]


class OursParity(Ours):
    """The same, with equal rates of yes in the groups."""

    reward = Likelihood() + LogRatio() + Parity(bound=0.0)


class OursLabels(Ours):
    """CooperativeBandits on the labels that were seen; yes where the good outcome is likelier than its cost."""

    def fit(self, X: Any, s: Any, yes: Any, chance: Any, earned: Any) -> Any:
        good = (earned[yes] > 0).astype(int)
        if not 0 < good.mean() < 1 or min(np.bincount(s[yes], minlength=2)) < 2:
            return self.model
        model = CooperativeBandits(checkpoint_every=10**9, random_state=self.seed)
        return model.fit(X[yes], good, sensitive_features=s[yes])

    def said(self, X: Any) -> Any:
        if self.model is None:
            return np.repeat(self.start(X)[:, None], 2, axis=1)
        return (super().said(X) >= self.cost).astype(float)


class VW(Decider):
    """Vowpal Wabbit's contextual bandit with action features; it learns one person after another."""

    def __init__(self, cost: float, seed: int) -> None:
        super().__init__(cost, seed)
        from vowpalwabbit import Workspace

        options = (
            f"--cb_explore_adf --epsilon {2 * FLOOR} -q ca --noconstant --quiet --random_seed {seed + 1}"
        )
        self.model = Workspace(options)

    def lines(self, x: Any, told: str = "", action: int = -1) -> list[str]:
        shared = "shared |c bias:1 " + " ".join(f"{at}:{value:.4g}" for at, value in enumerate(x) if value)
        return [shared, *(f"{told if action == a else ''} |a {a}" for a in (0, 1))]

    def learn(self, log: Log, everything: tuple[Any, Any]) -> None:
        for x, yes, chance, earned in zip(
            log.X[-1], log.yes[-1], log.chance[-1], log.earned[-1], strict=True
        ):
            self.model.learn(self.lines(x, f"0:{-earned:.4f}:{chance:.4f}", int(yes)))

    def said(self, X: Any) -> Any:
        return np.array([[self.model.predict(self.lines(x))[1]] for x in X])


METHODS = {
    "deterministic": Deterministic,
    "logistic policy": LogisticPolicy,
    "semi-logistic policy": SemiLogistic,
    "VW": VW,
    "ours, rewards": Ours,
    "ours, rewards + parity": OursParity,
    "ours, labels": OursLabels,
    "oracle": Oracle,
}


def people(name: str, seed: int) -> tuple[Any, Any, Any, Any]:
    """The stream and those who never come; features, groups as 0 and 1, whether the outcome is good."""
    if name == "made up":
        return made_up(PEOPLE, seed), made_up(TEST, 10_000 + seed)
    dataset = load(name)
    parts = prepare(dataset, split(dataset, seed=seed))
    groups = sorted(set(parts.train.s))

    def ready(part: Any, n: int) -> tuple[Any, Any, Any]:
        X = part.X[:n].toarray() if sparse.issparse(part.X) else part.X[:n]
        return X.astype(np.float64), np.searchsorted(groups, part.s[:n]), part.y[:n] == GOOD[name]

    return ready(parts.train, PEOPLE), ready(parts.test, TEST)


def made_up(n: int, seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    s = rng.integers(0, 2, n)
    x = np.clip(rng.uniform(-1, 1, n) + 0.2 * s, -1, 1)
    good = rng.random(n) < np.interp(
        x, [-1, -0.6, -0.3, 0, 0.2, 0.4, 1], [0.05, 0.5, 0.9, 0.9, 0.3, 0.55, 0.95]
    )
    return np.c_[x / 0.6, rng.normal(size=(n, 2))], s, good


def harsh_start(name: str, X: Any, good: Any) -> Callable[[Any], Any]:
    """Who gets 'yes' at first: those above a bar of the score, or the best fifth by 50 people's labels."""
    if name == "made up":
        return lambda people: (people[:, 0] > 0.4 / 0.6).astype(float)
    start = fitted_lr(X[:KNOWN], good[:KNOWN])
    bar = np.quantile(start.predict_proba(X[:KNOWN])[:, 1], 1 - BEST)
    return lambda people: (start.predict_proba(people)[:, 1] >= bar).astype(float)


def measured(name: str, method: str, seed: int) -> Iterator[dict[str, Any]]:
    """A row after each batch."""
    (X, s, good), (test_X, test_s, test_good) = people(name, seed)
    cost, rng = COSTS[name], np.random.default_rng(seed)
    start = harsh_start(name, X, good)
    decider, log, harsh = METHODS[method](cost, seed), Log(), start(X)
    decider.start = start
    sure = isinstance(decider, Deterministic)
    lost = earned_so_far = 0.0
    for at, rows in enumerate(np.array_split(np.arange(KNOWN, len(X)), BATCHES)):
        if at == 0:
            yes = harsh[rows] if sure else with_floor(np.c_[1 - harsh, harsh], FIRST_FLOOR)[rows, 1]
        else:
            yes = decider.chances(X[rows], s[rows])
        gain = good[rows] - cost
        taken = rng.random(len(rows)) < yes
        lost += float((((yes > 0.5) - yes) * gain).sum())
        earned_so_far += float((taken * gain).sum())
        log.add(X[rows], s[rows], taken, np.where(taken, yes, 1 - yes), taken * gain)
        decider.learn(log, (X[KNOWN : rows[-1] + 1], good[KNOWN : rows[-1] + 1]))
        said = decider.said(test_X)
        own = decider.chances(test_X, test_s)
        rates = [own[test_s == group].mean() for group in (0, 1)]
        n = rows[-1] + 1 - KNOWN
        yield {
            "dataset": name, "method": method, "seed": seed, "people": n,
            "utility": (own * (test_good - cost)).mean(), "discrimination": abs(rates[0] - rates[1]),
            "flip_rate": ((said > 0.5).any(1) != (said > 0.5).all(1)).mean(),
            "yes_rate": own.mean(), "explored": np.minimum(own, 1 - own).mean(),
            "exploration_cost": lost / n, "earned": earned_so_far / n,
        }  # fmt: skip


def kept(folder: Path, name: str, method: str, seed: int) -> pd.DataFrame:
    file = folder / f"{name}-{method}-{seed}.csv".replace(" ", "_")
    return asking.kept(file, lambda: measured(name, method, seed))


def main() -> None:
    arguments = asking.asked(
        __doc__,
        "results/selective_labels",
        datasets={"default": list(COSTS), "choices": list(COSTS)},
        seeds={"default": SEEDS, "help": "how many streams of each"},
    )
    methods = list(METHODS)
    try:
        import vowpalwabbit  # noqa: F401
    except ImportError:
        print("VW is left out: pip install 'evenhand[peers]'")
        methods.remove("VW")
    done = arguments.out / (version_of(sys.modules[__name__]) + code_version("evenhand.bandits")[:12])
    done.mkdir(exist_ok=True)
    found = [
        kept(done, name, method, seed)
        for seed in range(arguments.seeds)
        for name in arguments.datasets
        for method in methods
    ]
    trials = pd.concat(found, ignore_index=True)
    trials.to_csv(arguments.out / "trials.csv", index=False)
    last = trials[trials["people"] == trials.groupby(["dataset"])["people"].transform("max")]
    print(last.groupby(["dataset", "method"], sort=False).mean(numeric_only=True).round(4).to_string())


if __name__ == "__main__":
    main()
