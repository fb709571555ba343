"""evenhand: metric-free individual fairness with cooperative contextual bandits."""

__version__ = "0.1.0"
