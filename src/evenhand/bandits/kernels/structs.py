"""What the training loop reads and writes: named tuples of arrays and numbers that Numba understands.

G is the number of groups. What the reward brings is in `evenhand.rewards`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.arrays import Codes, Floats


class Rows(NamedTuple):
    """People's contexts: CSR arrays, or a dense table read through the same three arrays."""

    values: npt.NDArray[np.float32]
    indices: npt.NDArray[np.int32]  # of a dense table: 0 … features-1, once
    starts: Codes
    sparse: bool


class People(NamedTuple):
    """Who is met: group and label of each person, or what a log says was done and paid."""

    groups: Codes
    labels: Codes
    actions: Codes = np.zeros(0, dtype=np.int64)  # a log's actions; empty when labels teach
    rewards: Floats = np.zeros(0)
    propensities: Floats = np.zeros(0)
    weights: Floats = np.zeros(0)  # what a person's gradient counts, 1 on average; empty where all count 1
    shares: Floats = np.zeros(0)  # how many people one stands for in the groups' rates; empty likewise


class Options(NamedTuple):
    """How to learn; the codes are the positions in the tuples of `training`."""

    expected: bool
    mutual: bool
    adam: bool
    apart: float  # above 0: Adam moves the policies' mean, and their differences at this share of the rate
    learning_rate: float
    schedule: int
    horizon: int  # the steps that a decaying schedule spans; 0: it never decays
    end: int  # the step at which this run ends and its last batch closes, full or not
    batch_size: int
    weight_decay: float
    order: int
    origin: int  # the step at which these people were first met
    importance_clip: float
    interval: int  # steps summed into one row of the history
    seed: Any


class Moments(NamedTuple):
    """Gradient of the running batch, and Adam's two averages of it, shaped like the policies.

    The averages have one row more than there are groups: that of the policies' mean, when they move jointly.
    """

    gradient: Any
    first: Any
    second: Any
    updates: Codes  # (G,) how often each policy moved
    pending: Codes  # (1 + G,) people in the open batch, then which policies it touches
