"""A decision loop killed at random moments under load: what was acknowledged and is not in the log?

    python experiments/reliability.py deciders      # 100 kills, one row of docs/generated/reliability.md
    python experiments/decision_kills.py LOG        # the victim: decides, learns and promotes until it is killed

Eight threads of the victim decide, ask again and tell outcomes; a ninth learns and promotes. Each prints what it was
answered. After every kill the log is opened again, and all that was ever printed must be in it, once; at the end every
policy and every decision is made again from the log and must be equal bit for bit.
"""

from __future__ import annotations

import itertools
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import func, select

from evenhand import CooperativeBandits, DecisionLoop
from evenhand.decisions.schema import decisions, outcomes

THREADS, ROUND = 8, 40
WELL = "nothing lost"
Told = dict[str, dict[int, Any]]  # what was acknowledged, by kind and number
Live = Callable[[str, Told, float], None]


def starting_model() -> CooperativeBandits:
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(400, 3)), rng.choice(["f", "m"], 400)
    y = np.where(X[:, 0] > 0.5, "grant", "refuse")
    return CooperativeBandits(epochs=2, random_state=0).fit(X, y, sensitive_features=s)


def person(number: int) -> tuple[str, list[float], str]:
    drawn = random.Random(number)
    return f"person {number}", [drawn.gauss(0, 1) for _ in range(3)], drawn.choice("fm")


def reward_of(number: int) -> float:
    return float(random.Random(-number).random() < 0.5)


def say(kind: str, *told: Any) -> None:
    sys.stdout.write(json.dumps([kind, *told]) + "\n")
    sys.stdout.flush()


def victim(where: str, first: int) -> None:
    """Decide about people from number `first` on, and about some before, until killed."""
    loop = DecisionLoop(None, where)
    numbers, speaking = itertools.count(first), threading.Lock()

    def decide(thread: int) -> None:
        drawn = random.Random(thread + first)
        while True:
            number = next(numbers) if drawn.random() < 0.8 else drawn.randrange(first + 1)
            found = loop.decide(*person(number))
            with speaking:
                say("decision", number, found.action, found.probability, found.version)
            if drawn.random() < 0.5:
                reward = reward_of(number)
                if loop.outcome(found.id, reward=reward) in ("accepted", "repeated"):
                    with speaking:
                        say("outcome", number, reward)

    say("ready")
    for thread in range(THREADS):
        threading.Thread(target=decide, args=(thread,), daemon=True).start()
    while True:
        time.sleep(0.2)
        loop.learn()
        loop.promote(force=True)


def kill_deciders(
    n: int, seed: int, where: str | None = None, longest: float = 1.5, live: Live | None = None
) -> Counter[str]:
    """Kill a decider n times; return what became of all that it had acknowledged.

    `live` lets it decide for so many seconds, writes down what it acknowledged, and ends it.
    """
    drawn, found, told = random.Random(seed), Counter[str](), {"decision": {}, "outcome": {}}
    live = live or _live_and_die
    with tempfile.TemporaryDirectory() as folder:
        where = where or str(Path(folder) / "log.db")
        with DecisionLoop(starting_model(), where, seed="7" * 32):
            pass
        for _ in range(n):
            before = {kind: dict(known) for kind, known in told.items()}
            live(where, told, drawn.uniform(0.0, longest))
            found[_compared(where, before, told)] += 1
        with DecisionLoop(None, where) as loop:
            replayed = loop.replay()
    if not replayed.same or replayed.missing:
        return Counter({f"replay differs, {name}, lost": count for name, count in found.items()})
    size = f"replay identical ({replayed.decisions:,} decisions, {replayed.policies} policies)"
    return Counter({f"{name}, {size}" if name == WELL else name: count for name, count in found.items()})


def note(told: Told, kind: str, number: int, answer: Any) -> None:
    """Write down what was acknowledged, or raise if something else was before."""
    if told[kind].setdefault(number, answer) != answer:
        raise RuntimeError(f"{kind} {number} was answered {told[kind][number]} and {answer}")


def _live_and_die(where: str, told: Told, seconds: float) -> None:
    first = max(told["decision"], default=0) + ROUND
    command = [sys.executable, __file__, where, str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        if json.loads(process.stdout.readline()) != ["ready"]:
            raise RuntimeError("the victim did not begin")
        threading.Timer(seconds, process.send_signal, [signal.SIGKILL]).start()
        for line in process.stdout:
            if line.endswith("\n"):
                kind, number, *answer = json.loads(line)
                note(told, kind, number, answer)


def _compared(where: str, before: dict[str, Any], told: Told) -> str:
    with DecisionLoop(None, where) as loop:
        columns = (decisions.c.action, decisions.c.probability, decisions.c.version)
        made = {row[0]: list(row[1:]) for row in loop._log.all(select(decisions.c.id, *columns))}
        paid = {row[0]: [row[1]] for row in loop._log.all(select(outcomes.c.id, outcomes.c.reward))}
        for table in (decisions, outcomes):
            count, distinct = loop._log.all(select(func.count(), func.count(func.distinct(table.c.id))))[0]
            if count != distinct:
                return "doubled, lost"
    for kind, there in (("decision", made), ("outcome", paid)):
        if any(there.get(f"person {number}") != answer for number, answer in told[kind].items()):
            return "lost"
    new = len(told["decision"]) - len(before["decision"])
    return WELL if new else f"{WELL}, killed before the first answer"


if __name__ == "__main__":
    victim(sys.argv[1], int(sys.argv[2]))
