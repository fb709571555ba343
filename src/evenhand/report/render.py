"""The page: one self-contained HTML file made from a summary. It opens offline, and runs no foreign code."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evenhand.atomic import write_text
from evenhand.metrics.measures import SHARES, SHOWN, Measure
from evenhand.report.summary import (
    Metrics,
    ModelEntry,
    Persons,
    PublishedEntry,
    Study,
    Summary,
    check_summary,
)
from evenhand.wording import measured

MOST_DATA = 900_000  # bytes of data in a page; Plotly takes five times as many
# Characters that are invisible or change the writing direction can disguise a text: show their numbers.
_INVISIBLE = re.compile("[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\x00-\x08\x0b-\x1f\x7f-\x9f]")


def render(summary: Summary) -> str:
    """Return the page of a summary as one string."""
    safe = small_enough(visible(check_summary(summary)))
    scripts = [_plotly_js(), "".join(map(source, ("scroll.js", "twins.js", "app.js")))]
    return fill(
        "page.html.j2",
        summary=safe,
        shown=SHOWN,
        digits=_digits(safe),
        data=Markup(embedded(_for_script(safe))),
        scripts=[Markup(script) for script in scripts],
        policy=_policy(scripts),
    )


def write_html(summary: Summary, path: str | Path) -> Path:
    """Write the page of a summary; return its path."""
    return write_text(path, render(summary))


def visible(value: Any) -> Any:
    """Return the data with characters that are invisible or change the writing direction written out.

    >>> visible({"name": "abc\u202edef"})
    {'name': 'abc⟨U+202E⟩def'}
    """
    if isinstance(value, str):
        return _INVISIBLE.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", value)
    if isinstance(value, dict):
        return {visible(key): visible(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [visible(item) for item in value]
    return value


def small_enough(summary: Summary, most: int = MOST_DATA) -> Summary:
    """Return the summary, with fewer people listed if the page would be too large to send."""
    while len(embedded(_for_script(summary))) > most:
        studies = list(summary["studies"])
        listed = [len(study["persons"]["rows"]) if study["persons"] else 0 for study in studies]
        at = listed.index(max(listed, default=0)) if any(listed) else None
        people = None if at is None else studies[at]["persons"]
        if at is None or people is None:
            break
        fewer: Persons = {**people, "rows": people["rows"][: listed[at] // 2]}
        studies[at] = {**studies[at], "persons": fewer}
        summary = {**summary, "studies": studies}
    return summary


def embedded(value: Any) -> str:
    r"""Return JSON that is safe inside a script element: nothing in it can close the element.

    >>> embedded({"a": "</script>"})
    '{"a":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def in_numbers(measure: Measure | None, name: str = "", digits: int = 3) -> str:
    """Return a measure as the page shows it: shares in percent, others with `digits` decimals.

    >>> in_numbers({"value": 0.0123, "low": 0.01, "high": 0.02}, "flip_rate")
    '1.2 %'
    """
    value = measure["value"] if measure else None
    if value is None:
        return "–"
    return f"{100 * value:.1f} %" if name in SHARES else measured(value, name, digits)


def interval(measure: Measure | None, name: str = "", digits: int = 3) -> str:
    """Return a measure's interval; '' if there is none.

    >>> interval({"value": -0.42, "low": -0.455, "high": -0.384})
    '-0.455 to -0.384'
    """
    low, high = (measure.get("low"), measure.get("high")) if measure else (None, None)
    if low is None or high is None:
        return ""
    if name in SHARES:
        return f"{100 * low:.1f} to {100 * high:.1f}"
    return f"{measured(low, name, digits)} to {measured(high, name, digits)}"


def with_intervals(models: list[ModelEntry]) -> str:
    """Return the words for a caption that say which models have intervals.

    >>> measured = {"value": 0.8, "low": 0.7, "high": 0.9}
    >>> with_intervals([{"metrics": {"accuracy": measured}}, {"metrics": {"accuracy": {"value": 0.8}}}])
    ', some with 95 % intervals'
    """
    known = [any(interval(measure) for measure in model["metrics"].values()) for model in models]
    return f", {'' if all(known) else 'some '}with 95 % intervals" if any(known) else ""


def breakable(name: str) -> Markup:
    """Return a name that may break between its words: after a sign such as '-', or before a capital.

    >>> breakable("AfricanAmerican")
    Markup('African<wbr>American')
    """
    return Markup("<wbr>").join(re.split(r"(?<=[a-z])(?=[A-Z])|(?<=[-_/,=.])(?=\w)", name))


def published_names(study: Study) -> list[str]:
    """Return the measures that a paper reports for any of its methods, in their order on the page."""
    return [name for name in SHOWN if any(name in entry["metrics"] for entry in study["published"])]


class PublishedRow(PublishedEntry):
    """A published entry with the measures of this run."""

    ours: Metrics


def published_table(study: Study) -> list[PublishedRow]:
    """Return the rows that compare this run with a paper: every published method under every criterion."""
    ours = {(model["method"], model["criterion"]): model["metrics"] for model in reversed(study["models"])}
    return [
        {**entry, "method": name, "ours": ours.get((name, entry["criterion"]), {})}
        for entry in study["published"]
        for name in (entry["method"], *entry.get("beside", ()))
        if name == entry["method"] or (name, entry["criterion"]) in ours
    ]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("evenhand.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "numbers": in_numbers,
        "interval": interval,
        "with_intervals": with_intervals,
        "breakable": breakable,
        "published_names": published_names,
        "published_table": published_table,
    }
    return environment


def _for_script(summary: Summary) -> dict[str, Any]:
    names = (
        "pos_label", "models", "points", "published", "groups", "convergence", "persons", "twins", "upwards"
    )  # fmt: skip
    studies = [{name: study.get(name) for name in names} for study in summary["studies"]]
    return {
        "studies": studies,
        "shown": {name: text[0] for name, text in SHOWN.items()},
        "shares": SHARES,
        "digits": _digits(summary),
    }


def _digits(summary: Summary) -> int:
    # A comparison over many splits can show smaller differences than one split.
    return 4 if summary["kind"] == "compare" else 3


def hash_of(script: str) -> str:
    """Return a script as a Content-Security-Policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _policy(scripts: list[str]) -> str:
    """Return a Content-Security-Policy that allows only these scripts, and nothing from any network."""
    hashes = " ".join(map(hash_of, scripts))
    # Plotly writes its own style element, so styles can't be pinned by hash.
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def fill(template: str, **values: Any) -> str:
    """Return a page made from a template, with the style of all pages."""
    return _environment().get_template(template).render(style=Markup(source("style.css")), **values)


def source(name: str) -> str:
    """Return the text of a file beside the templates."""
    environment = _environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


@cache
def _plotly_js() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())
