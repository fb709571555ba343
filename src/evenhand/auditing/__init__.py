"""The audit: any classifier or its predictions in, findings out."""

from evenhand.auditing.audit import audit
from evenhand.auditing.result import Audit

__all__ = ["Audit", "audit"]
