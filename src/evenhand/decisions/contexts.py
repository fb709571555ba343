"""Check ids, and write contexts as JSON in one way only."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np

from evenhand.arrays import Floats

LONGEST_ID = 200
LARGEST = 1 << 16  # bytes of a context as JSON
_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_PLAIN, _TEXTS = {int, bool, type(None)}, {str, type(None)}
_EXACT = 1 << 53  # whole numbers below this are the same as floats


def shown(value: Any) -> str:
    """Return a value for an error message, shortened: it may be a megabyte."""
    text = repr(value)
    return text if len(text) < 60 else f"{text[:50]}…"


def check_id(id: Any) -> str:
    """Return an id if every database can store it and a person can read it; raise otherwise."""
    if not isinstance(id, str) or not 1 <= len(id) <= LONGEST_ID or not id.isprintable():
        raise ValueError(
            f"Got id={shown(id)}, but expected a text of 1 to {LONGEST_ID} printable characters."
        )
    return id


def check_ids(ids: Sequence[Any]) -> Sequence[str]:
    """Check ids as `check_id` does, but faster."""
    plain = {*map(type, ids)} == {str} and "".join(ids).isprintable()
    return ids if plain and max(map(len, ids)) <= LONGEST_ID and all(ids) else [*map(check_id, ids)]


def as_text(context: Any) -> str:
    """Return a context as JSON; equal contexts give the same text.

    >>> as_text({"b": np.float64("nan"), "a": 1.0})
    '{"a":1,"b":null}'
    """
    return _kept(_JSON.encode(plain(context)))


def _kept(text: str) -> str:
    if len(text) > LARGEST:
        raise ValueError(f"Got a context of {len(text):,} bytes, but expected at most {LARGEST:,}.")
    return text


def as_texts(contexts: Sequence[Any]) -> list[str]:
    """Return `as_text` of each of some plain contexts.

    >>> as_texts([[0.5, 1], [None, 2]])
    ['[0.5,1]', '[null,2]']
    """
    text = _JSON.encode(contexts)  # several times faster than one by one
    end = text[-2]
    inner = text[2:-2].split(f"{end},{text[1]}")
    if len(inner) > len(contexts):  # a text contains the separator
        return [as_text(context) for context in contexts]
    texts = [f"{text[1]}{one}{end}" for one in inner]
    _kept(max(texts, key=len))
    return texts


def parsed(texts: Sequence[str]) -> list[Any]:
    """Return the contexts that `as_text` wrote."""
    return json.loads(f"[{','.join(texts)}]")  # type: ignore[no-any-return]


def plain_rows(numbers: Floats) -> list[list[float | int | None]] | None:
    """Return `plain` of each row of a table of numbers; None if a number is infinite.

    >>> plain_rows(np.array([[0.5, -0.0], [np.nan, 2.0]]))
    [[0.5, 0], [None, 2]]
    """
    if np.isinf(numbers).any():
        return None
    whole, gaps = (numbers == np.trunc(numbers)) & (np.abs(numbers) < _EXACT), np.isnan(numbers)
    if not (whole.any() or gaps.any()):
        return numbers.tolist()  # type: ignore[no-any-return]
    rows = numbers.astype(object)
    rows[whole], rows[gaps] = numbers[whole].astype(np.int64), None
    return rows.tolist()  # type: ignore[no-any-return]


def plain(value: Any, where: str = "context") -> Any:
    """Return a value as plain JSON: a missing value becomes None, a date its ISO text, and 2.0 becomes 2."""
    kind = type(value)  # faster than isinstance for the usual types
    if kind is str:
        _check_unicode(value, where)
        return value
    if kind is float:
        return _number(value, where)
    if value is None or kind is int or kind is bool:
        return value
    if isinstance(value, Mapping):
        return {str(name): plain(inner, str(name)) for name, inner in value.items()}
    if isinstance(value, np.ndarray) or (isinstance(value, Sequence) and not isinstance(value, (str, bytes))):
        return [plain(inner, where) for inner in value]
    if isinstance(value, np.generic):
        return plain(value.item(), where)
    for exact in (str, float, int):  # the value may be of a subclass
        if isinstance(value, exact):
            return plain(exact(value), where)
    if str(value) in ("NaT", "<NA>"):  # of pandas; the first is also a date
        return None
    if isinstance(value, date):
        return value.isoformat()
    raise ValueError(
        f"Got a {type(value).__name__} in {where!r}, but expected text, a number, a date or nothing."
    )


def plain_column(values: list[Any], name: str) -> list[Any]:
    """Return `plain` of every value of a column.

    >>> plain_column([1.0, None, "é"], "age")
    [1, None, 'é']
    """
    kinds = {*map(type, values)}
    if kinds <= _PLAIN or (kinds <= _TEXTS and "".join(filter(None, values)).isascii()):
        return values
    return [plain(value, name) for value in values]


def _number(value: float, where: str) -> float | None:
    if value.is_integer():
        return int(value) if abs(value) < _EXACT else value
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return None
    raise ValueError(f"Got {value} in {where!r}, but expected a finite number.")


def _check_unicode(text: str, where: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"Got text in {where!r} that is not valid Unicode (half a character).") from None
