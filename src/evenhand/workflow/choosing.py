"""Choosing one of the trained models: by a criterion, within bounds, on the validation part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from evenhand.checks import JobFailedError, one_of
from evenhand.metrics.measures import value_of
from evenhand.workflow.candidates import Candidate
from evenhand.workflow.defaults import CRITERIA


class NoModelWithinBoundsError(JobFailedError):
    """No trained model keeps the bounds; the message names the nearest."""


class Wanted(TypedDict, total=False):
    """What the chosen model must be; see `Frontier.choose`."""

    max_discrimination: float | None
    max_flip: float | None
    criterion: str | None


def choose(
    candidates: Sequence[Candidate],
    *,
    criterion: str,
    max_discrimination: float | None = None,
    max_flip: float | None = None,
) -> Candidate:
    """Return the best model by the criterion among those within the bounds, on the validation part.

    'even' is accuracy − discrimination − flip rate. The paper's delta, accuracy − discrimination, alone would
    choose a model that makes the groups equal by deciding people by their group.
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
        raise NoModelWithinBoundsError(
            f"No model kept {in_words(wanted)} on the validation part; the nearest is {nearest.name}: {got}. "
            "Loosen a bound, or try other weights."
        )

    def worth(candidate: Candidate) -> float:
        found = candidate.validation
        if criterion == "even":
            return value_of(found, "delta") - value_of(found, "flip_rate")
        return -value_of(found, criterion) if criterion == "discrimination" else value_of(found, criterion)

    return max(within, key=worth)


def criterion_for(wanted: Wanted) -> str:
    """Return the criterion that was given, or the default: 'even', and 'accuracy' where there are bounds.

    >>> criterion_for({}), criterion_for({"max_flip": 0.1}), criterion_for({"criterion": "delta"})
    ('even', 'accuracy', 'delta')
    """
    bounded = wanted.get("max_discrimination") is not None or wanted.get("max_flip") is not None
    return wanted.get("criterion") or ("accuracy" if bounded else "even")


def bounds_of(max_discrimination: float | None, max_flip: float | None) -> dict[str, float]:
    """Return the bounds that were given, by the measure that they bound."""
    bounds = {"discrimination": max_discrimination, "flip_rate": max_flip}
    return {name: bound for name, bound in bounds.items() if bound is not None}


def in_words(bounds: dict[str, float]) -> str:
    """Return bounds as text.

    >>> in_words({"discrimination": 0.02, "flip_rate": 0.01})
    'discrimination ≤ 0.02 and flip rate ≤ 0.01'
    """
    return " and ".join(f"{name.replace('_', ' ')} ≤ {bound:g}" for name, bound in bounds.items())
