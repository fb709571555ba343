"""Group and individual fairness metrics, their intervals and scikit-learn scorers."""

from evenhand.metrics.answers import Answers
from evenhand.metrics.asking import respond
from evenhand.metrics.bootstrap import Interval, bootstrap_interval, mean_interval
from evenhand.metrics.gower import Neighbours, gower_neighbours
from evenhand.metrics.group import (
    accuracy,
    balanced_accuracy,
    by_group,
    delta,
    discrimination,
    equal_opportunity_difference,
    equalized_odds_difference,
    impact_ratio,
    impact_ratios,
    parity_differences,
    positive_rates,
)
from evenhand.metrics.individual import (
    Gap,
    consistency,
    consistency_from_neighbours,
    flip_rate,
    metric_free_gap,
    person_flips,
    person_gaps,
)
from evenhand.metrics.measures import Measure, measure
from evenhand.metrics.scorers import SCORERS, Scorer, scorer
from evenhand.metrics.scores import auc, calibration_error

__all__ = [
    "SCORERS",
    "Answers",
    "Gap",
    "Interval",
    "Measure",
    "Neighbours",
    "Scorer",
    "accuracy",
    "auc",
    "balanced_accuracy",
    "bootstrap_interval",
    "by_group",
    "calibration_error",
    "consistency",
    "consistency_from_neighbours",
    "delta",
    "discrimination",
    "equal_opportunity_difference",
    "equalized_odds_difference",
    "flip_rate",
    "gower_neighbours",
    "impact_ratio",
    "impact_ratios",
    "mean_interval",
    "measure",
    "metric_free_gap",
    "parity_differences",
    "person_flips",
    "person_gaps",
    "positive_rates",
    "respond",
    "scorer",
]
