"""The compiled part of measuring: decisions counted in one pass over people."""

from __future__ import annotations

import numpy as np

from evenhand.arrays import Codes, Floats
from evenhand.jit import jit
from evenhand.metrics.individual import NEARLY, SLACK


@jit()
def counted(
    said: Floats, logs: Floats, own: Codes, truth: Codes, neighbours: Codes, n_labels: int
) -> tuple[Codes, Floats, Floats, int]:
    """Count the decisions about people, made in several ways, in compiled code.

    The ways are: each group's policy decides for everyone, each person is decided by the policy of the next
    group, and each person is decided by the policy of their own group.

    Parameters
    ----------
    said, logs : array, (people, groups, actions)
        The probabilities of each group's policy for each person, and their logarithms.
    own, truth : array of int, (people,)
        Each person's group and label.
    neighbours : array of int, (people, k)
        Each person's nearest neighbours.
    n_labels : int
        The number of labels. The first ones are the actions.

    Returns
    -------
    counts : array of int, (ways, groups, labels, labels)
        The number of people, by way, group, label and decision.
    apart : array, (ways, people)
        The share of each person's neighbours who get a different decision.
    gaps : array, (people,)
        The largest KL divergence from each person's own policy to another group's.
    flips : int
        The number of people who would get a different decision in another group; -1 if `said` has rows that
        are not distributions.
    """
    n, n_groups, n_actions = said.shape
    n_ways, k = n_groups + 2, neighbours.shape[1]
    decided = np.empty((n, n_ways), np.int64)
    counts = np.zeros((n_ways, n_groups, n_labels, n_labels), np.int64)
    gaps, flips, sound = np.zeros(n), 0, True
    for i in range(n):
        mine = own[i]
        for g in range(n_groups):
            best, total, apart_from = 0, 0.0, 0.0
            for a in range(n_actions):
                if said[i, g, a] > said[i, g, best]:
                    best = a
                total += said[i, g, a]
                sound &= said[i, g, a] >= -SLACK  # false for NaN
                apart_from += min(max(said[i, mine, a], 0.0), 1.0) * (logs[i, mine, a] - logs[i, g, a])
            sound &= abs(total - 1) <= NEARLY
            decided[i, g] = best
            gaps[i] = max(gaps[i], apart_from)
        decided[i, n_groups] = decided[i, (mine + 1) % n_groups]
        decided[i, n_groups + 1] = decided[i, mine]
        for w in range(n_ways):
            counts[w, mine, truth[i], decided[i, w]] += 1
        for g in range(n_groups):
            if decided[i, g] != decided[i, mine]:
                flips += 1
                break
    apart = np.empty((n_ways, n))
    for i in range(n):
        for w in range(n_ways):
            others = 0
            for at in range(k):
                others += decided[neighbours[i, at], w] != decided[i, w]
            apart[w, i] = others / k
    return counts, apart, gaps, flips if sound else -1
