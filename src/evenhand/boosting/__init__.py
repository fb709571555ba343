"""Policies of boosted trees: CooperativeBoosting, and CooperativeEnsemble, which adds networks."""

from evenhand.boosting.cooperative import CooperativeBoosting
from evenhand.boosting.ensemble import CooperativeEnsemble

__all__ = ["CooperativeBoosting", "CooperativeEnsemble"]
