"""A faster way for requests that are clearly valid, and for their answers. It changes nothing else.

Making pydantic models of a thousand people takes longer than deciding about them. All other requests go the
usual way, which accepts them or says what is wrong.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, NamedTuple

from fastapi import Response
from fastapi.responses import JSONResponse

from evenhand.decisions.contexts import LONGEST_ID
from evenhand.decisions.deciding import Row
from evenhand.decisions.errors import ConflictError, LogUnavailableError
from evenhand.decisions.loop import DecisionLoop
from evenhand.decisions.policy import Policy
from evenhand.decisions.serve.meters import Meters
from evenhand.decisions.serve.shapes import MOST_PEOPLE
from evenhand.wording import as_plain

STATUSES: dict[type[Exception], int] = {ConflictError: 409, LogUnavailableError: 503, ValueError: 422}
_NUMBERS = {int, float, type(None)}
_VALUES = {*_NUMBERS, str, bool}
_FIELDS = {"id", "context", "group"}


class Asked(NamedTuple):
    """The people of a request, in columns, and whether they came as a list."""

    ids: Sequence[str]
    contexts: Sequence[Any]
    groups: Sequence[Any]
    several: bool


def plainly(body: bytes) -> Asked | None:
    r"""Return the people of a request that `shapes` would accept unchanged; None if that is not clear.

    >>> plainly(b'{"id": "a", "context": [1, 2.5]}')
    Asked(ids=['a'], contexts=[[1, 2.5]], groups=[None], several=False)
    >>> plainly(b'{"id": "a", "context": ["1"]}') is plainly(b"nonsense") is None
    True
    """
    try:
        text = body.decode()
        if "\\ud" in text or "\\uD" in text:  # half a character, perhaps
            return None
        told = json.loads(text)
        several = told.keys() == {"people"}
        people = told["people"] if several else [told]
        if type(people) is not list or not 1 <= len(people) <= MOST_PEOPLE:
            return None
        ids, contexts = [one["id"] for one in people], [one["context"] for one in people]
        groups = [one.get("group") for one in people]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    plain = (
        all(one.keys() <= _FIELDS for one in people)
        and all(type(id) is str and 1 <= len(id) <= LONGEST_ID for id in ids)
        and _VALUES.issuperset(map(type, groups))
        and all(map(_is_plain, contexts))
    )
    return Asked(ids, contexts, groups, several) if plain else None


def _is_plain(context: Any) -> bool:
    if type(context) is list:
        return _NUMBERS.issuperset(map(type, context))
    return type(context) is dict and _VALUES.issuperset(map(type, context.values()))


class Answers:
    """Writes rows of the log as JSON, the same as `shapes.Answer.of` for the decisions of a policy."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        said = ",".join(f"{_fixed(action)}:%s" for action in policy.actions)
        by_group = ",".join(f"{_fixed(group)}:{{{said}}}" for group in policy.groups)
        # For each group and action: the text with gaps, and the place of the action's probability.
        self._forms = {
            (group, name): (
                f'{{"id":%s,"action":{_fixed(as_plain(action))},"probability":%s,'
                f'"by_group":{{{by_group}}},"group":{_fixed(group)},"version":%s,"at":%s}}',
                row * len(policy.actions) + column,
            )
            for row, group in enumerate(policy.groups)
            for column, (name, action) in enumerate(policy.classes.items())
        }

    def body(self, rows: Sequence[Row], several: bool) -> bytes:
        """Return the answer about one person or several."""
        told, times = [], {at: repr(at) for at in {row.at for row in rows}}
        for row in rows:
            form, own = self._forms[row.group, row.action]
            # Cut up the log's own text of the probabilities: writing numbers anew takes longer.
            said = row.by_group[2:-2].replace("], [", ", ").split(", ")
            told.append(form % (quoted(row.id), said[own], *said, row.version, times[row.at]))
        return (f'{{"decisions":[{",".join(told)}]}}' if several else told[0]).encode()


class Deciding:
    """Answers requests for decisions."""

    def __init__(self, loop: DecisionLoop, meters: Meters) -> None:
        self.loop, self.meters = loop, meters
        self._answers = Answers(loop.policy)

    async def answer(self, asked: Asked) -> Response:
        """Decide, and answer once the decision is on disk."""
        began = time.perf_counter()
        rows = await asyncio.wrap_future(self.loop.submit(asked.ids, asked.contexts, asked.groups))
        self.meters.seconds.observe(time.perf_counter() - began)
        self.meters.count_decisions(rows)
        if self._answers.policy is not self.loop.policy:
            self._answers = Answers(self.loop.policy)
        return Response(self._answers.body(rows, asked.several), media_type="application/json")

    async def shortcut(self, scope: Any, headers: Mapping[bytes, bytes], body: bytes) -> Response | None:
        """Answer a request that is clearly valid; None if it must go the usual way."""
        decides = (scope["method"], scope["path"]) == ("POST", "/decide")
        if not decides or headers.get(b"content-type") != b"application/json":
            return None
        asked = plainly(body)
        try:
            return None if asked is None else await self.answer(asked)
        except tuple(STATUSES) as error:
            return self.problem(error)

    def problem(self, error: Exception) -> JSONResponse:
        """Return the answer to a request that failed with an error."""
        status = next(status for kind, status in STATUSES.items() if isinstance(error, kind))
        self.meters.failures.labels(str(status)).inc()
        return JSONResponse({"detail": str(error)}, status, {"Retry-After": "1"} if status == 503 else None)


def _fixed(value: Any) -> str:
    return json.dumps(value).replace("%", "%%")
