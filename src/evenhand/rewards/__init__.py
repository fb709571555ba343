"""What an action earns: terms that add up to a reward."""

from evenhand.rewards.terms import (
    KL,
    Agreement,
    Correctness,
    Custom,
    EqualizedOdds,
    EqualOpportunity,
    Likelihood,
    LogRatio,
    Parity,
    RateTerm,
    Reward,
    Term,
    as_reward,
)

__all__ = [
    "KL",
    "Agreement",
    "Correctness",
    "Custom",
    "EqualOpportunity",
    "EqualizedOdds",
    "Likelihood",
    "LogRatio",
    "Parity",
    "RateTerm",
    "Reward",
    "Term",
    "as_reward",
]
