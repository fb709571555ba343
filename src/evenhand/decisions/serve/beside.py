"""Work in the background: a thread that does one thing at intervals, such as learning."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from evenhand.decisions.errors import ConflictError, LogUnavailableError
from evenhand.decisions.loop import DecisionLoop

_LOG = logging.getLogger("evenhand.serve")


class Beside:
    """Calls a function every so many seconds until it is stopped. An error does not end it."""

    def __init__(self, name: str, every: float, does: Callable[[], object]) -> None:
        self._every, self._does = every, does
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"evenhand-{name}", daemon=True)

    def start(self) -> None:
        """Start, unless the interval is 0."""
        if self._every > 0:
            self._thread.start()

    def stop(self) -> None:
        """Finish the current call, then stop."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._every):
            try:
                self._does()
            except (LogUnavailableError, ConflictError) as error:
                _LOG.warning("%s waits %g seconds: %s", self._thread.name, self._every, error)
            except Exception:
                _LOG.exception("%s failed; it is tried again in %g seconds.", self._thread.name, self._every)


def learner(loop: DecisionLoop, every: float, *, promotes: bool) -> Beside:
    """Return the thread that calls `learn` at intervals, and then `promote` if `promotes` is true."""

    def learn() -> None:
        loop.learn()
        if promotes:
            loop.promote(note="by the service")

    return Beside("learner", every, learn)
