"""The report: `summarise` collects results in one dict, and `render` turns it into a page."""

from __future__ import annotations

from evenhand.report.render import render, write_html
from evenhand.report.summary import read_summary, write_summary

__all__ = ["read_summary", "render", "write_html", "write_summary"]
