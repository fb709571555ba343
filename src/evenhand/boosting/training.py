"""Boosting in rounds: LightGBM grows the trees of each round along the gradient of the reward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from evenhand.arrays import Floats
from evenhand.bandits.doors import all_finite
from evenhand.bandits.fitting import JOINT_FROM
from evenhand.bandits.kernels.structs import People
from evenhand.bandits.training import TrainingDivergedError, same
from evenhand.boosting.ascent import ascend, prices_of, say, spread_of
from evenhand.boosting.trees import Trees, from_lightgbm, joined
from evenhand.network import softmax
from evenhand.rewards.rate_lines import watch_all
from evenhand.rewards.rates import Rates, RateTerm
from evenhand.rewards.registry import TERMS, stiffness
from evenhand.rewards.term import TINY

# Prices swing around their final values. If the reward has prices, the policies are therefore averaged over
# this last share of the rounds.
AVERAGED = 0.5
PACE = 4.0  # a round of trees changes policies more than a step does, so prices move faster too
LEFT_OUT = 0.5  # of the people, in each round, if the reward has prices
FEW = 20_000  # people; with more, trees hardly overfit to single people, and nobody is left out
_LEAST_SHARE = 0.05  # of the dual step, in the last round
_APART_EVERY = 4  # rounds between changes of the differences, if policies are held together


@dataclass(frozen=True)
class Plan:
    """The options for growing trees."""

    rounds: int
    learning_rate: float
    max_leaves: int
    min_leaf: int
    l2: float
    mutual: bool
    importance_clip: float
    every: int  # rounds between checkpoints
    n_jobs: int
    seed: int


@dataclass(frozen=True)
class Beside:
    """Other policies that are combined with the trees; prices are those of the combined policies."""

    logs: Floats  # (people, groups, actions): their log-probabilities
    share: float  # of the trees


@dataclass(frozen=True)
class Boosted:
    """The fitted policies: the trees, their base scores, and the matrix from outputs to policies."""

    trees: Trees
    base: Floats  # (levels,)
    spread: Floats  # (groups, outputs)

    def probabilities(self, features: Any) -> Floats:
        """Return every group's policy: (people, groups, actions)."""
        n_groups, n_outputs = self.spread.shape
        n_levels = len(self.base)
        out = np.empty((features.shape[0], n_groups, n_levels + (n_levels == 1)))
        for begin in range(0, len(out), 4096):  # so that a sparse table is never dense as a whole
            rows = slice(begin, begin + 4096)
            some: Any = features[rows]
            if sparse.issparse(some):
                some = some.toarray()  # type: ignore[attr-defined]
            say(self.trees.scores(some, n_outputs * n_levels), self.base, self.spread, out[rows])
        return all_finite(out)

    def check(self, n_features: int, n_actions: int, n_groups: int) -> None:
        """Raise unless every part, read from a file, fits the others."""
        n_levels = 1 if n_actions == 2 else n_actions
        shapes = (n_levels,), (n_groups, self.spread.shape[-1])
        same((self.base, self.spread), shapes, np.float64)
        self.trees.check(n_features, self.spread.shape[1] * n_levels)


def boost(
    features: Any,
    categorical: list[int],
    people: People,
    terms: Any,
    rates: Rates,
    base: Floats,
    plan: Plan,
    *,
    beside: Beside | None = None,
    checkpoint: Callable[[int, Callable[[], Boosted], list[tuple[float, float]]], bool | None],
) -> Boosted:
    """Grow trees round by round.

    `checkpoint(round, so_far, found)` may return True to stop early. `so_far()` returns the policies, `found`
    has the mean reward and the mean divergence of each round since the last checkpoint.
    """
    import lightgbm

    climb = _Climb(people, terms, rates, base, plan, beside)
    n_scores = len(climb.slopes)
    try:
        booster = lightgbm.Booster(
            _parameters(plan, n_scores), _dataset(lightgbm, features, categorical, plan)
        )
    except lightgbm.basic.LightGBMError as error:
        if "num_features" not in str(error):
            raise
        return Boosted(joined([]), base, climb.spread)  # all columns are constant

    parts: list[Trees] = []

    def so_far() -> Boosted:
        known = sum(len(part.root) for part in parts) // n_scores
        if known < climb.at:
            new = booster.model_to_string(start_iteration=known, num_iteration=-1)
            parts.append(from_lightgbm(new, n_scores))
        trees = joined(parts)
        return Boosted(_averaged(trees, n_scores) if climb.priced else trees, base, climb.spread)

    found = []
    for at in range(plan.rounds):
        booster.update(fobj=climb)
        found.append(climb.found)
        due = at + 1 == plan.rounds or (at + 1) % plan.every == 0
        if due and checkpoint(at + 1, so_far, found):
            break
        found = [] if due else found
    return so_far()


def without_prices(terms: Any) -> Any:
    """Return terms with the rate terms switched off, since their prices are passed separately."""
    active = (on and kind is not RateTerm for on, kind in zip(terms.active, TERMS, strict=True))
    return terms._replace(active=tuple(active))


