"""Match people with counterparts in another group by optimal transport on the features.

Transport moves one group's people onto another group's with the least total squared distance. Features that
are correlated with the group move with it, and others hardly change: the counterpart of a woman with a
woman's typical working hours is a man with a man's typical hours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.arrays import Codes, Floats

ITERATIONS = 100_000_000  # of the network simplex, which ends long before


class Matched(NamedTuple):
    """People of one group and their counterparts in another; a person may have several, with shares."""

    people: Codes
    counterparts: Codes
    shares: Floats  # they add up to one for each person

    @classmethod
    def normed(cls, people: Codes, counterparts: Codes, mass: Floats) -> Matched:
        """Return the matches, with the mass of each person's counterparts scaled to one."""
        return cls(people, counterparts, mass / np.bincount(people, mass)[people])


def transport(
    distances: Callable[[Codes, Codes], npt.NDArray[np.float32]],
    ones: Codes,
    others: Codes,
    *,
    batch: int,
    rng: np.random.Generator,
    repeats: int = 1,
    weights: Floats | None = None,
) -> tuple[Matched, Matched]:
    """Return the counterparts of some people among others, and those of the others among them.

    The cost of a pair is its squared distance. Of all matchings with the same total distance, this prefers
    the one in which nobody moves much farther than others, so people keep their rank. The result is exact if
    neither group has more people than `batch`. Otherwise, both groups are shuffled and cut into batches,
    which are matched pair by pair; the smaller group's batches are used again. This is repeated with other
    batches, and averaged. Memory: about 40 bytes × batch². With `weights`, people count unequally.

    >>> people = np.array([1.0, 2.0, 10.0, 11.0, 12.0])
    >>> apart = lambda a, b: np.abs(people[a][:, None] - people[b]).astype(np.float32)
    >>> there, back = transport(
    ...     apart, np.array([0, 1]), np.array([2, 3]), batch=10, rng=np.random.default_rng(0)
    ... )
    >>> sorted(zip(there.people.tolist(), there.counterparts.tolist()))
    [(0, 2), (1, 3)]
    """
    emd = _emd()
    if weights is not None:
        ones, others = (side[weights[side] > 0] for side in (ones, others))
    found = []
    for _ in range(repeats if max(len(ones), len(others)) > batch else 1):
        sides = [np.array_split(rng.permutation(side), -(-len(side) // batch)) for side in (ones, others)]
        for number in range(max(map(len, sides))):
            a, b = (parts[number % len(parts)] for parts in sides)
            shares = (np.ones(len(side)) if weights is None else weights[side] for side in (a, b))
            plan = emd(*(side / side.sum() for side in shares), distances(a, b) ** 2, numItermax=ITERATIONS)
            left, right = np.nonzero(plan)
            found.append((a[left], b[right], plan[left, right]))
    people, counterparts, mass = (np.concatenate(part) for part in zip(*found, strict=True))
    return Matched.normed(people, counterparts, mass), Matched.normed(counterparts, people, mass)


def _emd() -> Any:
    try:
        from ot import emd
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "Counterparts by optimal transport need POT: pip install 'evenhand[audit]'.", name="ot"
        ) from None
    return emd
