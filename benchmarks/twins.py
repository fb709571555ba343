"""Counterparts of 20,000 people in the other group: flips, chance, and the columns that carry them.

    python benchmarks/twins.py                    # some minutes on two cores
    python benchmarks/twins.py --people 5000

A logistic regression on 11 columns (5 numbers and 6 categories, one of which goes with the group) that doesn't see the
group. Shown: seconds, of the clock and of the processor, the added peak memory, and the findings in words.
"""

from __future__ import annotations

import numpy as np
import options
from audit import make_people
from peak import measured
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evenhand import twins

if __name__ == "__main__":
    decisions = {"action": "store_true", "help": "give the decisions alone, not the model"}
    given = options.asked(__doc__, people=20_000, decisions=decisions)
    X, y = make_people(given.people)
    sex = X.pop("sex")
    X["number0"] += 10.0 * (sex == "m")
    y = np.where(X["number0"] > np.quantile(X["number0"], 0.7), "yes", y)
    categories = [name for name in X if name.startswith("category")]
    numbers = [name for name in X if name.startswith("number")]
    encoder = make_column_transformer((OneHotEncoder(), categories), (StandardScaler(), numbers))
    model = make_pipeline(encoder, LogisticRegression()).fit(X, y)
    asked = model.predict(X) if given.decisions else model
    twins(model, X[:500], sensitive_features=sex[:500])  # compile
    found, took = measured(lambda: twins(asked, X, sensitive_features=sex))
    told = "{seconds:.1f} s ({processor_seconds:.1f} s of processor), {megabytes:,.0f} MB added"
    print(f"{given.people:,} people: {told.format(**took)}")
    print(f"\n{found.summary()}")
