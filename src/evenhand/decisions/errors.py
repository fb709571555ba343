"""The errors of a decision loop."""

from __future__ import annotations

from evenhand.checks import JobFailedError


class ConflictError(ValueError):
    """The request contradicts the log, such as another context under the same id. HTTP status 409."""


class LogUnavailableError(JobFailedError):
    """The log can't be used now: no space or no connection. Nothing was written. HTTP status 503."""


class WrongLogError(ValueError):
    """Not a log, a log of a newer version, or a log that was begun with another model or other rules."""
