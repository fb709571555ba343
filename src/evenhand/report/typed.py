"""Check plain data from a file against the types that it should have, at every level."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from evenhand.wording import listed


def check_typed(value: Any, kind: Any, where: str) -> None:
    """Raise unless a value read from JSON is of a type made of TypedDicts, lists, dicts and plain values.

    >>> check_typed({"a": [1, "x"]}, dict[str, list[int]], "the file")
    Traceback (most recent call last):
    ...
    ValueError: the file, 'a', 2 is 'x', but expected int.
    """
    outer, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return
    if outer in (Union, UnionType):
        plain = [one for one in inner if one is not NoneType]
        if value is None and NoneType in inner:
            return
        if len(plain) > 1:
            if not any(_is_plain(value, one) for one in plain):
                raise ValueError(f"{where} is {value!r:.80}, but expected {kind}.")
        else:
            check_typed(value, plain[0], where)
    elif is_typeddict(kind):
        _check_keys(value, kind, where)
    elif outer is list and isinstance(value, list):
        for number, item in enumerate(value):
            check_typed(item, inner[0], f"{where}, {number + 1}")
    elif outer is dict and isinstance(value, dict):
        for key, item in value.items():
            check_typed(item, inner[1], f"{where}, {key!r:.40}")
    elif outer is not None or not _is_plain(value, kind):
        expected = outer or kind
        raise ValueError(f"{where} is {value!r:.80}, but expected {expected.__name__}.")


def _check_keys(value: Any, kind: Any, where: str) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"{where} is {value!r:.80}, but expected {kind.__name__}.")
    for name, hint in get_type_hints(kind, include_extras=True).items():
        may_lack = get_origin(hint) is NotRequired
        if name in value:
            check_typed(value[name], get_args(hint)[0] if may_lack else hint, f"{where}, {name!r}")
        elif not may_lack:
            raise ValueError(f"{where} has no {name!r}; expected {listed(list(kind.__annotations__))}.")


def _is_plain(value: Any, kind: type) -> bool:
    """Return whether a value is of a plain type; an int is valid for a float, but True for neither."""
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)
