"""Learning beside deciding: a thread that makes candidates at intervals, and may promote them."""

from __future__ import annotations

import logging
import threading

from evenhand.decisions.loop import DecisionLoop

_LOG = logging.getLogger("evenhand.serve")


class Learner:
    """Calls `learn` every so many seconds, and `promote` after it if told to; an error ends neither."""

    def __init__(self, loop: DecisionLoop, every: float, *, promotes: bool) -> None:
        self._loop, self._every, self._promotes = loop, every, promotes
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="evenhand-learner", daemon=True)

    def start(self) -> None:
        """Begin, unless the interval is 0."""
        if self._every > 0:
            self._thread.start()

    def stop(self) -> None:
        """End; a candidate that is being made is finished first."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._every):
            try:
                self._loop.learn()
                if self._promotes:
                    self._loop.promote(note="by the service")
            except Exception:
                _LOG.exception("Learning failed; it is tried again in %g seconds.", self._every)
