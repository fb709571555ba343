"""Check the lines of a CSV file as bytes, many at once: most files have no errors.

`check_lines` reads every field in Python to say which line is wrong, and takes several times as long as the
parser that makes the table. It is called only if something unusual is found here.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenhand.arrays import Codes
from evenhand.tables.csv_format import CODE, GUARDED, Header

_PIECE = 1 << 22  # bytes checked together
_LONGEST_FIELD = 100_000  # bytes; a longer field is unusual
_MOST_BLANKS = 8  # before a field
_NEWLINE, _RETURN, _QUOTE, _APOSTROPHE, _ZERO, _NINE, _BLANK, _TAB = b"\n\r\"'09 \t"
_SINGLE_BYTES = ("utf-8-sig", "ascii", "cp1252", "iso8859-1", "iso8859-15")
_Bytes = npt.NDArray[np.uint8]


def plain_lines(content: bytes, header: Header, encoding: str) -> tuple[list[str], list[str]] | None:
    r"""Return what `check_lines` does if every line clearly has as many fields as the header; else None.

    `encoding` is Python's name for it. For encodings such as UTF-16, in which separators take several bytes,
    None is returned.

    >>> plain_lines(b"a,b\n1,007\n", Header(",", ["a", "b"], 1), "utf-8-sig")
    (['b'], [])
    >>> plain_lines(b"a,b\n1,2,3\n", Header(",", ["a", "b"], 1), "utf-8-sig") is None
    True
    """
    whole_ends = b"\r" not in content or content.count(b"\r") == content.count(b"\r\n")
    if encoding not in _SINGLE_BYTES or header.lines != 1 or b"\0" in content or not whole_ends:
        return None
    coded, guarded = set[str](), set[str]()
    signs, n = np.frombuffer(content, dtype=np.uint8), len(header.names)
    begin = content.find(b"\n") + 1 or len(content)
    while begin < len(content):
        piece = signs[begin : begin + _PIECE]
        ends = _ends(piece, ord(header.separator), begin + _PIECE >= len(content))
        fields = None if ends is None else _fields(piece, ends, n)
        if ends is None or fields is None:
            return None
        for names, matches, at in zip(
            (coded, guarded), (CODE.fullmatch, GUARDED.match), _perhaps(piece, fields[0]), strict=True
        ):
            for column in np.unique(at % n):
                texts = (_text(piece, fields, place, encoding) for place in at[at % n == column])
                if header.names[column] not in names and any(map(matches, texts)):
                    names.add(header.names[column])
        begin += int(ends[-1]) + 1
    return sorted(coded), sorted(guarded)


def _ends(piece: _Bytes, separator: int, last: bool) -> Codes | None:
    """Return where fields end, up to the last complete line; None if quotes or the length are unusual."""
    ending = (piece == separator) | (piece == _NEWLINE)
    quotes = np.flatnonzero(piece == _QUOTE)
    if len(quotes):
        ending &= np.cumsum(piece == _QUOTE, dtype=np.uint8) & 1 == 0
    ends = np.flatnonzero(ending)
    lines = np.flatnonzero(piece[ends] == _NEWLINE)
    if not last:
        ends = ends[: lines[-1] + 1 if len(lines) else 0]
    elif not len(lines) or ends[lines[-1]] < len(piece) - 1:  # the last line has no line end
        ends = np.append(ends, len(piece))
    if not len(ends):
        return None
    quotes = quotes[quotes < ends[-1]]
    opening, closing = quotes[::2], quotes[1::2]
    before = piece[opening[opening > 0] - 1]
    after = piece[closing[closing < len(piece) - 1] + 1]
    known = np.zeros(256, dtype=bool)
    known[[separator, _NEWLINE, _QUOTE]] = True
    fine = len(opening) == len(closing) and known[before].all()
    known[_RETURN] = True
    return ends if fine and known[after].all() else None


def _fields(piece: _Bytes, ends: Codes, n: int) -> tuple[Codes, Codes] | None:
    """Return where fields begin and end, line by line; None if a line has too few or too many of them.

    Empty lines are skipped, as in the parser.
    """
    starts = np.concatenate([[0], ends[:-1] + 1])
    closes = np.ones(len(ends), dtype=bool)
    inner = ends < len(piece)
    closes[inner] = piece[ends[inner]] == _NEWLINE
    opens = np.concatenate([[True], closes[:-1]])
    first = np.minimum(starts, len(piece) - 1)
    empty = opens & closes & ((starts == ends) | ((ends - starts == 1) & (piece[first] == _RETURN)))
    starts, ends, closes = starts[~empty], ends[~empty], closes[~empty]
    if len(ends) % n or (len(ends) and int((ends - starts).max()) > _LONGEST_FIELD):
        return None
    whole = closes.reshape(-1, n)
    return (starts, ends) if whole[:, -1].all() and not whole[:, :-1].any() else None


def _perhaps(piece: _Bytes, starts: Codes) -> tuple[Codes, Codes]:
    """Return the fields that may begin with a zero and a digit, and those that begin with an apostrophe."""
    padded = np.concatenate([piece, np.full(_MOST_BLANKS + 3, _NEWLINE, dtype=np.uint8)])
    at = starts + (padded[starts] == _QUOTE)
    guarded = np.flatnonzero(padded[at] == _APOSTROPHE)
    blank = np.flatnonzero((padded[at] == _BLANK) | (padded[at] == _TAB))
    lines = np.flatnonzero((at > starts) & (padded[at] <= _RETURN))  # a quoted field may begin with line ends
    for _ in range(_MOST_BLANKS):
        at[blank] += 1
        blank = blank[(padded[at[blank]] == _BLANK) | (padded[at[blank]] == _TAB)]
    digit = (padded[at + 1] >= _ZERO) & (padded[at + 1] <= _NINE)
    zero = (padded[at] == _ZERO) & digit
    zero[blank] = zero[lines] = True  # the pattern will decide about these
    return np.flatnonzero(zero), guarded


def _text(piece: _Bytes, fields: tuple[Codes, Codes], at: int, encoding: str) -> str:
    text = bytes(piece[fields[0][at] : fields[1][at]]).decode(encoding, "replace").rstrip("\r")
    return text[1:-1].replace('""', '"') if text.startswith('"') else text
