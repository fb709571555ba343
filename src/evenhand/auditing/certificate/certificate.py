"""The certificate: the worst person found, and a bound on how far apart two policies can be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from evenhand.auditing.people import differences, in_full, plain
from evenhand.wording import group_called, listed


@dataclass(frozen=True)
class Worst:
    """The person whom two groups' policies treat most differently, and a bound for all possible people.

    Attributes
    ----------
    person : Series or None
        The worst person found, by column; None if nobody was found.
    probabilities : dict
        The probability of the certificate's label under each of the two groups' policies.
    decisions : dict
        The decision of each of the two groups' policies.
    gap : float
        The difference of these probabilities; with more than two labels, the total variation. NaN without a
        person.
    bound : float
        The gap of every possible person is at most this; 0 if it is proven that there is no such person.
    certified : bool
        Whether the bound is within the tolerance of the gap. Then no possible person is noticeably worse.
    near : Series or None
        With a radius, the real person who is nearest to the worst person.
    """

    person: pd.Series[Any] | None
    probabilities: dict[Any, float]
    decisions: dict[Any, Any]
    gap: float
    bound: float
    certified: bool
    near: pd.Series[Any] | None = None


@dataclass(frozen=True, repr=False)
class Certificate:
    """How differently the groups' policies can treat any possible person.

    Attributes
    ----------
    worst : Worst
        The possible person whose probabilities are farthest apart.
    flip : Worst
        The same among the people who get different decisions from two groups' policies.
    label : object
        The label whose probabilities are given; with more than two labels, the one that differs most.
    groups : list
        The groups, each compared with every other.
    ranges : dict
        The possible people: each column's lowest and highest number, or its categories.
    tolerance : float
        The largest difference between bound and gap that counts as certified.
    seconds : float
        The time it took.
    boxes : int
        The number of boxes that the search has made by splitting.
    radius : float or None
        The largest Gower distance between a possible person and a real person; None if there is no limit.
    column : str
        The name of the sensitive column; 'group' if it is not known, or if there are several.
    """

    worst: Worst
    flip: Worst
    label: Any
    groups: list[Any]
    ranges: dict[str, Any]
    tolerance: float
    seconds: float
    boxes: int
    radius: float | None = None
    column: str = "group"

    @property
    def certified(self) -> bool:
        """Whether it is proven, up to the tolerance, that nobody is worse than the worst person found."""
        return self.worst.certified

    def summary(self) -> str:
        """Return in plain words what was found and what is proven."""
        worst, flip = self.worst, self.flip
        near = "" if self.radius is None else f" within {self.radius:g} of a real person"
        lines = [f"Of all possible people{near}, the worst found: {_person(worst)}. {self._said(worst)}"]
        if worst.certified:
            lines.append(
                f"Certified: probabilities differ by at most {_points(worst.bound)} points for every "
                "possible person."
            )
        else:
            lines.append(
                f"Proven: probabilities differ by at most {_points(worst.bound)} points for every possible "
                "person. Whether anybody is worse than the worst found was not settled within the time limit."
            )
        if flip.person is None and flip.certified:
            lines.append("Certified: no possible person gets different decisions from two groups' policies.")
        elif flip.person is None:
            lines.append(
                "This proof's own search found nobody with different decisions from two groups' policies. "
                f"If there is anybody, their probabilities differ by at most {_points(flip.bound)} points."
            )
        else:
            how = "Certified" if flip.certified else "Proven"
            lines.append(
                f"The worst found with different decisions: {_person(flip)}. {self._said(flip)} {how}: where "
                f"decisions differ, probabilities differ by at most {_points(flip.bound)} points."
            )
        outside = "people outside them" + ("" if self.radius is None else " or farther from all real people")
        lines.append(f"This covers the ranges and categories given, not {outside}.")
        return "\n".join(lines)

    def _said(self, worst: Worst) -> str:
        said = ", ".join(
            f"{value:.3f} as {group_called(group, self.column)}"
            for group, value in worst.probabilities.items()
        )
        alike = "" if worst.near is None else f" The nearest real person differs in {_changed(worst)}."
        return f"The probability of {self.label!r} is {said}.{alike}"

    def to_frame(self) -> pd.DataFrame:
        """Return both findings as columns of text: person, probabilities, decisions, gap and bound."""
        columns = {}
        for title, worst in (("farthest apart", self.worst), ("decided differently", self.flip)):
            person: Any = {} if worst.person is None else worst.person
            cells = {name: in_full(value) for name, value in person.items()} | {
                f"P({self.label}) as {name}": f"{value:.4f}" for name, value in worst.probabilities.items()
            }
            cells |= {f"decided as {name}": str(value) for name, value in worst.decisions.items()}
            cells |= {} if worst.near is None else {"nearest real person differs in": _changed(worst)}
            found = "nobody found by this proof" if worst.person is None else f"{100 * worst.gap:.2f} points"
            cells |= {
                "apart": found,
                "no possible person differs by more than": f"{_points(worst.bound)} points",
            }
            columns[title] = pd.Series(
                cells | {"certified": "yes" if worst.certified else "no"}, dtype=object
            )
        order = dict.fromkeys([*columns["farthest apart"].index, *columns["decided differently"].index])
        return pd.DataFrame(columns).reindex(list(order)).fillna("")

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python objects, with None for NaN."""
        found: dict[str, Any] = plain({**vars(self), "worst": vars(self.worst), "flip": vars(self.flip)})
        return found

    def __repr__(self) -> str:
        return f"<Certificate for {listed(self.groups, most=5)}>\n{self.summary()}"


def _changed(worst: Worst) -> str:
    near, person = worst.near, worst.person
    return "" if near is None or person is None else differences(near, person)


def _person(worst: Worst) -> str:
    if worst.person is None:
        return "nobody"
    return ", ".join(f"{name} {in_full(value)}" for name, value in worst.person.items())


def _points(bound: float) -> str:
    """Return a difference of probabilities in percentage points, rounded up so that it stays a bound."""
    return f"{math.ceil(1e4 * bound - 1e-9) / 100:.2f}"
