"""The report: `summarise` makes one dict of results, `render` makes a page of it."""

from __future__ import annotations

from evenhand.report.render import render, write_html
from evenhand.report.summary import read_summary, write_summary

__all__ = ["read_summary", "render", "write_html", "write_summary"]
