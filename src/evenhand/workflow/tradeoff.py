"""The small grid behind `fit`: every λ with and without parity, measured, and one of them chosen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt

from evenhand import CooperativeBandits
from evenhand.bandits.defaults import people_met
from evenhand.checks import one_of
from evenhand.cli.console import JobFailedError
from evenhand.groups import codes_of
from evenhand.metrics.measures import Measure, measure, value_of
from evenhand.rewards.terms import Likelihood, LogRatio, Parity
from evenhand.tables.preprocessing import Part, Parts
from evenhand.workflow.resuming import Unfinished

WEIGHTS = (0.0, 0.3, 1.0, 5.0, 20.0, 100.0)  # the library's own among them
CRITERIA = ("even", "delta", "discrimination", "accuracy")
PARITY_BOUND = 0.01
_CURVE_POINTS = 40
_CURVE_PEOPLE = 4_000


@dataclass
class Candidate:
    """One trained model, what it does on the validation part, and how it got there."""

    divergence_weight: float
    parity: bool
    model: CooperativeBandits
    validation: dict[str, Measure]
    curve: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What the tables call it."""
        return f"λ = {self.divergence_weight:g}" + (", with parity" if self.parity else "")

    @property
    def family(self) -> str:
        """The models that differ from it by λ alone."""
        return "bandits with parity" if self.parity else "bandits"


def train_all(
    parts: Parts,
    *,
    weights: Sequence[float],
    parity_bound: float = PARITY_BOUND,
    epochs: float | str,
    seed: int,
    jobs: int,
    unfinished: Unfinished,
) -> Iterator[Candidate]:
    """Train every point of the grid, several at a time; first come those that were done before."""
    pending = []
    for weight, parity in [(weight, parity) for parity in (False, True) for weight in weights]:
        before = unfinished.read(weight, parity)
        if before is None:
            pending.append((weight, parity))
        else:
            model, measured = before
            yield Candidate(weight, parity, model, **measured)
    work = (
        joblib.delayed(_train)(parts, weight, parity_bound if parity else None, epochs, seed)
        for weight, parity in pending
    )
    # Threads: the training loop lets go of the interpreter, and nothing has to be copied.
    for candidate in joblib.Parallel(n_jobs=jobs, prefer="threads", return_as="generator_unordered")(work):
        unfinished.keep(candidate)
        yield candidate


def choose(
    candidates: Sequence[Candidate],
    *,
    criterion: str,
    max_discrimination: float | None = None,
    max_flip: float | None = None,
) -> Candidate:
    """Return the best by the criterion among those within the bounds, on the validation part.

    'even' is accuracy less discrimination less flip rate: delta alone, the paper's, would take a model that
    makes groups equal by deciding people by their group.
    """
    one_of("criterion", criterion, CRITERIA)
    wanted = bounds_of(max_discrimination, max_flip)

    def excess(candidate: Candidate) -> float:
        return sum(max(0.0, value_of(candidate.validation, name) - bound) for name, bound in wanted.items())

    within = [candidate for candidate in candidates if excess(candidate) == 0]
    if not within:
        nearest = min(candidates, key=excess)
        got = ", ".join(
            f"{name.replace('_', ' ')} {value_of(nearest.validation, name):.4f}" for name in wanted
        )
        raise JobFailedError(
            f"No model kept {in_words(wanted)} on the validation part; the nearest is {nearest.name}: {got}. "
            "Loosen a bound, or try other --weights."
        )

    def worth(candidate: Candidate) -> float:
        found = candidate.validation
        if criterion == "even":
            return value_of(found, "delta") - value_of(found, "flip_rate")
        return -value_of(found, criterion) if criterion == "discrimination" else value_of(found, criterion)

    return max(within, key=worth)


def bounds_of(max_discrimination: float | None, max_flip: float | None) -> dict[str, float]:
    """Return the bounds that were given, by what they bound."""
    bounds = {"discrimination": max_discrimination, "flip_rate": max_flip}
    return {name: bound for name, bound in bounds.items() if bound is not None}


def in_words(bounds: dict[str, float]) -> str:
    """Return bounds as they are told.

    >>> in_words({"discrimination": 0.02, "flip_rate": 0.01})
    'discrimination ≤ 0.02 and flip rate ≤ 0.01'
    """
    return " and ".join(f"{name.replace('_', ' ')} ≤ {bound:g}" for name, bound in bounds.items())


def said_by_group(model: Any, part: Part) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return what each policy says of everybody, and the number of each person's own group."""
    return model.probabilities_by_group(part.X), codes_of(part.s, len(part.y), model.groups_)


def _train(
    parts: Parts, weight: float, parity_bound: float | None, epochs: float | str, seed: int
) -> Candidate:
    reward = Likelihood() + LogRatio()
    if parity_bound is not None:
        reward = reward + Parity(bound=parity_bound)
    model = CooperativeBandits(
        weight,
        reward=reward,
        epochs=epochs,
        checkpoint_every=max(100, people_met(epochs, len(parts.train.y)) // _CURVE_POINTS),
        random_state=seed,
    )
    X, y, s, contexts = parts.validation
    few = slice(_CURVE_PEOPLE)
    watched = Part(X[few], y[few], s[few], contexts[few])
    curve: dict[str, Any] = {"steps": [], "series": {"accuracy": [], "discrimination": [], "flip_rate": []}}

    def watch(step: int, model: CooperativeBandits) -> None:
        found = _measured(model, watched, parts.pos_label)
        curve["steps"].append(int(step))
        for name, values in curve["series"].items():
            values.append(found[name]["value"])

    model.fit(parts.train.X, parts.train.y, sensitive_features=parts.train.s, callback=watch)
    validation = _measured(model, parts.validation, parts.pos_label)
    return Candidate(weight, parity_bound is not None, model, validation, curve)


def _measured(model: CooperativeBandits, part: Part, pos_label: Any) -> dict[str, Measure]:
    said, own = said_by_group(model, part)
    return measure(part.y, said, own, labels=model.classes_, pos_label=pos_label, intervals=False)
