"""The worst possible person, and a bound that holds for all possible people."""

from evenhand.auditing.certificate.certificate import Certificate, Worst
from evenhand.auditing.certificate.certify import certify

__all__ = ["Certificate", "Worst", "certify"]
