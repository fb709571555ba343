"""What is wrong with a request, in words that don't need pydantic's names."""

from __future__ import annotations

from typing import Any

from fastapi.exceptions import RequestValidationError

_MOST = 20  # how many problems are told
_MANY = {"People": "people", "Outcomes": "outcomes"}  # the field that only a request about several has
_ONE = ("Person", "Outcome")
_EXPECTED = {
    "string_type": "text", "int_type": "a number", "float_type": "a number", "bool_type": "true or false",
    "none_required": "null", "list_type": "a list", "dict_type": "an object", "model_type": "an object",
    "model_attributes_type": "an object",
}  # fmt: skip
_KINDS = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list"}


def problems(error: RequestValidationError) -> list[dict[str, str]]:
    """Return what is wrong with a request and where, without repeating its values."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    for one in error.errors():
        if _is_meant(one["loc"], error.body):
            found.setdefault(_where(one, error.body), []).append(one)
    # A list of the wrong values is also no object, but only the values are worth telling.
    above = {at[:depth] for at in found for depth in range(len(at))}
    inner = [at for at in found if at not in above]
    return [
        {"where": ".".join(map(str, at))[:200] or "body", "what": _what(at, found[at])[:300]}
        for at in inner[:_MOST]
    ]


def _is_meant(loc: tuple[Any, ...], body: Any) -> bool:
    """Return whether an error is about the kind of request that was sent: about one person, or several."""
    tag = loc[1] if len(loc) > 1 else None
    if tag not in (*_ONE, *_MANY):
        return True
    several = isinstance(body, dict) and any(name in body for name in _MANY.values())
    return (tag in _MANY) == several


def _where(one: Any, body: Any) -> tuple[Any, ...]:
    """Return the fields that lead to an error, without the names of types that pydantic puts between."""
    start, *rest = one["loc"]
    if start != "body":
        return (*rest,)
    at: list[Any] = []
    for step in rest:
        inside = isinstance(body, dict) and step in body
        if inside or (isinstance(body, list) and isinstance(step, int) and step < len(body)):
            at.append(step)
            body = body[step]
    return (*at, rest[-1]) if rest and one["type"] == "missing" else (*at,)


def _what(at: tuple[Any, ...], errors: list[Any]) -> str:
    first = errors[0]
    if first["type"] == "missing":
        return f"Got no {str(at[-1])[:100]!r}, but expected one." if at else "Got no body, but expected JSON."
    if first["type"] == "extra_forbidden":
        return f"Got {str(at[-1])[:100]!r}, which is not a field here."
    expected = dict.fromkeys(_EXPECTED[one["type"]] for one in errors if one["type"] in _EXPECTED)
    if not expected:
        return f"{first['msg'].rstrip('.')}."
    given = first["input"]
    kind = "null" if given is None else _KINDS.get(type(given), "an object")
    *others, last = expected
    return f"Got {kind}, but expected {', '.join(others)}{' or ' * bool(others)}{last}."
