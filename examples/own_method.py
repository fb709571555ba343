"""Run your own method and data set in the paper's protocol: same splits, same selection, same metrics.

    python examples/own_method.py

Any scikit-learn classifier is a method. If its `fit` takes `sensitive_features`, it gets the groups; if it
takes `callback(step, model)`, it is measured at every checkpoint. This forest takes neither.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from evenhand.datasets import Dataset
from evenhand.protocol import Method, Sweep, grid, our_methods

forest = Method(
    "forest",
    lambda seed, **point: RandomForestClassifier(random_state=seed, **point),
    grid(n_estimators=[50], max_depth=[3, 6]),
)

rng = np.random.default_rng(0)
people = pd.DataFrame({"score": rng.normal(size=2000), "town": rng.choice(["north", "south"], 2000)})
sex = np.where(rng.random(2000) < 0.3 + 0.4 * (people["town"] == "north"), "f", "m")
hired = np.where(people["score"] + 0.7 * (sex == "m") + rng.normal(size=2000) > 0.5, "yes", "no")
mine = Dataset(
    "mine", people, pd.Series(hired, name="hired"), pd.DataFrame({"sex": sex}), pos_label="yes"
)  # or evenhand.tables.load_table("people.csv", label="hired", sensitive="sex")

if __name__ == "__main__":
    sweep = Sweep([forest, *our_methods(full=False)], [mine, "german"], seeds=2)
    table = sweep.run()  # engine="processes", "dask" or "ray"; store="results.sqlite" to resume
    means = table.groupby(["dataset", "method", "criterion"], sort=False)
    print(means[["accuracy", "discrimination", "consistency", "flip_rate"]].mean().round(3).to_string())
