"""Are planted proxies found, and nothing else? Twins on simulated tables whose truth is known.

    python experiments/planted_proxies.py         # writes results/planted_proxies/; about 15 minutes on two cores

A table has four numbers and three categories. In two of them, a number and a category, one group differs from the other by
`strength` standard deviations of what lies behind them; a logistic regression that doesn't see the group uses them. Two more
columns differ as much, but the model doesn't use them; the other three don't differ, and the model uses them. Shown: how
often the group that loses by the proxies is said to (found); of the planted proxies, the share that is named (recall); and
in how many tables any other column is named, or anything at all is said where nothing was planted (false alarms).
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
from asking import asked
from joblib import Parallel, delayed
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evenhand import twins

PLANTED = ["number used", "category used"]
STRENGTHS, SIZES = (0.0, 0.5, 1.0), (400, 1000)
FIRST_SEED = 1000  # tables nobody looked at while twins were made


def make_table(n: int, strength: float, seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return people, their groups and labels."""
    rng = np.random.default_rng(seed)
    last = rng.random(n) < 0.5
    common = rng.normal(size=n)

    def hidden(shifted: bool) -> np.ndarray:
        return 0.5 * common + rng.normal(size=n) + strength * last * shifted

    def category(values: np.ndarray) -> np.ndarray:
        return np.array(["low", "middle", "high"])[np.digitize(values, [-0.5, 1.0])]

    behind = {
        name: hidden(name.endswith(("used", "idle"))) for name in (*PLANTED, "number idle", "category idle")
    }
    behind |= {name: hidden(False) for name in ("number plain", "number other", "category plain")}
    X = pd.DataFrame({name: category(v) if name.startswith("category") else v for name, v in behind.items()})
    used = [name for name in behind if not name.endswith("idle")]
    score = sum(behind[name] for name in used) + rng.normal(size=n)
    return X, np.where(last, "b", "a"), score > np.median(score)


def one(n: int, strength: float, asked: str, seed: int) -> dict[str, object]:
    X, group, y = make_table(n, strength, seed)
    used = [name for name in X if not name.endswith("idle")]
    encoder = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include=float)),
        (OneHotEncoder(), make_column_selector(dtype_exclude=float)),
    )
    model = make_pipeline(encoder, LogisticRegression()).fit(X[used], y)
    found = twins(
        model if asked == "model" else model.predict(X[used]), X, sensitive_features=group, random_state=seed
    )
    loses = found.flips.set_index("group")["clear"]
    named = set(found.columns["column"][found.columns["clear"]])
    return {
        "asked": asked, "people": n, "strength": strength, "seed": seed, "found": bool(loses["a"]),
        "recall": len(named & set(PLANTED)) / len(PLANTED),
        "alarm": bool(loses.any()) if strength == 0 else bool(named - set(PLANTED)),
    }  # fmt: skip


if __name__ == "__main__":
    given = asked(__doc__, "results/planted_proxies", seeds=20, jobs=-1)
    cases = product(SIZES, STRENGTHS, ("model", "decisions"), range(FIRST_SEED, FIRST_SEED + given.seeds))
    rows = Parallel(given.jobs, verbose=5)(delayed(one)(*case) for case in cases)
    table = pd.DataFrame(rows)
    table.to_csv(given.out / "tables.csv", index=False)
    print(table.groupby(["asked", "people", "strength"])[["found", "recall", "alarm"]].mean())
