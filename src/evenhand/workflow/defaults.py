"""The settings that `explore` and `evenhand fit` share; nothing is imported, since `--help` shows them."""

from __future__ import annotations

WEIGHTS = (0.0, 0.3, 1.0, 5.0, 20.0, 100.0)  # the estimators' default is one of them
POLICIES = ("both", "networks", "trees")  # the first is the default
CRITERIA = ("even", "balanced_even", "delta", "discrimination", "accuracy", "balanced_accuracy")
PARITY_BOUND = 0.01
