"""Our docstrings as Markdown, for the API page: a plugin of griffe, which mkdocstrings reads sources with.

They are numpydoc-like, but say `name : what it is` on one line, where numpydoc has a type. So sections become
bold words, parameters a list, and doctests code blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import griffe

LISTED = ("Parameters", "Attributes", "Returns")


class Docstrings(griffe.Extension):
    """Rewrites every docstring once it is read."""

    def on_object(self, *, obj: griffe.Object, loader: Any, **kwargs: Any) -> None:
        """Rewrite one object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)


def to_markdown(docstring: str) -> str:
    """Return the docstring as Markdown."""
    return "\n".join(_lines(docstring.splitlines()))


def _lines(lines: list[str]) -> Iterator[str]:
    listing = code = False
    names = ""  # of an item that goes on in the next line
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if code and line.strip():
            yield line
        elif code:
            code = False
            yield from ("```", "")
        elif line.lstrip().startswith(">>>"):
            code = True
            yield from ("```pycon", line)
        elif re.fullmatch(r"-{3,}", after):
            listing = line in LISTED
            yield f"**{line}**"
        elif re.fullmatch(r"-{3,}", line):
            yield ""
        elif listing and line and not line.startswith(" "):
            name, colon, text = (names + line).partition(" : ")
            names = f"{name} " if not colon and line.endswith(",") else ""
            if not names:
                item = bool(colon) or after.startswith(" ")
                yield f"- `{name}`{':' if text else ''} {_plain(text)}".rstrip() if item else _plain(line)
        else:
            yield f"    {_plain(line.strip())}" if listing and line else _plain(line)
    if code:
        yield "```"


def _plain(text: str) -> str:
    """Return a text in which brackets are brackets and no links, except in code."""
    parts = text.split("`")
    parts[::2] = [part.replace("[", r"\[") for part in parts[::2]]
    return "`".join(parts)
