"""The report: a summary dict, then a page."""
