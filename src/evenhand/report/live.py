"""The live page of a decision service: what was decided and earned, and why each policy decides."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from evenhand.report.render import fill, hash_of, source, visible

_SUMMED = ("decisions", "explored", "floors")


def live_page(status: dict[str, Any], simulated: str = "") -> str:
    """Return the page of a service's status; it updates itself every few seconds.

    `simulated` says of a demonstration what is simulated, such as 'loans, with German credit'.
    """
    script = source("scroll.js") + source("live.js")
    return fill(
        "live.html.j2",
        status=visible(status),
        groups=visible(_by_group(status)),
        simulated=visible(simulated),
        when=_when,
        script=Markup(script),
        policy="default-src 'none'; style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; "
        f"form-action 'none'; script-src {hash_of(script)}",
    )


def sign_in_page(said: str) -> str:
    """Return the page that asks for the administering token, with a sentence above the form."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'"
    return fill("sign_in.html.j2", said=said, policy=policy)


def _by_group(status: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each group's counts over all policies."""
    found: dict[str, dict[str, Any]] = {}
    for cell in status["cells"]:
        row = found.setdefault(cell["group"], {"group": cell["group"], **dict.fromkeys(_SUMMED, 0)})
        for name in _SUMMED:
            row[name] += cell[name]
    return list(found.values())


def _when(at: float) -> str:
    """Return a time as people write it; an impossible time is returned as a number.

    >>> _when(0.0), _when(1e300)
    ('1970-01-01 00:00:00 UTC', '1e+300')
    """
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, OSError, ValueError):
        return f"{at:g}"
