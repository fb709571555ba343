"""Decision services that are killed, or whose database goes away, under the load of clients who ask again.

    python experiments/reliability.py services      # 100 kills of `evenhand serve`, on SQLite
    python experiments/reliability.py postgresql    # 30 stops of PostgreSQL below two services on one log
    python experiments/reliability.py full-disk     # 30 times no byte left

Eight clients decide, ask again and tell outcomes; a ninth promotes what the services learn. What was not answered is asked
again until it is. All that was ever answered must be in the log, once and the same, and replay must be identical.
"""

from __future__ import annotations

import http.client
import itertools
import random
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from decision_kills import ROUND, THREADS, Told, kill_deciders, note, person, reward_of
from private_postgresql import PostgreSQL, private_postgresql
from service import Service
from small_disk import filled, small_disk

LEARNING = ("--learn-every", "0.3")


class Job(NamedTuple):
    """Something to ask of a service: about which people, whether a decision or an outcome."""

    kind: str
    numbers: tuple[int, ...]


class Clients:
    """Threads that ask services, and ask again what was not answered, also after they were stopped."""

    def __init__(self) -> None:
        self._unanswered: deque[Job] = deque()
        self.refused = 0  # answers 503

    @contextmanager
    def asking(self, services: Sequence[Service], told: Told) -> Iterator[None]:
        """Ask until the block ends; write down what is answered."""
        first = max(told["decision"], default=0) + ROUND
        numbers, over, speaking, wrong = itertools.count(first), threading.Event(), threading.Lock(), []

        def ask(thread: int) -> None:
            drawn = random.Random(first + thread)
            while not over.is_set():
                job = self._next(drawn, numbers, first)
                try:
                    status, answered = _answer(drawn.choice(services), job)
                    if not answered:
                        self.refused += status == 503
                        self._unanswered.append(job)
                        time.sleep(0.02)
                        continue
                    with speaking:
                        for number, answer in answered.items():
                            note(told, job.kind, number, answer)
                except Exception as error:  # an answer that nobody may get
                    wrong.append(error)
                    return

        def promote() -> None:
            while not over.wait(0.3):
                try:
                    random.choice(services).ask("/promote", {"force": True})
                except (OSError, http.client.HTTPException):
                    continue

        threads = [threading.Thread(target=ask, args=(at,)) for at in range(THREADS)]
        threads.append(threading.Thread(target=promote))
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()
        if wrong:
            raise wrong[0]

    def _next(self, drawn: random.Random, numbers: Iterator[int], first: int) -> Job:
        try:
            return self._unanswered.popleft()
        except IndexError:
            pass
        how = drawn.random()
        if how < 0.2:  # who was asked about before, perhaps at this moment, perhaps of another service
            return Job("decision", (max(0, next(numbers) - drawn.randrange(20)),))
        chosen = tuple(itertools.islice(numbers, drawn.choice([1, 1, 1, 20])))
        if how < 0.6:
            self._unanswered.append(Job("outcome", chosen))  # told later, by whoever comes first
        return Job("decision", chosen)


def _answer(service: Service, job: Job) -> tuple[int, dict[int, Any]]:
    """Return the status, and what was answered about each person; nothing if it has to be asked again."""
    if job.kind == "decision":
        people = [dict(zip(("id", "context", "group"), person(number), strict=True)) for number in job.numbers]  # fmt: skip
        path, body = "/decide", people[0] if len(people) == 1 else {"people": people}
    else:
        told = [{"id": person(number)[0], "reward": reward_of(number)} for number in job.numbers]
        path, body = "/outcome", told[0] if len(told) == 1 else {"outcomes": told}
    try:
        status, answer = service.ask(path, body)
    except (OSError, http.client.HTTPException):
        return 0, {}
    if status == 503:
        return status, {}
    if status != 200:
        raise RuntimeError(f"{job} was answered {status}: {answer}")
    if job.kind == "outcome":  # of an action that reveals it: all do
        return status, {number: [reward_of(number)] for number in job.numbers}
    made = answer.get("decisions") or [answer]
    said = [[one["action"], one["probability"], one["version"]] for one in made]
    return status, dict(zip(job.numbers, said, strict=True))


def kill_services(n: int, seed: int, where: str | None = None, longest: float = 2.0) -> Counter[str]:
    """Kill a service n times under load."""
    clients = Clients()

    def live_and_die(where: str, told: Told, seconds: float) -> None:
        known = len(told["decision"])
        with Service(where, *LEARNING) as service, clients.asking([service], told):
            until = time.monotonic() + (
                60.0 if seconds > longest / 10 else 0.0
            )  # some die before they answer
            while len(told["decision"]) == known and time.monotonic() < until:
                time.sleep(0.01)
            time.sleep(seconds)
            service.end(signal.SIGKILL)

    return kill_deciders(n, seed, where, longest, live_and_die)


def stop_databases(n: int, seed: int, server: PostgreSQL | None = None, longest: float = 3.0) -> Counter[str]:  # fmt: skip
    """Stop PostgreSQL n times, every other time as if it had crashed, below two services under load."""
    clients, stops = Clients(), itertools.count()
    with ExitStack() as stack:
        running = server or stack.enter_context(private_postgresql())
        where = running.new_database()
        services: list[Service] = []

        def live_and_stop(where: str, told: Told, seconds: float) -> None:
            if not services:  # they live on from stop to stop
                services.extend(stack.enter_context(Service(where, *LEARNING)) for _ in range(2))
            with clients.asking(services, told):
                time.sleep(seconds)
                running.stop(signal.SIGQUIT if next(stops) % 2 else signal.SIGINT)
                time.sleep(0.3)
                running.start()
                time.sleep(1.0)

        return _with_refusals(kill_deciders(n, seed, where, longest, live_and_stop), clients)


def fill_disks(n: int, seed: int, longest: float = 2.0) -> Counter[str]:
    """Fill the disk of a service's log n times under load."""
    clients = Clients()
    with ExitStack() as stack:
        disk = stack.enter_context(small_disk("64m"))
        services: list[Service] = []

        def live_and_fill(where: str, told: Told, seconds: float) -> None:
            if not services:
                services.append(stack.enter_context(Service(where, *LEARNING)))
            with clients.asking(services, told):
                time.sleep(seconds)
                with filled(disk):
                    time.sleep(1.0)
                time.sleep(1.0)

        found = kill_deciders(n, seed, str(disk / "log.db"), longest, live_and_fill)
    return _with_refusals(found, clients)


def _with_refusals(found: Counter[str], clients: Clients) -> Counter[str]:
    """Tell how often 503 was the answer; what was never refused was never tried."""
    told = f"503 {clients.refused:,} times" if clients.refused else "never refused, lost"
    return Counter({f"{name}, {told}": count for name, count in found.items()})
