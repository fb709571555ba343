"""The audit: any classifier or its predictions in, findings out."""

from evenhand.audit.measure import audit
from evenhand.audit.result import Audit

__all__ = ["Audit", "audit"]
