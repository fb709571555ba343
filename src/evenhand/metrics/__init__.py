"""Group and individual fairness metrics."""
