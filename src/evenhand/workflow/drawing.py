"""The trade-off as a picture: a Plotly figure, and a small table with a drawing for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from evenhand.metrics.measures import SHOWN, value_of
from evenhand.workflow.candidates import Candidate
from evenhand.workflow.references import FAMILY, Reference

if TYPE_CHECKING:
    import plotly.graph_objects as go

COLUMNS = ("accuracy", "discrimination", "flip_rate", "positive_rate")
_COLOURS = ("#3a5ba0", "#c1571b", "#7b93c4", "#e0a077", "#4f8f7b", "#a4c2b5", "#666")
_BOLD = " style='font-weight:bold'"
_WIDTH, _HEIGHT, _EDGE = 420, 240, 44


def columns(rare: bool) -> list[str]:
    """Return the measures of the table; if a label is rare, balanced accuracy is one of them."""
    return [COLUMNS[0], *(["balanced_accuracy"] if rare else []), *COLUMNS[1:]]


def upwards(rare: bool) -> str:
    """Return the measure to draw upwards: if a label is rare, a constant decision is accurate."""
    return "balanced_accuracy" if rare else "accuracy"


def figure(trained: Sequence[Candidate | Reference], up: str = "accuracy") -> go.Figure:
    """Return `up` against discrimination on the validation part, one line per family."""
    import plotly.graph_objects as go

    told = f"%{{text}}<br>discrimination %{{x:.3f}}<br>{SHOWN[up][0]} %{{y:.3f}}<extra></extra>"
    drawn = go.Figure(
        layout={
            "title": "What fairness costs (validation part)",
            "xaxis": {"title": "discrimination", "rangemode": "tozero"},
            "yaxis": {"title": SHOWN[up][0]},
            "template": "plotly_white",
        }
    )
    for family, colour in _coloured(trained).items():
        members = [one for one in trained if one.family == family]
        drawn.add_scatter(
            x=[value_of(one.validation, "discrimination") for one in members],
            y=[value_of(one.validation, up) for one in members],
            text=[f"{one.name}<br>flip rate {value_of(one.validation, 'flip_rate'):.3f}" for one in members],
            hovertemplate=told,
            mode="markers" if family == FAMILY else "lines+markers",
            name=family,
            line={"color": colour},
        )
    return drawn


def _coloured(trained: Sequence[Candidate | Reference]) -> dict[str, str]:
    return dict(zip(dict.fromkeys(one.family for one in trained), _COLOURS, strict=False))


def html(trained: Sequence[Candidate | Reference], about: str, best: Candidate, *, rare: bool = False) -> str:
    """Return the trade-off for a notebook: the text `about`, a drawing and a table, without scripts."""
    names = [name for name in columns(rare) if name in best.validation]
    head = "".join(f"<th>{SHOWN[name][0]}</th>" for name in names)
    rows = "".join(
        f"<tr{_BOLD if one is best else ''}><td style='text-align:left'>{one.name}</td>"
        + "".join(f"<td>{value_of(one.validation, name):.3f}</td>" for name in names)
        + "</tr>"
        for one in trained
    )
    plain = "".join(sign if sign.isprintable() else "�" for sign in about)
    return (
        f"<div><p>{escape(plain)}</p><p>What fairness costs (validation part); in bold, the model that is "
        f"chosen without bounds.</p>{_drawing(trained, best, upwards(rare))}"
        f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _drawing(trained: Sequence[Candidate | Reference], best: Candidate, measure: str) -> str:
    colours = _coloured(trained)
    x = [value_of(one.validation, "discrimination") for one in trained]
    y, name = [value_of(one.validation, measure) for one in trained], SHOWN[measure][0]
    right, low, high = max(*x, 0.01), min(y), max(y)
    span = max(high - low, 0.01)
    dots = "".join(
        f'<circle cx="{_EDGE + (_WIDTH - 2 * _EDGE) * at / right:.1f}" '
        f'cy="{_EDGE + (_HEIGHT - 2 * _EDGE) * (high - up) / span:.1f}" r="{7 if one is best else 4}" '
        f'fill="{colours[one.family]}"><title>{one.name}: {name} {up:.3f}, discrimination {at:.3f}</title>'
        "</circle>"
        for one, at, up in zip(trained, x, y, strict=True)
    )
    axes = f"M{_EDGE - 12} {_EDGE - 12}V{_HEIGHT - _EDGE + 12}H{_WIDTH - _EDGE + 12}"
    legend = "".join(
        f'<text x="{_EDGE + 150 * place}" y="16" fill="{colour}">● {family}</text>'
        for place, (family, colour) in enumerate(colours.items())
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" font-size="11" '
        f'role="img" aria-label="{name} against discrimination">{legend}'
        f'<path d="{axes}" fill="none" stroke="#888"/><g fill="#888" text-anchor="middle">'
        f'<text x="{_WIDTH // 2}" y="{_HEIGHT - 6}">discrimination, 0 to {right:.3f}</text>'
        f'<text transform="translate(14 {_HEIGHT // 2}) rotate(-90)">{name}, {low:.3f} to {high:.3f}</text>'
        f"</g>{dots}</svg>"
    )
