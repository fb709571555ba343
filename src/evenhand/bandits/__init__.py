"""The estimators: a gradient contextual bandit, and cooperating bandits with one policy per group."""

from evenhand.bandits.cooperative import CooperativeBandits
from evenhand.bandits.gradient import GradientBandit
from evenhand.bandits.training import TrainingDivergedError

__all__ = ["CooperativeBandits", "GradientBandit", "TrainingDivergedError"]
