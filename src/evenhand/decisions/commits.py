"""Group commit: one thread does the work of many. Jobs that come meanwhile are done together."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

from evenhand.decisions.errors import LogUnavailableError

Work = Callable[[Any], list[Any]]
MOST = 1000  # jobs at a time


class _Job(NamedTuple):
    work: Work
    payload: Any
    answer: Future[Any]


class GroupCommit:
    """One thread that does all writing. While it waits for the disk, new jobs gather and are done together.

    Work is a function that takes the payloads of several jobs, commits, and returns one result per job. If a
    result is an exception, it is raised for the caller of that job. Callers wait until the work returns.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="evenhand-log", daemon=True)
        self._thread.start()

    def submit(self, work: Work, payload: Any) -> Future[Any]:
        """Submit a job; the future has its result once it is on disk."""
        answer: Future[Any] = Future()
        with self._closing:
            if self._closed:
                raise LogUnavailableError("The log is closed; expected an open one.")
            self._jobs.put(_Job(work, payload, answer))
        return answer

    def do(self, work: Callable[[], Any]) -> Any:
        """Do something else in this thread, and wait for its result."""
        return self.submit(lambda _: [work()], None).result()

    def close(self) -> None:
        """Finish the submitted jobs, then end the thread."""
        with self._closing:
            self._closed = True
            self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        going = True
        while going:
            jobs: list[_Job] = []
            while len(jobs) < MOST:
                try:
                    job = self._jobs.get(block=not jobs)
                except queue.Empty:
                    break
                if job is None:
                    going = False
                    break
                jobs.append(job)
            for work in dict.fromkeys(job.work for job in jobs):
                _finish(work, [job for job in jobs if job.work == work])


def _finish(work: Work, jobs: list[_Job]) -> None:
    try:
        results = work([job.payload for job in jobs])
    except LogUnavailableError as error:
        results = [error] * len(jobs)
    except Exception as error:
        if len(jobs) > 1:  # one failure must not fail the others
            for job in jobs:
                _finish(work, [job])
            return
        results = [error]
    for job, result in zip(jobs, results, strict=True):
        if isinstance(result, Exception):
            job.answer.set_exception(result)
        else:
            job.answer.set_result(result)
