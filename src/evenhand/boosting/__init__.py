"""Boosted trees for policies: CooperativeBoosting, and CooperativeEnsemble of trees and networks."""

from evenhand.boosting.cooperative import CooperativeBoosting
from evenhand.boosting.ensemble import CooperativeEnsemble

__all__ = ["CooperativeBoosting", "CooperativeEnsemble"]
