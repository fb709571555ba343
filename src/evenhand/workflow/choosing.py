"""Choosing one of the trained models on the validation part, and making it ready for use, with its card."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from evenhand.checks import JobFailedError, number, one_of
from evenhand.code_version import Made, made
from evenhand.metrics.group_table import group_rows
from evenhand.metrics.measures import GroupRow, Measure, value_of
from evenhand.tables.columns import kinds_of_columns
from evenhand.workflow.candidates import Candidate, answers_of
from evenhand.workflow.card import card_for
from evenhand.workflow.defaults import CRITERIA
from evenhand.workflow.deployed import Deployed
from evenhand.workflow.table import source_of

if TYPE_CHECKING:
    from evenhand.workflow.frontier import Frontier


# How far balanced accuracy is above that of a constant: if some model exceeds the first number, a model with
# less than this share of the best one's value is little better than a constant.
_CLEARLY, _LEAST_SHARE = 0.05, 0.25
# If some model has at most this flip rate, models with more flips are not chosen: otherwise, a few people of
# a small validation part could tip the choice to a model that decides by the group.
FLIPS = 0.01
EVEN = ("even", "balanced_even")
_BOUNDED = {"max_discrimination": "discrimination", "max_flip": "flip_rate"}
BALANCED = {"accuracy": "balanced_accuracy", "even": "balanced_even"}
_BEST = {
    "even": "the highest accuracy − discrimination − flip rate",
    "balanced_even": "the highest balanced accuracy − discrimination − flip rate",
    "delta": "the highest accuracy − discrimination",
    "discrimination": "the lowest discrimination",
    "accuracy": "the highest accuracy",
    "balanced_accuracy": "the highest balanced accuracy",
}


class NoModelWithinBoundsError(JobFailedError):
    """No trained model keeps the bounds; the message names the nearest."""


class Wanted(TypedDict, total=False):
    """The bounds and the criterion for choosing; see `Frontier.choose`."""

    max_discrimination: float | None
    max_flip: float | None
    criterion: str | None


def choose(
    candidates: Sequence[Candidate],
    *,
    criterion: str,
    max_discrimination: float | None = None,
    max_flip: float | None = None,
    n_labels: int = 2,
) -> Candidate:
    """Return the best model by the criterion among those within the bounds, on the validation part.

    'even' is accuracy − discrimination − flip rate. Without `max_flip`, it considers only models with at most
    1 % flips, if there are any. The paper's delta, accuracy − discrimination, alone could choose a model that
    makes the groups equal by deciding by the group. Unless the criterion is 'accuracy', no model that is
    little better than a constant is chosen if another one clearly is better than that.
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
        if criterion in EVEN:
            right = value_of(found, "accuracy" if criterion == "even" else "balanced_accuracy")
            return right - value_of(found, "discrimination") - value_of(found, "flip_rate")
        return -value_of(found, criterion) if criterion == "discrimination" else value_of(found, criterion)

    if criterion != "accuracy":
        within = _no_constants(within, n_labels)
    if criterion in EVEN and max_flip is None:
        within = [one for one in within if value_of(one.validation, "flip_rate") <= FLIPS] or within
    return max(within, key=worth)


def _no_constants(candidates: Sequence[Candidate], n_labels: int) -> list[Candidate]:
    gains = [value_of(one.validation, "balanced_accuracy") - 1 / n_labels for one in candidates]
    least = _LEAST_SHARE * max(gains) if max(gains) > _CLEARLY else -1.0
    return [one for one, gain in zip(candidates, gains, strict=True) if gain >= least]


def criterion_for(wanted: Wanted, *, rare: bool = False) -> str:
    """Return the given criterion, or the default: 'accuracy' if there are bounds, otherwise 'even'.

    If a label is rare, a constant decision is accurate, so the defaults use balanced accuracy.

    >>> criterion_for({}), criterion_for({"max_flip": 0.1}), criterion_for({"criterion": "delta"})
    ('even', 'accuracy', 'delta')
    >>> criterion_for({}, rare=True), criterion_for({"max_flip": 0.1}, rare=True)
    ('balanced_even', 'balanced_accuracy')
    """
    bounded = wanted.get("max_discrimination") is not None or wanted.get("max_flip") is not None
    default = "accuracy" if bounded else "even"
    return wanted.get("criterion") or (BALANCED[default] if rare else default)


def bounds_of(max_discrimination: float | None, max_flip: float | None) -> dict[str, float]:
    """Return the given bounds, by measure; raise unless they are shares."""
    given = {"max_discrimination": max_discrimination, "max_flip": max_flip}
    return {
        _BOUNDED[name]: number(name, bound, low=0, high=1)
        for name, bound in given.items()
        if bound is not None
    }


def in_words(bounds: dict[str, float]) -> str:
    """Return bounds as text.

    >>> in_words({"discrimination": 0.02, "flip_rate": 0.01})
    'discrimination ≤ 0.02 and flip rate ≤ 0.01'
    """
    return " and ".join(f"{name.replace('_', ' ')} ≤ {bound:g}" for name, bound in bounds.items())


