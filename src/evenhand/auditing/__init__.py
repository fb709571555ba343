"""Audit any classifier, or its predictions."""

from evenhand.auditing.audit import audit
from evenhand.auditing.certificate import Certificate, certify
from evenhand.auditing.result import Audit
from evenhand.auditing.searching import FlipSearch, search_flips
from evenhand.auditing.statutory import Statutory
from evenhand.auditing.twin_result import Twins
from evenhand.auditing.twins import twins

__all__ = [
    "Audit", "Certificate", "FlipSearch", "Statutory", "Twins", "audit", "certify", "search_flips", "twins",
]  # fmt: skip
