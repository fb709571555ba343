"""Where the published reward ends: plain ascent as in Algorithm 1, and Adam, on Adult.

    python experiments/published_ends.py               # writes results/ends/ends.csv; a minute

A model is constant when at most 1 % of the test part gets the rarer answer.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand import CooperativeBandits
from evenhand.datasets import load
from evenhand.protocol.trial import make_ready

WAYS: dict[str, dict[str, Any]] = {
    "plain ascent, 0.01 (Algorithm 1)": {"variant": "algorithm"},
    "Adam, 0.0001 (the authors' code)": {"variant": "authors", "epochs": 20},
    "Adam, 0.001": {"variant": "authors", "learning_rate": 1e-3, "epochs": 20},
}
LAMBDAS = (10, 50, 100)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2, help="how many for each λ")
    parser.add_argument("--out", type=Path, default=Path("results/ends"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    ready = make_ready(load("adult", rows="published"), 0, "published")
    rows = []
    for way, options in WAYS.items():
        for weight in LAMBDAS:
            for seed in range(arguments.runs):
                alike: list[bool] = []
                model = CooperativeBandits.published(weight, hidden=40, random_state=seed, **options)

                def look(step: int, model: CooperativeBandits, alike: list[bool] = alike) -> None:
                    rate = ready.test.scores(model, flips=False).positive_rate
                    alike.append(min(rate, 1 - rate) <= 0.01)

                model.set_params(checkpoint_every=10_000)
                model.fit(ready.X, ready.y, sensitive_features=ready.s, callback=look)
                last = ready.test.scores(model)
                rows.append(
                    {"way": way, "lambda": weight, "seed": seed, **last._asdict(), "constant": alike[-1],
                     "checkpoints": len(alike), "constant_checkpoints": sum(alike)}
                )  # fmt: skip
    arguments.out.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_csv(arguments.out / "ends.csv", index=False)
    print(pd.DataFrame(rows).round(4).to_string(index=False))


if __name__ == "__main__":
    main()