def on_bounds(bounds: dict[str, float], test: dict[str, Measure]) -> list[str]:
    """Name the bounds that the chosen model kept on the validation part but not on the test part.

    >>> on_bounds({"flip_rate": 0.01}, {"flip_rate": {"value": 0.02, "low": 0.005, "high": 0.04}})
    ['On the test part the bound was not kept: flip rate 0.0200 (0.0050 to 0.0400), asked for at most 0.01.']
    """
    notes = []
    for name, bound in bounds.items():
        found = test[name]
        if value_of(test, name) > bound:
            between = "" if found["low"] is None else f" ({found['low']:.4f} to {found['high']:.4f})"
            notes.append(
                f"On the test part the bound was not kept: {name.replace('_', ' ')} {found['value']:.4f}"
                f"{between}, asked for at most {bound:g}."
            )
    return notes


def against_most_accurate(candidates: Sequence[Candidate], chosen: Candidate, *, rare: bool = False) -> str:
    """Say what the chosen model gives up for what, on the validation part; '' if none is more accurate.

    The candidates have a policy per group; the references that never see the group are not among them. If a
    label is rare, accuracy is balanced accuracy.
    """
    name = BALANCED["accuracy"] if rare else "accuracy"
    best = max(candidates, key=lambda one: value_of(one.validation, name))
    lost = value_of(best.validation, name) - value_of(chosen.validation, name)
    if lost <= 0:
        return ""
    changed = " and ".join(_moved(which, best, chosen) for which in ("discrimination", "flip_rate"))
    much = f"{lost:.3f}" if lost >= 0.0005 else "less than 0.001"
    return (
        f"Compared with the most accurate model with a policy per group ({best.name}), the chosen one gives "
        f"up {much} of {name.replace('_', ' ')}, {changed}."
    )


def _moved(name: str, best: Candidate, chosen: Candidate) -> str:
    before, after = (f"{value_of(one.validation, name):.3f}" for one in (best, chosen))
    what = name.replace("_", " ")
    if before == after:
        return f"leaves the {what} at {after}"
    return f"{'lowers' if float(after) < float(before) else 'raises'} the {what} from {before} to {after}"


@dataclass(frozen=True)
class Choice:
    """One model of a frontier, how it was chosen, and what it does on the test part."""

    candidate: Candidate
    criterion: str
    bounds: dict[str, float]  # by measure
    test: dict[str, Measure]
    groups: list[GroupRow]
    notes: list[str]  # which bounds it did not keep on the test part, and whether many people flip
    same_answer: float  # the share of the test people who get the most common decision
    made: Made
    model: Deployed

    @property
    def by(self) -> str:
        """What it was chosen by, in words: a measure, and what the models to choose from had to keep."""
        kept = [in_words(self.bounds)] if self.bounds else []
        few_flips = value_of(self.candidate.validation, "flip_rate") <= FLIPS
        if self.criterion in EVEN and "flip_rate" not in self.bounds and few_flips:
            kept.append(f"at most {100 * FLIPS:g} % flips")
        within = f" with {' and '.join(kept)}" if kept else ""
        policies = self.candidate.policies  # each alone is shown, too, but not chosen from
        kind = "networks and trees together" if policies == "both" else policies
        return f"{_BEST[self.criterion]} among the models of {kind}{within}"

    @classmethod
    def of(cls, frontier: Frontier, chosen: Candidate, criterion: str, bounds: dict[str, float]) -> Choice:
        """Measure the chosen model on the test part and make it ready for use."""
        dataset, parts, test = frontier.dataset, frontier.parts, frontier.tested(chosen)
        answers = answers_of(chosen.model, parts.test, parts)
        groups = group_rows(answers)
        notes = on_bounds(bounds, test)
        flips = value_of(chosen.validation, "flip_rate")
        if criterion in EVEN and "flip_rate" not in bounds and flips > FLIPS:
            notes.append(
                f"None of the models to choose from had at most {100 * FLIPS:g} % flips on the validation "
                f"part; the chosen one has {100 * flips:.1f} %."
            )
        kept = [f"Kept on the validation part, as asked: {in_words(bounds)}."] if bounds else []
        how = made(frontier.command, seeds=[frontier.settings.seed], data=[source_of(dataset)])
        card = card_for(
            frontier,
            chosen,
            criterion,
            bounds=bounds,
            bounds_in_words=[*kept, *notes],
            metrics=test,
            groups=groups,
            made=how,
        )
        model = Deployed(
            preprocessor=parts.preprocessor,
            model=chosen.model,
            columns=kinds_of_columns(dataset.contexts, dataset.dates),
            label=str(dataset.label.name),
            sensitive=dataset.sensitive_columns,
            pos_label=dataset.pos_label,
            card=json.loads(json.dumps(card, default=str)),
            merged=dataset.merged or None,
            threshold=parts.threshold,
        )
        same = float(np.bincount(answers.decided_own).max() / len(answers))
        return cls(chosen, criterion, bounds, test, groups, notes, same, how, model)
