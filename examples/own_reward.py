"""Write your own reward term: at most about 30 % of each group may get a 'yes'.

    python examples/own_reward.py

A 'yes' is penalised while the group's running share of 'yes' is above 30 %. The function is compiled into the
training loop. It need not be differentiable.
"""

from __future__ import annotations

import numpy as np

from evenhand import CooperativeBandits, Custom, Likelihood, LogRatio
from evenhand.metrics import accuracy, flip_rate, positive_rates

YES, EVERYBODY = 1, -1  # the second of ["no", "yes"]; the last row of rates is 'whatever the label'


def places_for_30_percent(action, label, group, policies, rates):
    """Penalise a 'yes' while the group's share of 'yes' is above 30 %."""
    return -2.0 if action == YES and rates[group, EVERYBODY, YES] > 0.3 else 0.0


def people(n: int, seed: int):
    rng = np.random.default_rng(seed)
    s = rng.choice(["f", "m"], n)
    X = rng.normal(size=(n, 4))
    score = X[:, 0] + 0.5 * X[:, 1] + 0.6 * (s == "m") + rng.logistic(scale=0.5, size=n)
    return X, np.where(score > 0.3, "yes", "no"), s


def main() -> None:
    X, y, s = people(4000, seed=0)
    X_new, y_new, s_new = people(4000, seed=1)
    for name, reward in {
        "without": Likelihood() + LogRatio(),
        "with the reward of our own": Likelihood() + LogRatio() + Custom(places_for_30_percent),
    }.items():
        model = CooperativeBandits(reward=reward, random_state=0).fit(X, y, sensitive_features=s)
        decided = model.predict(X_new, sensitive_features=s_new)
        rates = positive_rates(y_new, decided, sensitive_features=s_new)
        flips = flip_rate(model.probabilities_by_group(X_new).argmax(2), np.searchsorted(["f", "m"], s_new))
        print(f"{name}: 'yes' for {rates['f']:.1%} of women, {rates['m']:.1%} of men;", end=" ")
        print(f"accuracy {accuracy(y_new, decided):.3f}, flip rate {flips:.1%}")


if __name__ == "__main__":
    main()
