"""The rules of a log: which actions reveal an outcome, what decisions earn, and who is held out."""

from __future__ import annotations

import hashlib
import json
import math
import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import timedelta
from itertools import chain, product
from typing import Any, Self

import numpy as np

from evenhand import checks
from evenhand.arrays import Flags, Floats
from evenhand.decisions.contexts import shown
from evenhand.decisions.errors import WrongLogError
from evenhand.wording import listed

_ABOUT_ONE = 1.0 / (1 << 53)
_RIGHT = 0.0, 1.0  # what decisions other than the label and equal to it earn, without `earns`


@dataclass(frozen=True)
class Rules:
    """The rules given to `DecisionLoop`, with the seed of the log."""

    seed: str
    explore: float = 0.02
    held_out: float = 0.3
    reveals: list[str] | None = None  # None: every action
    unrevealed: float = 0.0
    within: float | None = None  # seconds
    overdue: float | None = None
    earns: dict[str, dict[str, float]] | None = None  # action → label → reward
    reward_range: tuple[float, float] = (0.0, 1.0)
    explore_per_day: int | None = None

    def draws(self, ids: Sequence[str]) -> tuple[Floats, Flags]:
        """Return each person's number in [0, 1), which picks the action, and whether they are held out.

        Both depend only on the log's rules and the id, not on the order of people or on the policy.
        """
        seed, mix = bytes.fromhex(self.seed), hashlib.blake2b
        mixed = b"".join([mix(id.encode(), key=seed, digest_size=16).digest() for id in ids])
        numbers: Floats = (np.frombuffer(mixed, dtype=">u8").reshape(-1, 2) >> 11) * np.float64(_ABOUT_ONE)
        return numbers[:, 0], numbers[:, 1] < self.held_out

    def shows(self, action: str) -> bool:
        """Return whether an action reveals its outcome."""
        return self.reveals is None or action in self.reveals

    def in_time(self, decided: float, at: float) -> bool:
        """Return whether an outcome came soon enough."""
        return self.within is None or at <= decided + self.within

    def check_outcome(
        self, reward: Any, label: Any, actions: Collection[str]
    ) -> tuple[float | None, str | None]:
        """Return an outcome's reward and label, one of them None; raise if they are not valid."""
        if (reward is None) == (label is None):
            raise ValueError(
                f"Got reward={shown(reward)} and label={shown(label)}, but expected one of them."
            )
        if label is None:
            low, high = self.reward_range
            if isinstance(reward, str):
                raise ValueError(f"Got reward={shown(reward)}, but expected a number.")
            return _check_reward("reward", reward, low, high), None
        known = set(actions) if self.earns is None else {name for of in self.earns.values() for name in of}
        if str(label) not in known:
            raise ValueError(f"Got label={shown(label)}, but expected one of {listed(sorted(known))}.")
        low, high = self.reward_range
        if self.earns is None and not low <= _RIGHT[0] < _RIGHT[1] <= high:
            raise ValueError(
                f"Got label={shown(label)}, but expected a reward: without earns, a label earns 0 or 1, and "
                f"reward_range is {low:g} to {high:g}."
            )
        return None, str(label)

    def as_text(self) -> str:
        """Return the rules as JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def of(cls, text: str) -> Self:
        """Read the rules from what `as_text` returned."""
        told = json.loads(text)
        return cls(**{**told, "reward_range": tuple(told["reward_range"])})

    def check_same(self, told: Rules, *, begins: bool) -> None:
        """Raise if the given rules differ from the log's; defaults count only if the loop has a model."""
        for rule in fields(told):
            name, value, kept = rule.name, getattr(told, rule.name), getattr(self, rule.name)
            if name != "seed" and value != kept and (begins or value != rule.default):
                raise WrongLogError(
                    f"Got {name}={value!r}, but the log was begun with {name}={kept!r}: "
                    "expected the same rules for all of a log. Begin another log to change them."
                )