class _Climb:
    """The objective that LightGBM calls in each round: minus the gradient, and the curvature.

    Trees overfit, and would keep a bound on rates for their training people only. If the reward has prices,
    each round therefore leaves some people out, and the rates also use the scores that a person gets from
    the rounds that left them out.
    """

    def __init__(
        self, people: People, terms: Any, rates: Rates, base: Floats, plan: Plan, beside: Beside | None
    ) -> None:
        n_people, n_groups = len(people.groups), len(rates.counts)
        self.people, self.rates, self.base, self.plan, self.beside = people, rates, base, plan, beside
        self.spread = spread_of(n_groups)
        self.slopes, self.curves = (
            np.empty((self.spread.shape[1] * len(base), n_people), dtype=np.float32) for _ in range(2)
        )
        self.pull, self.priced = stiffness(terms), len(rates.rates) > 0
        self.found, self.at = (0.0, 0.0), 0
        self.own = terms.rates._replace(dual_step=PACE * terms.rates.dual_step, pull=PACE * terms.rates.pull)
        self.unpriced = without_prices(terms)
        self.few = self.priced and n_people < FEW
        if self.priced:
            self.said = np.empty((n_people, n_groups, len(base) + (len(base) == 1)))
        if self.few:
            self.before, self.unseen = np.zeros(self.slopes.shape), np.zeros(self.slopes.shape)
            self.left_out, self.times = np.zeros(n_people, dtype=np.bool_), np.zeros(n_people)
            self.rng = np.random.default_rng(plan.seed)

    def __call__(self, scores: Any, _: Any) -> tuple[Any, Any]:
        scores = np.ascontiguousarray(scores.T.reshape(self.slopes.shape))
        if self.priced:
            self._watch(scores)
        self.found = ascend(
            scores, self.base, self.spread, self.people, self.unpriced, self.rates,
            prices_of(self.own, self.rates), self.plan.mutual, self.plan.importance_clip, self.pull,
            self.slopes, self.curves,
        )  # fmt: skip
        self._check()
        if self.pull >= JOINT_FROM and self.at % _APART_EVERY:
            self.slopes[len(self.base) :] = 0
        if self.few:
            self._leave_out()
        self.at += 1
        found = self.slopes.T, self.curves.T
        return found if len(self.slopes) > 1 else (self.slopes[0], self.curves[0])

    def _check(self) -> None:
        """Raise before LightGBM gets numbers that are not finite: it would train a useless model."""
        if not all(np.isfinite(part).all() for part in (self.found, self.slopes, self.curves)):
            raise TrainingDivergedError(
                f"Training diverged in round {self.at + 1}: the reward or its gradient is no longer a finite "
                "number in single precision. Lower the rewards, their weights or divergence_weight."
            )

    def _leave_out(self) -> None:
        self.left_out = self.rng.random(len(self.times)) < LEFT_OUT
        self.slopes[:, self.left_out] = 0
        self.curves[:, self.left_out] = 0

    def _watch(self, scores: Floats) -> None:
        """Update the prices. If people were left out, use the mean of their scores with and without them."""
        if self.few:
            self.unseen += np.where(self.left_out, scores - self.before, 0)
            self.times += self.left_out
            self.before[:] = scores
            # Rounds that left a person out underfit them; all rounds together overfit them.
            scores = 0.5 * (scores + self.unseen * (self.at / np.maximum(self.times, 1)))
        say(scores, self.base, self.spread, self.said)
        said = self.said if self.beside is None else mixed(self.said, self.beside)
        share = 1 - self.at / self.plan.rounds + _LEAST_SHARE
        people = self.people
        watch_all(
            self.own,
            self.rates,
            people.groups,
            people.labels,
            said,
            share,
            people.shares,
            len(people.actions) > 0,
        )


def _averaged(trees: Trees, n_scores: int) -> Trees:
    """Return scaled trees: their sum is the mean, over the last rounds, of the sum of all trees so far."""
    rounds = len(trees.root) // n_scores
    left = (rounds - np.arange(rounds)) / max(AVERAGED * rounds, 1.0)
    return trees.scaled(np.repeat(np.minimum(left, 1.0), n_scores))


def mixed(said: Floats, beside: Beside) -> Floats:
    """Return policies whose logits are the weighted mean of those of the trees and the other policies."""
    return np.asarray(softmax(beside.share * log_of(said) + (1 - beside.share) * beside.logs))


def log_of(said: Floats) -> Floats:
    """Return log-probabilities, which are finite even where a probability underflowed."""
    return np.asarray(np.log(np.maximum(said, TINY)))


def _parameters(plan: Plan, n_scores: int) -> dict[str, Any]:
    return {
        "objective": "none",
        "num_class": n_scores,
        "learning_rate": plan.learning_rate,
        "num_leaves": plan.max_leaves,
        "min_data_in_leaf": plan.min_leaf,
        "lambda_l2": plan.l2,
        "max_delta_step": 10.0,  # limits the change of a policy in one round, however large the reward
        "num_threads": plan.n_jobs,
        "seed": plan.seed,
        "deterministic": True,
        "force_col_wise": True,
        "verbose": -1,
    }


def _dataset(lightgbm: Any, features: Any, categorical: list[int], plan: Plan) -> Any:
    data: Any = features
    if sparse.issparse(features):  # LightGBM accepts sparse matrices only
        data = sparse.csr_matrix((features.data, features.indices, features.indptr), features.shape)  # type: ignore[attr-defined]
    return lightgbm.Dataset(
        data,
        label=np.zeros(features.shape[0], dtype=np.float32),
        categorical_feature=categorical,
        params={"verbose": -1, "num_threads": plan.n_jobs, "feature_pre_filter": False},
    )
