"""How often the interval of consistency contains the truth, over draws of people from larger tables.

    python experiments/consistency_intervals.py --publish

From made-up people, samples are drawn from every group, label and decision in proportion. The truth is the mean
over all draws. Beside the interval that the audit gives stands that of values taken for independent.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from evenhand.auditing.drawn import in_proportion
from evenhand.metrics.bootstrap import mean_interval
from evenhand.metrics.dyads import Strata, consistency_interval
from evenhand.metrics.gower import gower_neighbours

PAGE = Path(__file__).parent.parent / "docs" / "generated" / "consistency-intervals.md"
DRAWS = 500
TABLES = {  # people, people drawn, noise of the decisions
    "decisions nearly by the features": (20_000, 600, 0.2),
    "decisions partly by the features": (20_000, 600, 1.0),
    "decisions mostly by chance": (20_000, 600, 3.0),
    "more people drawn": (20_000, 2_000, 1.0),
    "a third of the people drawn": (2_000, 600, 1.0),
    "3 % decided differently, by chance": (20_000, 600, None),
}


def people(n: int, noise: float | None) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return features, decisions and strata."""
    rng = np.random.default_rng(1)
    ages, hours = rng.integers(18, 80, n), rng.normal(40, 10, n).round()
    features = pd.DataFrame({"age": ages, "job": rng.choice(list("abcdefg"), n), "hours": hours})
    group = rng.random(n) < 0.2
    skill = 0.05 * (ages - 45) + 0.05 * (hours - 40) + (features["job"] < "c") + 0.8 * ~group
    skill = skill.to_numpy() + rng.normal(size=n) * (noise or 1)
    label = skill + rng.normal(size=n) > 1
    decision = (skill > 1 if noise else rng.random(n) < 0.03).astype(int)
    return features, decision, 4 * group + 2 * label + decision


def held(n: int, size: int, noise: float | None) -> tuple[float, float, float]:
    """Return the truth, and how often each kind of interval contains it."""
    features, decisions, strata = people(n, noise)
    sizes, rng = np.bincount(strata, minlength=8), np.random.default_rng(5)
    members = [np.flatnonzero(strata == stratum) for stratum in range(8)]
    found = []
    for _ in range(DRAWS):
        wanted = in_proportion(sizes, size)
        rows = np.concatenate(
            [rng.choice(of, k, replace=False) for of, k in zip(members, wanted, strict=True)]
        )
        near, decided = gower_neighbours(features.iloc[rows], 5).indices, decisions[rows]
        apart, drawn = decided[near] != decided[:, None], Strata(strata[rows], sizes)
        mine = consistency_interval(apart, near, np.arange(len(rows)), weights=drawn.weights, strata=drawn)
        found.append((*mine, *mean_interval(1 - apart.mean(axis=1), random_state=rng)[1:]))
    value, low, high, naive_low, naive_high = np.array(found).T
    truth = value.mean()
    return (
        truth,
        np.mean((low <= truth) & (truth <= high)),
        np.mean((naive_low <= truth) & (truth <= naive_high)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--publish", action="store_true", help=f"write {PAGE.name} for the documentation")
    lines = ["| people drawn | consistency | the audit's | as if independent |", "| --- | --- | --- | --- |"]
    publish = parser.parse_args().publish
    for name, (n, size, noise) in TABLES.items():
        truth, mine, naive = held(n, size, noise)
        lines.append(f"| {size:,} of {n:,}, {name} | {truth:.3f} | {mine:.1%} | {naive:.1%} |")
        print(lines[-1], flush=True)
    told = f"How often intervals of 95 % hold, of {DRAWS} draws each. Command: `python experiments/consistency_intervals.py`."
    if publish:
        PAGE.write_text("\n".join([*lines, "", told]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
