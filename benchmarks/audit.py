"""One million people audited, every finding and interval included.

    python benchmarks/audit.py                    # about half a minute on two cores
    python benchmarks/audit.py --people 100000

A logistic regression on 12 columns (5 numbers, 6 categories and the sensitive one), asked as it is and with
the sensitive column set to every other value. Shown: seconds, the added peak memory, and the audit's words.
"""

from __future__ import annotations

import numpy as np
import options
import pandas as pd
from peak import measured
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evenhand.auditing import audit


def make_people(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(n, 2))
    X = pd.DataFrame({"sex": rng.choice(["f", "m"], n)})
    for at in range(5):
        X[f"number{at}"] = np.round(10 * (hidden @ rng.normal(size=2)) + 5 * rng.normal(size=n))
    for at in range(6):
        level = np.clip(np.round(hidden @ rng.normal(size=2) + rng.normal(size=n)), -3, 3).astype(int) + 3
        X[f"category{at}"] = pd.Categorical.from_codes(level, list("abcdefg"))
    score = hidden[:, 0] + 0.3 * (X["sex"] == "m") + rng.normal(size=n)
    return X, np.where(score > 0.8, "yes", "no")


if __name__ == "__main__":
    n = options.asked(__doc__, people=1_000_000).people
    X, y = make_people(n)
    categories = ["sex", *(name for name in X if name.startswith("category"))]
    numbers = [name for name in X if name.startswith("number")]
    encoder = make_column_transformer((OneHotEncoder(), categories), (StandardScaler(), numbers))
    model = make_pipeline(encoder, LogisticRegression()).fit(X[:50_000], y[:50_000])
    audit(model, X[:2000], y[:2000], sensitive_features="sex")  # compile
    found, took = measured(lambda: audit(model, X, y, sensitive_features="sex"))
    print(f"{n:,} people audited in {took['seconds']:.1f} s, {took['megabytes']:,.0f} MB added\n")
    print(found.summary())
