"""A search for people whose decision changes with the group, for any model. It proves nothing."""

from evenhand.auditing.searching.result import FlipSearch
from evenhand.auditing.searching.search import search_flips

__all__ = ["FlipSearch", "search_flips"]
