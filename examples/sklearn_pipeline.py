"""Use scikit-learn: your own pipeline, a grid search over λ, and scorers that know the groups.

    python examples/sklearn_pipeline.py

With metadata routing, `sensitive_features` reaches fit, predict and the scorers. If the preprocessing of
`evenhand.tabular` suits you, use that instead; it is shorter.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evenhand import CooperativeBandits
from evenhand.metrics import SCORERS


def people(n: int = 3000):
    rng = np.random.default_rng(0)
    s = pd.Series(rng.choice(["f", "m"], n), name="sex")
    X = pd.DataFrame({"years": rng.gamma(4, 2.5, n), "degree": rng.choice(["none", "bachelor", "master"], n)})
    score = 0.25 * X["years"] + 1.2 * (X["degree"] == "master") + 0.9 * (s == "m") + rng.logistic(size=n)
    return X, np.where(score > 3.4, "yes", "no"), s


def main() -> None:
    sklearn.set_config(enable_metadata_routing=True)
    X, y, s = people()
    bandits = CooperativeBandits(random_state=0)
    bandits.set_fit_request(sensitive_features=True).set_predict_request(sensitive_features=True)
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["degree"]), remainder=StandardScaler()), bandits
    )
    search = GridSearchCV(
        model,
        {"cooperativebandits__divergence_weight": [0, 1, 20]},
        scoring={name: SCORERS[name] for name in ("accuracy", "discrimination", "flip_rate")},
        refit="flip_rate",  # where less is better, scores are negated
        cv=3,
    )
    search.fit(X, y, sensitive_features=s)
    found = pd.DataFrame(search.cv_results_)
    shown = found[["mean_test_accuracy", "mean_test_discrimination", "mean_test_flip_rate"]].abs().round(3)
    print(shown.set_axis(found["param_cooperativebandits__divergence_weight"].rename("λ")))
    print("best divergence_weight:", search.best_params_["cooperativebandits__divergence_weight"])
    decided = search.best_estimator_.predict(X, sensitive_features=s)  # `search.predict` takes X alone
    print(f"'yes' for {np.mean(decided == 'yes'):.0%} of the people")


if __name__ == "__main__":
    main()
