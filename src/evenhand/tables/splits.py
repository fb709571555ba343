"""The random split into training, validation and test parts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from evenhand.arrays import Codes, Flags, Floats
from evenhand.checks import integer, number, one_of
from evenhand.groups import encode_groups, sorted_unique
from evenhand.tables.dataset import Dataset

FRACTIONS = (0.70, 0.15, 0.15)


class Split(NamedTuple):
    """Row numbers of the three parts, each in a random order."""

    train: Codes
    validation: Codes
    test: Codes


def split(
    dataset: Dataset | int,
    *,
    seed: int,
    fractions: tuple[float, float, float] = FRACTIONS,
    stratify: Any = None,
) -> Split:
    """Split people at random: 70 % to train, 15 % to validate, 15 % to test.

    The same seed gives the same split on every machine.

    Parameters
    ----------
    dataset : Dataset or int
        The data set, or only the number of people.
    seed : int
        The seed of NumPy's PCG64 generator.
    fractions : three floats
        The share of each part; they add up to 1.
    stratify : array, 'label', 'group' or 'both', optional
        Give each part the same share of each value, to within two people. The names need a data set.

    Examples
    --------
    >>> split(10, seed=0).test.tolist()
    [5]
    """
    people = integer("the number of people", dataset) if not isinstance(dataset, Dataset) else len(dataset)
    integer("seed", seed, low=0)
    shares = _checked(fractions)
    random = np.random.Generator(np.random.PCG64(seed))
    order = random.permutation(people)
    if stratify is not None:
        order = order[np.argsort(_strata(dataset, stratify, people)[order], kind="stable")]
    train = _dealt(people, shares[0])
    rest = order[~train]
    validation = _dealt(len(rest), shares[1] / (shares[1] + shares[2]))
    parts = Split(*(random.permutation(rows) for rows in (order[train], rest[validation], rest[~validation])))
    for part, rows in zip(Split._fields, parts, strict=True):
        if len(rows) == 0:
            raise ValueError(f"{people} people are too few: the {part} part of {fractions!r} would be empty.")
    return parts


def _checked(fractions: tuple[float, float, float]) -> Floats:
    if len(fractions) != 3:
        raise ValueError(f"Got fractions={fractions!r}, but expected three: train, validation, test.")
    shares = np.asarray([number("fractions", share, low=0, high=1, open_low=True) for share in fractions])
    if not np.isclose(shares.sum(), 1):
        raise ValueError(f"Got fractions={fractions!r}, which add up to {shares.sum():g}, but expected 1.")
    return shares


def _dealt(people: int, share: float) -> Flags:
    """Spread a share of the places evenly along a line: any stretch of it gets its share, to within one."""
    so_far = np.floor(share * np.arange(people + 1) + 0.5)
    return np.asarray(np.diff(so_far) > 0)


def _strata(dataset: Dataset | int, stratify: Any, people: int) -> Codes:
    if not isinstance(stratify, str):
        return encode_groups(stratify, people).codes
    one_of("stratify", stratify, ("label", "group", "both"))
    if not isinstance(dataset, Dataset):
        raise ValueError(
            f"Got stratify={stratify!r} with a number of people, but expected a data set or an array."
        )
    label = sorted_unique(dataset.label.to_numpy(dtype=object))[1]
    group = encode_groups(dataset.sensitive_features, people).codes
    both = label * len(np.unique(group)) + group
    return {"label": label, "group": group, "both": both}[stratify]
