"""Static figures for papers: accuracy against discrimination, one file per study (Matplotlib, optional)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from evenhand.checks import one_of
from evenhand.report.summary import Metrics, Study, Summary

FORMATS = ("svg", "pdf", "png")
# Okabe and Ito's colours, as on the page.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c8c8c")
SHAPES = ("o", "s", "D", "^", "P", "*", "X", "v", "p", "h")


def write_figures(summary: Summary, folder: Path, kind: str) -> list[Path]:
    """Write each study's figure; return their paths."""
    one_of("--figures", kind, FORMATS)
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Static figures need Matplotlib: pip install 'evenhand[figures]'.") from error
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    # Text stays text in SVG and PDF; a fixed salt and no date make the same figure the same file.
    settings: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "evenhand", "pdf.fonttype": 42}
    settings |= {"font.size": 9, "text.parse_math": False}
    settings |= {"axes.spines.top": False, "axes.spines.right": False}
    dates: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    with matplotlib.rc_context(settings):
        for number, study in enumerate(summary["studies"], start=1):
            if not study["models"]:
                continue
            figure = Figure(figsize=(5.2, 3.6), layout="constrained")
            _draw(figure.subplots(), study)
            path = folder / f"{number:02d}-{_file_name(study['name'])}.{kind}"
            figure.savefig(path, dpi=200, metadata=dates[kind])
            written.append(path)
    return written


def _draw(axes: Any, study: Study) -> None:
    upwards = study.get("upwards", "accuracy")
    families = list(dict.fromkeys(model["family"] for model in study["models"]))
    for number, family in enumerate(families):
        points = [model["metrics"] for model in study["models"] if model["family"] == family]
        points = [point for point in points if _known(point, upwards)]
        xs, ys = ([point[name]["value"] for point in points] for name in ("discrimination", upwards))
        axes.errorbar(
            xs, ys, xerr=_bars(points, "discrimination"), yerr=_bars(points, upwards),
            fmt=SHAPES[number % len(SHAPES)], color=COLOURS[number % len(COLOURS)], label=family,
            markersize=5, elinewidth=0.6, ecolor=COLOURS[number % len(COLOURS)] + "59", linestyle="none",
        )  # fmt: skip
    on_front = [model["metrics"] for model in study["models"] if model["front"]]
    front = sorted(
        (point["discrimination"]["value"] or 0.0, point[upwards]["value"] or 0.0) for point in on_front
    )
    dotted = {"color": "#5a6274", "linestyle": ":", "drawstyle": "steps-post", "label": "Pareto front"}
    axes.plot(*zip(*front, strict=True), **dotted)
    published = [entry["metrics"] for entry in study["published"] if _known(entry["metrics"], upwards)]
    if published:
        axes.plot(
            [point["discrimination"]["value"] for point in published],
            [point[upwards]["value"] for point in published],
            "o", color="black", fillstyle="none", label="published",
        )  # fmt: skip
    axes.set(xlabel="discrimination (lower is fairer)", ylabel=upwards.replace("_", " "), title=study["name"])
    # All points and all bars are in the picture.
    spots = [
        *published,
        *(model["metrics"] for model in study["models"] if _known(model["metrics"], upwards)),
    ]
    farthest = max(0.01, *_ends(spots, "discrimination"))
    heights = _ends(spots, upwards)
    room = max(0.008, 0.08 * (max(heights) - min(heights)))
    axes.set(xlim=(-0.04 * farthest, 1.08 * farthest), ylim=(min(heights) - room, max(heights) + room))
    axes.legend(frameon=False, fontsize=7)


def _known(point: Metrics, upwards: str) -> bool:
    return all(name in point and point[name]["value"] is not None for name in ("discrimination", upwards))


def _ends(spots: list[Metrics], name: str) -> list[float]:
    measures = [spot[name] for spot in spots]
    ends = [end for m in measures for end in (m.get("low"), m["value"], m.get("high"))]
    return [end for end in ends if end is not None]


def _bars(points: list[Metrics], name: str) -> list[list[float]]:
    below, above = [], []
    for measure in (point[name] for point in points):
        value, low, high = measure["value"] or 0.0, measure.get("low"), measure.get("high")
        below.append(0.0 if low is None else max(0.0, value - low))
        above.append(0.0 if high is None else max(0.0, high - value))
    return [below, above]


def _file_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "study"
