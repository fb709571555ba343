"""Counterparts of 20,000 people in the other group: flips, chance, and the columns that carry them.

    python benchmarks/twins.py                    # some minutes on two cores
    python benchmarks/twins.py --people 5000

A logistic regression on 11 columns (5 numbers and 6 categories, one of which goes with the group) that doesn't see the
group. Shown: seconds, of the clock and of the
processor, the added peak memory, and the findings in words.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from audit import make_people
from peak import AddedMemory
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evenhand import twins

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--decisions", action="store_true", help="give the decisions alone, not the model")
    given = parser.parse_args()
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
    with AddedMemory() as memory:
        start, busy = time.perf_counter(), time.process_time()
        found = twins(asked, X, sensitive_features=sex)
        taken, busy = time.perf_counter() - start, time.process_time() - busy
    print(f"{given.people:,} people: {taken:.1f} s ({busy:.1f} s of processor), {memory.added:,.0f} MB added")
    print(f"\n{found.summary()}")
