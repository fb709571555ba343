"""What can go wrong between a decision loop and those who ask it."""

from __future__ import annotations

from evenhand.checks import JobFailedError


class ConflictError(ValueError):
    """The log holds something else, such as another context under this id. In the service, 409."""


class LogUnavailableError(JobFailedError):
    """The log can't be written now: no room, or no connection. Nothing was decided. In the service, 503."""


class WrongLogError(ValueError):
    """A log of a newer version, of another model, or begun with other rules."""
