"""The inputs and outputs of the training loop: named tuples of arrays and numbers, as Numba needs them.

G is the number of groups. Those of the reward terms are in `evenhand.rewards`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.arrays import Codes, Floats


class Rows(NamedTuple):
    """People's contexts: a CSR matrix, or a dense table in the same three arrays."""

    values: npt.NDArray[np.float32]
    indices: npt.NDArray[np.int32]  # for a dense table: 0 … features-1, only once
    starts: Codes
    sparse: bool


class People(NamedTuple):
    """The group and label of each person; for a log, also the actions and their rewards."""

    groups: Codes
    labels: Codes
    actions: Codes = np.zeros(0, dtype=np.int64)  # a log's actions; empty without a log
    rewards: Floats = np.zeros(0)
    propensities: Floats = np.zeros(0)
    weights: Floats = np.zeros(0)  # of each person's gradient, with mean 1; empty if all are 1
    shares: Floats = np.zeros(0)  # the number of people each represents in rates; empty if all are 1


class Options(NamedTuple):
    """The options of training; `schedule` and `order` are indices into SCHEDULES and ORDERS."""

    expected: bool
    mutual: bool
    adam: bool
    apart: float  # if above 0: Adam moves the policies jointly, their differences at this share of the rate
    learning_rate: float
    schedule: int
    horizon: int  # the number of steps over which the schedule decays; 0: 'linear' and 'cosine' stay constant
    end: int  # the step at which this run ends, and with it the last batch, full or not
    batch_size: int
    weight_decay: float
    order: int
    origin: int  # the step at which training on these people started
    importance_clip: float
    interval: int  # steps summed into one row of the history
    seed: Any


class Moments(NamedTuple):
    """The gradient of the open batch, and Adam's two averages, shaped like the policies.

    The averages have one row more than there are groups, for the policies' mean when they move jointly.
    """

    gradient: Any
    first: Any
    second: Any
    updates: Codes  # (G,) the number of updates of each policy
    pending: Codes  # (1 + G,) the number of people in the open batch; then which policies it updates
