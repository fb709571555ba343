"""The methods and their grids: the paper's five, ours, and how to add your own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from evenhand.bandits.cooperative import CooperativeBandits
from evenhand.baselines import ALFR, LFR, LR, Rawlsian
from evenhand.boosting import CooperativeBoosting
from evenhand.checks import integer
from evenhand.rewards import Correctness

Point = dict[str, Any]
CLOSE = "CCB settings that come close (found afterwards)"
CONTROL = "CCB control (the same with a constant for λ·KL)"


@dataclass(frozen=True)
class Method:
    """A method: its name, the points of its grid, and how to make the estimator for a point.

    Parameters
    ----------
    name : str
        The name that tables show.
    make : callable
        `make(seed, **point)` returns an unfitted estimator: any scikit-learn classifier. If its `fit` takes
        `sensitive_features`, it gets the groups. If its `fit` takes `callback`, it is judged at every
        checkpoint, otherwise only at the end.
    grid : sequence of dict
        The points. Values are numbers, text, True, False or None. They are part of a result's key.
    most_people : int, optional
        Learn from at most this many people of the training part, which is in random order.
    budget : callable, optional
        `budget(people)` returns further parameters that depend on the size of the data set.
    version : str
        Part of a result's key. Change it when `make` returns something else than before.
    weight : float
        How long a point takes, relative to LR on the same people. The longest trials run first.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> tree = Method("tree", lambda seed, **point: DecisionTreeClassifier(random_state=seed, **point),
    ...               grid(max_depth=[2, 4]))
    >>> tree.make(0, **tree.grid[1])
    DecisionTreeClassifier(max_depth=4, random_state=0)
    """

    name: str
    make: Callable[..., Any]
    grid: Sequence[Point] = ({},)
    most_people: int | None = None
    budget: Callable[[int], Point] | None = None
    version: str = ""
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not self.grid:
            raise ValueError(f"Got an empty grid for {self.name!r}, but expected at least one point.")
        if self.most_people is not None:
            integer("most_people", self.most_people, low=2)

    def points(self, people: int) -> list[Point]:
        """Return the grid for a data set with this number of people."""
        extra = {} if self.budget is None else self.budget(people)
        return [{**point, **extra} for point in self.grid]


def grid(**values: Sequence[Any]) -> tuple[Point, ...]:
    """Return every combination of the values.

    Examples
    --------
    >>> grid(hidden=[10, 20], divergence_weight=[1])
    ({'hidden': 10, 'divergence_weight': 1}, {'hidden': 20, 'divergence_weight': 1})
    """
    return tuple(dict(zip(values, point, strict=True)) for point in itertools.product(*values.values()))


def paper_methods(*, full: bool) -> list[Method]:
    """Return the paper's five methods with the full grids, or the smaller grids of the default run.

    LFR and ALFR would take hours on Health, so they are limited. LFR learns from at most 3,000 people in at
    most 100 iterations (smaller grid: 60), and ALFR from at most 10,000 batches (smaller grid: 3,000).

    Examples
    --------
    >>> {method.name: len(method.grid) for method in paper_methods(full=True)}
    {'LR': 3, 'Rawlsian': 9, 'LFR': 75, 'ALFR': 16, 'CCB': 40}
    >>> {method.name: len(method.grid) for method in paper_methods(full=False)}
    {'LR': 3, 'Rawlsian': 3, 'LFR': 4, 'ALFR': 2, 'CCB': 6}
    """
    tens = [10, 20, 30, 40]
    deltas = [0.3, 0.5, 0.9] if full else [0.5]
    weights: dict[str, Sequence[Any]] = dict.fromkeys(
        ("classifier_weight", "parity_weight"), [0.1, 0.5, 1, 5, 10] if full else [1, 10]
    )
    lfr = grid(n_prototypes=[10, 20, 30] if full else [10], **weights, max_iter=[100 if full else 60])
    widths = itertools.product(tens, tens) if full else ((10, 10), (40, 40))
    alfr = tuple(
        {"n_representation": representation, "n_hidden": hidden} for representation, hidden in widths
    )
    lambdas = list(range(10, 101, 10)) if full else [10, 50, 100]
    ccb = grid(hidden=tens if full else [10, 40], divergence_weight=lambdas)
    batches = partial(_epochs, most_batches=10_000 if full else 3_000)
    return [
        Method("LR", make_lr, grid(C=[0.3, 0.6, 1.0], aware=[True])),
        Method("Rawlsian", make_rawlsian, grid(regularization=[1, 3, 9], delta=deltas), weight=4),
        Method("LFR", make_lfr, lfr, most_people=3_000, weight=60 if full else 15),
        Method("ALFR", make_alfr, alfr, budget=batches, weight=20 if full else 4),
        Method("CCB", make_ccb, ccb, weight=3),
    ]


def authors_methods(*, full: bool) -> list[Method]:
    """Return three baselines as the authors' code has them, and CCB with other settings.

    The settings of CCB were found afterwards, by search. They come close to the published Table 2, which the
    settings of the authors' public code do not. Whether the authors used them is not known. The control has
    the same settings and the same number of points, but a constant instead of λ·KL: nothing about fairness.

    Examples
    --------
    >>> for method in authors_methods(full=False):
    ...     print(method.name)
    Rawlsian (authors)
    LFR (authors)
    ALFR (authors)
    CCB settings that come close (found afterwards)
    CCB control (the same with a constant for λ·KL)
    """
    paper = {method.name: method for method in paper_methods(full=full)}
    theirs = [
        replace(
            paper[name],
            name=f"{name} (authors)",
            grid=[{**p, "variant": "authors"} for p in paper[name].grid],
        )
        for name in ("Rawlsian", "LFR", "ALFR")
    ]
    hidden, some = ([10, 20, 30, 40], slice(None)) if full else ([20, 40], slice(0, 3, 2))
    close = grid(hidden=hidden, divergence_weight=[10, 20, 50, 100][some])
    control = grid(hidden=hidden, constant=[0.5, 1, 2, 5][some])
    how: dict[str, Any] = {"budget": partial(_steps, most=750_000), "weight": 40}
    return [*theirs, Method(CLOSE, make_close, close, **how), Method(CONTROL, make_control, control, **how)]


def our_methods(*, full: bool) -> list[Method]:
    """Return methods that the paper lacks: LR without the group, and rewards that depend on the action.

    'CCB cured' learns from likelihood and log-ratio. 'CCB both' adds parity, for both kinds of fairness at
    once, and also tries correctness instead of likelihood. 'boosted' and 'boosted both' have trees instead
    of networks. Networks make 20 steps per person of the data set, at most 300,000 (smaller grid: 200,000).

    Examples
    --------
    >>> {method.name: len(method.grid) for method in our_methods(full=False)}
    {'LR unaware': 3, 'CCB cured': 2, 'CCB both': 2, 'boosted': 2, 'boosted both': 1}
    """
    cap, weight = partial(_steps, most=300_000 if full else 200_000), 12 if full else 5
    cured = grid(divergence_weight=[0.3, 1, 3, 10] if full else [1, 3], reward=["likelihood + log_ratio"])
    rewards = ["correctness + log_ratio + parity", "likelihood + log_ratio + parity"]
    both = grid(divergence_weight=[0.3, 1, 3] if full else [1], reward=rewards)
    return [
        Method("LR unaware", make_lr, grid(C=[0.3, 0.6, 1.0], aware=[False])),
        Method("CCB cured", make_cured, cured, budget=cap, weight=weight),
        Method("CCB both", make_cured, both, budget=cap, weight=weight),
        Method("boosted", make_boosted, cured, weight=weight),
        Method(
            "boosted both",
            make_boosted,
            [point for point in both if "likelihood" in point["reward"]],
            weight=weight,
        ),
    ]


def make_lr(seed: int, **point: Any) -> LR:
    """Make logistic regression, which uses the group if `aware`."""
    return LR(**point)


def make_rawlsian(seed: int, **point: Any) -> Rawlsian:
    """Make Rawlsian; the authors' variant has no intercept, and is judged after the last round only.

    Choosing among its rounds gives less discrimination, and less accuracy, than they published.
    """
    if point.get("variant") == "authors":
        point |= {"fit_intercept": False, "checkpoint_every": 10**9}
    return Rawlsian(random_state=seed, **point)


def make_lfr(seed: int, **point: Any) -> LFR:
    """Make LFR with A_x = 0.01."""
    return LFR(reconstruction_weight=0.01, random_state=seed, **point)


def make_alfr(seed: int, **point: Any) -> ALFR:
    """Make ALFR with a checkpoint every 100 batches: with fewer, small data sets would have none."""
    return ALFR(checkpoint_every=100, random_state=seed, **point)


def make_ccb(seed: int, **point: Any) -> CooperativeBandits:
    """Make CCB as the authors ran it: in file order, Adam at 1e-4, two epochs, judged every 1,000 steps."""
    return CooperativeBandits.published(variant="authors", random_state=seed, **point)


def make_close(seed: int, **point: Any) -> CooperativeBandits:
    """Make CCB with the published reward, ten times the authors' learning rate, and up to 30 epochs."""
    return CooperativeBandits.published(variant="authors", learning_rate=1e-3, random_state=seed, **point)


def make_control(seed: int, constant: float, **point: Any) -> CooperativeBandits:
    """Make the same with the reward 1[a = y] − constant, which ignores the other groups' policies."""
    reward = Correctness(gains=[[1 - constant, -constant], [-constant, 1 - constant]])
    return make_close(seed, reward=reward, **point)


def make_cured(seed: int, **point: Any) -> CooperativeBandits:
    """Make CCB with the given reward and this library's defaults; the columns already have one scale."""
    return CooperativeBandits(standardize=False, random_state=seed, **point)


def make_boosted(seed: int, **point: Any) -> CooperativeBoosting:
    """Make boosted trees with the given reward and this library's defaults."""
    return CooperativeBoosting(random_state=seed, **point)


def _steps(people: int, most: int) -> Point:
    """Return 20 steps per person of the data set, up to a limit."""
    return {"steps": min(20 * people, most)}


def _epochs(people: int, most_batches: int) -> Point:
    """Return 20 epochs, or fewer to keep the number of batches within a limit."""
    batches = -(-people * 7 // 10 // 32)  # of the training part, about 70 %
    return {"epochs": max(1, min(20, most_batches // max(batches, 1)))}
