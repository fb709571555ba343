"""From a table to a fair model in use: explore, choose, save, decide, audit.

python examples/explore.py
"""

from __future__ import annotations

import numpy as np
import pandas as pd

import evenhand

rng = np.random.default_rng(0)
n = 2_000
people = pd.DataFrame(
    {
        "skill": rng.normal(size=n).round(2),
        "job": rng.choice(["cook", "clerk", "nurse"], n),
        "sex": rng.choice(["female", "male"], n),
    }
)
chance = people["skill"] + 0.5 * (people["job"] == "clerk") + 0.8 * (people["sex"] == "male")
people["hired"] = np.where(chance + rng.normal(scale=0.5, size=n) > 0.6, "yes", "no")

# Train λ = 0 … 100 with and without parity. In a notebook, evaluate `frontier` to draw the trade-off.
frontier = evenhand.explore(people, label="hired", sensitive="sex", epochs=10)
print(
    frontier.candidates[["name", "accuracy", "discrimination", "flip_rate"]].round(3).to_string(index=False)
)

# Choose the most accurate model under which at most 2 % would get a different decision in another group.
model = frontier.choose(max_flip=0.02)
test = model.card["metrics"]
print(
    f"\naccuracy on the test part {test['accuracy']['value']:.3f}, flip rate {test['flip_rate']['value']:.3f}"
)
model.save("model.skops")

# Later, or on another machine: load the model and decide about raw rows of a table.
model = evenhand.load("model.skops")
newcomers = pd.DataFrame({"skill": [1.2, -0.4], "job": ["nurse", "cook"], "sex": ["female", "male"]})
print("decisions about two newcomers:", *model.decide(newcomers).decision)

audit = evenhand.audit(
    model, people[["skill", "job"]], people["hired"], sensitive_features=people["sex"], pos_label="yes"
)
print(audit.summary())
