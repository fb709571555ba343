"""Learn day by day from the rewards of decisions, without labels.

    python examples/online_feedback.py

Each day 200 people arrive. The model draws a decision for each, with its probability. In the evening it
learns what each decision earned, but not what the other decision would have earned.
"""

from __future__ import annotations

import numpy as np

from evenhand import CooperativeBandits, LogRatio
from evenhand.metrics import flip_rate

DAYS, PEOPLE_PER_DAY = 60, 200


def arrivals(rng):
    s = rng.choice(["f", "m"], PEOPLE_PER_DAY)
    X = rng.normal(size=(PEOPLE_PER_DAY, 3))
    pays_back = X[:, 0] + 0.4 * (s == "m") + rng.normal(scale=0.3, size=PEOPLE_PER_DAY) > 0
    return X, s, pays_back


def main() -> None:
    rng = np.random.default_rng(0)
    model = CooperativeBandits(reward=LogRatio(weight=0.5), learning_rate=0.01, random_state=0)
    for day in range(DAYS):
        X, s, pays_back = arrivals(rng)
        if day == 0:
            lent, chance = rng.choice(["lend", "refuse"], PEOPLE_PER_DAY), np.full(PEOPLE_PER_DAY, 0.5)
        else:
            lent, chance = model.sample_actions(X, sensitive_features=s, random_state=day)
        earned = np.where(lent == "lend", np.where(pays_back, 1.0, -1.0), 0.0)  # a refusal earns nothing
        model.update(
            X,
            lent,
            earned,
            chance,
            sensitive_features=s,
            classes=["lend", "refuse"],
            groups=["f", "m"],
        )
        if day % 15 == 0 or day == DAYS - 1:
            own = np.searchsorted(["f", "m"], s)
            flips = flip_rate(model.probabilities_by_group(X).argmax(2), own)
            when = "after the last day" if day == DAYS - 1 else f"day {day:2}"
            print(f"{when}: earned {earned.mean():+.2f} per person, flip rate {flips:.1%}")


if __name__ == "__main__":
    main()
