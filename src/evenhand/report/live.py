"""The live page of a decision service: what was decided and earned, and why each policy decides."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evenhand.report.render import visible


def live_page(status: dict[str, Any]) -> str:
    """Return the page of a service's status; it loads itself again every few seconds."""
    places = Environment(
        loader=PackageLoader("evenhand.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    templates = files("evenhand.report") / "templates"
    script = (templates / "live.js").read_text(encoding="utf-8")
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return places.get_template("live.html.j2").render(
        status=visible(status),
        style=Markup((templates / "style.css").read_text(encoding="utf-8")),
        script=Markup(script),
        policy="default-src 'none'; style-src 'unsafe-inline'; connect-src 'self'; "
        f"script-src 'sha256-{allowed}'",
    )
