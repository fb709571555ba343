"""The paper's splits: the published test part where one is known."""

from __future__ import annotations

import numpy as np

from evenhand.checks import integer
from evenhand.tables.dataset import Dataset
from evenhand.tables.splits import FRACTIONS, Split, split


def published_split(dataset: Dataset, seed: int) -> Split:
    """Split with the published test part where one is known; elsewhere 70/15/15 at random, as the paper says.

    The validation part is then 15/85 of the people outside the test part, at random.

    Examples
    --------
    >>> from evenhand.datasets import load_german
    >>> [len(part) for part in published_split(load_german(rows="published"), seed=0)]
    [659, 141, 200]
    """
    if dataset.test_rows is None:
        return split(dataset, seed=seed)
    integer("seed", seed, low=0)
    others = np.random.Generator(np.random.PCG64(seed)).permutation(np.flatnonzero(~dataset.test_rows))
    train = round(len(others) * FRACTIONS[0] / (FRACTIONS[0] + FRACTIONS[1]))
    return Split(others[:train], others[train:], np.flatnonzero(dataset.test_rows))
