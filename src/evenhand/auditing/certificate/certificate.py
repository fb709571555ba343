"""The certificate: the worst person found, and how far apart any two policies can be at most."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from evenhand.auditing.people import differences, in_words, plain
from evenhand.wording import listed


@dataclass(frozen=True)
class Worst:
    """Whom two groups' policies treat most differently, and how differently they can treat anybody.

    Attributes
    ----------
    person : Series or None
        The worst person found, by column; None where nobody was found.
    probabilities : dict
        What each group's policy says: the probability of the label that the certificate names.
    decisions : dict
        What each group's policy decides.
    gap : float
        How far these probabilities are apart, of more than two labels the total variation; NaN without a
        person.
    bound : float
        No possible person's are farther apart; 0 where it is proven that there is no such person.
    certified : bool
        Whether the bound is as close to the gap as was asked for: nobody worse is possible.
    near : Series or None
        With a radius, the real person whom they are nearest to.
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
        Of all possible people, the one whose probabilities are farthest apart.
    flip : Worst
        The same, of those whom two groups' policies decide differently.
    label : object
        The label whose probabilities are given; of more than two the one that differs most.
    groups : list
        The groups compared, each with every other.
    ranges : dict
        The possible people: each column's lowest and highest number, or its categories.
    tolerance : float
        How close a bound has to be to what was found.
    seconds : float
        How long it took.
    boxes : int
        Into how many parts the possible people were split.
    radius : float or None
        How far they are from a real person at most.
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

    @property
    def certified(self) -> bool:
        """Whether it is proven that nobody's probabilities are farther apart than the worst person's."""
        return self.worst.certified

    def summary(self) -> str:
        """Return what was found and what is proven, in plain words."""
        worst, flip = self.worst, self.flip
        near = "" if self.radius is None else f" within {self.radius:g} of a real person"
        lines = [f"Of all possible people{near}, the worst found: {_person(worst)}. {self._said(worst)}"]
        if worst.certified:
            lines.append(
                f"Certified: nobody's probabilities differ by more than {_points(worst.bound)} points."
            )
        else:
            lines.append(
                f"Proven: nobody's differ by more than {_points(worst.bound)} points. Not proven, within the "
                f"time given: that nobody's differ by more than {100 * worst.gap:.2f}."
            )
        if flip.person is None and flip.certified:
            lines.append("Certified: no possible person gets different decisions from two groups' policies.")
        elif flip.person is None:
            lines.append(
                "Nobody was found whom two groups' policies decide differently; if there is anybody, their "
                f"probabilities differ by at most {_points(flip.bound)} points."
            )
        else:
            how = "Certified" if flip.certified else "Proven"
            lines.append(
                f"Two groups' policies decide {_person(flip)} differently. {self._said(flip)} {how}: of "
                f"those decided differently, nobody's differ by more than {_points(flip.bound)} points."
            )
        outside = "people outside them" + ("" if self.radius is None else " or farther from everybody real")
        lines.append(f"This covers the ranges and categories given, not {outside}.")
        return "\n".join(lines)

    def _said(self, worst: Worst) -> str:
        said = ", ".join(f"{value:.3f} as {group}" for group, value in worst.probabilities.items())
        alike = "" if worst.near is None else f" The nearest real person differs in {_changed(worst)}."
        return f"The probability of {self.label!r} is {said}.{alike}"

    def to_frame(self) -> pd.DataFrame:
        """Return both findings as columns of texts: the person, what is said about them, and the bound."""
        columns = {}
        for title, worst in (("farthest apart", self.worst), ("decided differently", self.flip)):
            person: Any = {} if worst.person is None else worst.person
            cells = {name: in_words(value) for name, value in person.items()} | {
                f"P({self.label}) as {name}": f"{value:.4f}" for name, value in worst.probabilities.items()
            }
            cells |= {f"decided as {name}": str(value) for name, value in worst.decisions.items()}
            cells |= {} if worst.near is None else {"nearest real person differs in": _changed(worst)}
            found = "nobody found" if worst.person is None else f"{100 * worst.gap:.2f} points"
            cells |= {"apart": found, "nobody possible is more apart than": f"{_points(worst.bound)} points"}
            columns[title] = pd.Series(
                cells | {"certified": "yes" if worst.certified else "no"}, dtype=object
            )
        order = dict.fromkeys([*columns["farthest apart"].index, *columns["decided differently"].index])
        return pd.DataFrame(columns).reindex(list(order)).fillna("")

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python, with None for NaN."""
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
    return ", ".join(f"{name} {in_words(value)}" for name, value in worst.person.items())


def _points(bound: float) -> str:
    """Return a difference of probabilities in percentage points, rounded up: a bound must stay one."""
    return f"{math.ceil(1e4 * bound - 1e-9) / 100:.2f}"