def _check_reward(name: str, value: Any, low: float, high: float) -> float:
    try:
        return checks.number(name, value, low=low, high=high)
    except ValueError as error:
        raise ValueError(f"{error} reward_range=(low, high) says what a decision may earn.") from None


def _range_of(given: tuple[float, float] | None, named: Mapping[str, list[float]]) -> tuple[float, float]:
    """Return the lowest and the highest possible reward; raise if one that is named lies outside."""
    known = [0.0, *chain.from_iterable(named.values())]  # what `earns` doesn't name earns 0
    low, high = given or ((min(known), max(known)) if named["earns"] else _RIGHT)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"Got reward_range={(low, high)}, but expected a lower and a higher finite number.")
    for name, values in named.items():
        for value in values:
            _check_reward(name, value, low, high)
    return low, high


def _unnamed(revealing: Collection[Any], paid: Mapping[str, Collection[str]]) -> tuple[str, str] | None:
    """Return an action and an outcome of it that `earns` doesn't name; None if it names all.

    >>> paid = {"grant": {"repaid": 1.0}}
    >>> _unnamed(["grant", "refuse"], paid), _unnamed(["grant"], paid)
    (('refuse', 'repaid'), None)
    """
    labels = sorted({label for of in paid.values() for label in of})
    pairs = product(sorted(map(str, revealing)), labels)
    return next(((action, label) for action, label in pairs if label not in paid.get(action, ())), None)


def make_rules(
    actions: Collection[str],
    *,
    seed: str | None,
    explore: float,
    explore_per_day: int | None,
    held_out: float,
    reveals: Collection[Any] | None,
    unrevealed: float,
    within: timedelta | float | None,
    overdue: float | None,
    earns: Mapping[Any, Mapping[Any, float]] | None,
    reward_range: tuple[float, float] | None,
) -> Rules:
    """Check the rules and return them; without a seed, draw one."""
    for name, named in (("reveals", reveals), ("earns", earns)):
        for action in named or ():
            if str(action) not in actions:
                raise ValueError(
                    f"Got {name} with {action!r}, but expected actions: {listed(sorted(actions))}."
                )
    paid = {
        str(action): {str(label): checks.number("earns", value) for label, value in of.items()}
        for action, of in (earns or {}).items()
    }
    seconds = within.total_seconds() if isinstance(within, timedelta) else within
    if seconds is not None:
        checks.number("within", seconds, low=0, open_low=True)
    if overdue is not None and seconds is None:
        raise ValueError("Got overdue, but no within: expected how long an outcome may take.")
    named = {"unrevealed": [float(unrevealed)], "overdue": [] if overdue is None else [float(overdue)]}
    named["earns"] = [value for of in paid.values() for value in of.values()]
    low, high = _range_of(reward_range, named)
    unnamed = _unnamed(actions if reveals is None else reveals, paid)
    if unnamed is not None and not low <= 0 <= high:
        action, label = unnamed
        raise ValueError(
            f"Got reward_range={(low, high)}, but expected one with 0: earns doesn't name the outcome "
            f"{label!r} of {action!r}, which therefore earns 0."
        )
    if seed is not None and not re.fullmatch("[0-9a-fA-F]{32}", seed):
        raise ValueError(
            "Got a seed that is not 32 hexadecimal digits, but expected one like secrets.token_hex(16)."
        )
    return Rules(
        seed=seed or secrets.token_hex(16),
        explore=checks.number("explore", explore, low=0, high=1 / len(actions)),
        held_out=checks.number("held_out", held_out, low=0, high=1),
        reveals=None if reveals is None else sorted(map(str, reveals)),
        unrevealed=float(unrevealed),
        within=None if seconds is None else float(seconds),
        overdue=None if overdue is None else float(overdue),
        earns=paid or None,
        reward_range=(float(low), float(high)),
        explore_per_day=None
        if explore_per_day is None
        else checks.integer("explore_per_day", explore_per_day, low=0),
    )
