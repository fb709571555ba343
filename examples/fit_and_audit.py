"""Two models of German credit, with and without cooperation, and an audit of each.

    python examples/fit_and_audit.py        # downloads the data once, through pip

The second model cares who flips. The third bounds the difference between the groups' rates too.
"""

from __future__ import annotations

from sklearn.model_selection import train_test_split

from evenhand import CooperativeBandits, Likelihood, LogRatio, Parity, audit
from evenhand.datasets import load
from evenhand.tables.preprocessing import make_preprocessor


def main() -> None:
    german = load("german")
    print(german)
    X_train, X_test, y_train, y_test, s_train, s_test = train_test_split(
        german.contexts, german.label, german.sensitive_features, test_size=0.3, random_state=0
    )
    ready = make_preprocessor(X_train).fit(X_train)

    models = {
        "one policy a group, no cooperation": CooperativeBandits(divergence_weight=0, random_state=0),
        "cooperating (the default)": CooperativeBandits(random_state=0),
        "cooperating, equal rates": CooperativeBandits(
            reward=Likelihood() + LogRatio() + Parity(bound=0.01), random_state=0
        ),
    }
    for name, model in models.items():
        model.fit(ready.transform(X_train), y_train, sensitive_features=s_train)
        found = audit(model, ready.transform(X_test), y_test, sensitive_features=s_test, pos_label="good")
        print(f"\n{name}\n{found.summary()}")


if __name__ == "__main__":
    main()
