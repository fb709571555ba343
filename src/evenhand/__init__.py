"""evenhand: metric-free individual fairness with cooperative contextual bandits."""

from evenhand.auditing import Audit, audit
from evenhand.bandits import CooperativeBandits, GradientBandit, TrainingDivergedError
from evenhand.metrics.collapse import CollapseWarning
from evenhand.rewards import (
    KL,
    Agreement,
    Correctness,
    Custom,
    EqualizedOdds,
    EqualOpportunity,
    Likelihood,
    LogRatio,
    Parity,
    Reward,
)
from evenhand.tables.tabular import tabular
from evenhand.version import __version__
from evenhand.workflow.persistence import load, save

__all__ = [
    "KL",
    "Agreement",
    "Audit",
    "CollapseWarning",
    "CooperativeBandits",
    "Correctness",
    "Custom",
    "EqualOpportunity",
    "EqualizedOdds",
    "GradientBandit",
    "Likelihood",
    "LogRatio",
    "Parity",
    "Reward",
    "TrainingDivergedError",
    "__version__",
    "audit",
    "load",
    "save",
    "tabular",
]
