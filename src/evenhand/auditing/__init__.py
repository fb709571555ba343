"""The audit: any classifier or its predictions in, findings out."""

from evenhand.auditing.audit import audit
from evenhand.auditing.result import Audit
from evenhand.auditing.statutory import Statutory

__all__ = ["Audit", "Statutory", "audit"]
