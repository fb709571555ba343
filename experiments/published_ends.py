"""Where the published reward ends: plain ascent as in Algorithm 1, and Adam, on Adult.

    python experiments/published_ends.py               # writes results/ends/ends.csv; some minutes

A model is constant when at most 1 % of the test part gets the rarer answer, and constant by group when that holds in each
group. Training is watched every 10,000 steps.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from asking import asked

from evenhand import CooperativeBandits
from evenhand.datasets import load
from evenhand.metrics.selection import Judged
from evenhand.protocol.trial import make_ready

WAYS: dict[str, dict[str, Any]] = {
    "plain ascent, 0.01 (Algorithm 1)": {"variant": "algorithm"},
    "Adam, 0.0001 (the authors' code)": {"variant": "authors", "epochs": 20},
    "Adam, 0.001": {"variant": "authors", "learning_rate": 1e-3, "epochs": 20},
}
LAMBDAS = (10, 50, 100)


def alike(part: Judged, model: Any) -> list[bool]:
    """Return whether a model is constant for everybody, and in each group."""
    answers = part.ask(model)
    positive = answers.decided_own == answers.labels.index(answers.pos_label)
    people = (np.ones_like(positive), *(answers.own == group for group in range(len(answers.groups))))
    same = [min(rate, 1 - rate) <= 0.01 for rate in (positive[some].mean() for some in people)]
    return [same[0], all(same[1:])]


def main() -> None:
    arguments = asked(__doc__, "results/ends", runs={"default": 5, "help": "how many for each λ"})
    warnings.simplefilter("ignore")
    ready = make_ready(load("adult", rows="published"), 0, "published")
    rows = []
    for way, options in WAYS.items():
        for weight in LAMBDAS:
            for seed in range(arguments.runs):
                seen: list[list[bool]] = []
                model = CooperativeBandits.published(weight, hidden=40, random_state=seed, **options)

                def look(step: int, model: CooperativeBandits, seen: list[list[bool]] = seen) -> None:
                    seen.append(alike(ready.test, model))

                model.set_params(checkpoint_every=10_000)
                model.fit(ready.X, ready.y, sensitive_features=ready.s, callback=look)
                last = ready.test.scores(model)
                constant = np.array(seen)[:, 0]
                rows.append(
                    {"way": way, "lambda": weight, "seed": seed, **last._asdict(), "constant": seen[-1][0],
                     "constant_by_group": seen[-1][1], "checkpoints": len(seen), "constant_checkpoints": constant.sum(),
                     "left": (constant[:-1] & ~constant[1:]).sum(), "stayed": (constant[:-1] & constant[1:]).sum()}
                )  # fmt: skip
    pd.DataFrame(rows).to_csv(arguments.out / "ends.csv", index=False)
    print(pd.DataFrame(rows).round(4).to_string(index=False))


if __name__ == "__main__":
    main()
