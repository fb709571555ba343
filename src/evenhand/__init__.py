"""evenhand: metric-free individual fairness with cooperative contextual bandits."""

from evenhand.audit import Audit, audit
from evenhand.bandit import GradientBandit
from evenhand.collapse import CollapseWarning
from evenhand.cooperative import CooperativeBandits
from evenhand.persistence import load, save
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
from evenhand.training import TrainingDivergedError
from evenhand.version import __version__

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
]
