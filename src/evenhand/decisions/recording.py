"""The log as a record of events: what was decided when, by which version, on what input.

Article 12 of the EU's AI Act requires automatic logs of high-risk systems. The record has a hash of each
input. A reader who has one person's input can check that the decision was about it, and sees no other input.
"""

from __future__ import annotations

import hashlib
import heapq
import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import select

from evenhand.atomic import replacing, write_text
from evenhand.decisions.log import Log
from evenhand.decisions.schema import (
    ABOUT,
    contradictions,
    decisions,
    erasures,
    outcomes,
    policies,
    promotions,
)
from evenhand.version import __version__

PRESET = "eu-ai-act-12"
NOT_RECORDED = [
    "Who checked a decision, or overruled it (Articles 12(3)(d), 14(5) and 26(2)): the log has only the "
    "people decided about. The note of a change of policy is the only place for another name.",
    "The end of each use: a decision has one time, by the clock of the machine that made it.",
    "Requests that were refused or failed, and how the service was running.",
    "The inputs themselves. A hash of an input that has few possible values can be found by trying them: "
    "treat the record as personal data.",
    "Proof that nothing was changed: keep the hash of events.jsonl elsewhere.",
    "Articles 19 and 26(6) ask that logs be kept for at least six months; keeping them is up to you.",
]


def record(log: Log, folder: Path, now: float) -> list[Path]:
    """Write the events in order of time, and a summary; return the two files."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds: Counter[str] = Counter()
    used: dict[int, list[float]] = {}  # by version: when it first and last decided, and how often
    digest = hashlib.sha256()
    with replacing(folder / "events.jsonl") as partial, partial.open("wb") as file:
        for at, event in events(log):
            kinds[event["event"]] += 1
            if event["event"] == "decision":
                first = used.setdefault(event["version"], [at, at, 0])
                used[event["version"]] = [first[0], max(first[1], at), first[2] + 1]
            line = json.dumps({"at": instant(at), **event}, ensure_ascii=False).encode() + b"\n"
            digest.update(line)
            file.write(line)
    told = {
        "schema": "evenhand-record-1",
        "preset": PRESET,
        "made": instant(now),
        "evenhand": __version__,
        "events": dict(kinds),
        "versions": _versions(log, used),
        "files": {"events.jsonl": {"sha256": digest.hexdigest()}},
        "input_sha256": 'SHA-256 of {"context":…,"group":…} as JSON with sorted names and no blanks.',
        "not_recorded": NOT_RECORDED,
    }
    summary = write_text(folder / "record.json", json.dumps(told, ensure_ascii=False, indent=1))
    return [folder / "events.jsonl", summary]


def events(log: Log) -> Iterator[tuple[float, dict[str, Any]]]:
    """Return each event with its time, the earliest first."""
    names = ("number", "id", "action", "probability", "version", "fingerprint", "held_out")

    def decided(row: Any) -> dict[str, Any]:
        told = {name: getattr(row, name) for name in names}
        return told | {"input_sha256": input_hash(row.context, row.group)}

    def plain(row: Any) -> dict[str, Any]:
        kept = {name: value for name, value in row._asdict().items() if name not in ("at", "received")}
        return kept | ({"evidence": json.loads(row.evidence)} if "evidence" in kept else {})

    made = select(decisions, policies.c.fingerprint).join(policies, policies.c.version == decisions.c.version)
    kinds = [
        ("decision", made.order_by(decisions.c.at, decisions.c.number), "at", decided),
        ("outcome", select(outcomes).order_by(outcomes.c.received), "received", plain),
        (
            "contradicting outcome",
            select(contradictions).order_by(contradictions.c.received),
            "received",
            plain,
        ),
        ("policy learned", select(*ABOUT).order_by(policies.c.at), "at", plain),
        ("policy put in force", select(promotions).order_by(promotions.c.at), "at", plain),
        ("erasure", select(erasures).order_by(erasures.c.at), "at", plain),
    ]

    def stream(name: str, query: Any, when: str, told: Any) -> Iterator[tuple[float, dict[str, Any]]]:
        for piece in log.pieces(query):
            yield from ((getattr(row, when), {"event": name, **told(row)}) for row in piece)

    return heapq.merge(*(stream(*kind) for kind in kinds), key=lambda both: both[0])


def input_hash(context: str, group: str) -> str:
    """Return the hash of a person's input; the context is JSON with sorted names and no spaces.

    >>> input_hash('{"age":31}', "f")[:12]
    '57eaa4d31a8d'
    """
    text = f'{{"context":{context},"group":{json.dumps(group)}}}'
    return hashlib.sha256(text.encode()).hexdigest()


def instant(at: float) -> str:
    """Return seconds since 1970 as a date and time in UTC.

    >>> instant(0.25)
    '1970-01-01T00:00:00.250000+00:00'
    """
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds")


def _versions(log: Log, used: dict[int, list[float]]) -> list[dict[str, Any]]:
    rows = log.all(select(policies.c.version, policies.c.parent, policies.c.fingerprint).order_by("version"))
    unused = (None, None, 0)
    return [
        {
            "version": row.version,
            "parent": row.parent,
            "fingerprint": row.fingerprint,
            "first_decision": None if first is None else instant(first),
            "last_decision": None if last is None else instant(last),
            "decisions": count,
        }
        for row in rows
        for first, last, count in [used.get(row.version, unused)]
    ]
