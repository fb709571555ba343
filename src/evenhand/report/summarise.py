"""The summary: one dict for every kind of report, plain enough for JSON; the page is made of it.

summary   schema, kind, title, overview, studies, made
overview  sentence, tables, notes: what holds for all studies together; None where there is nothing to say
study     name, label, pos_label, sensitive, people, sentence, models, points, published, groups, convergence,
          submodels, persons, published_reward, decided_by, tables, notes
model     name, method, family, criterion, divergence_weight, chosen, front, metrics {name: value, low, high}
points    models that a family's chosen one was chosen from: faint in the figure, with a front for each family
table     title, caption, columns, rows of texts; it may have words, said before it, and be numeric: the first
          column names the row, the rest are numbers
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evenhand.checks import one_of
from evenhand.metrics import person_flips, person_gaps
from evenhand.metrics.measures import share
from evenhand.report.values import shown
from evenhand.version import __version__

SCHEMA = "evenhand-summary-1"
KINDS = ("fit", "audit", "reproduce", "compare")
MOST_PERSONS = 500
_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "numba", "skops")
_NOTHING = {"persons": None, "published_reward": None, "decided_by": ""}
_LISTS = ("models", "published", "groups", "convergence", "submodels", "tables", "notes")

Array = npt.NDArray[Any]
Summary = dict[str, Any]
Study = dict[str, Any]


def summary_of(
    kind: str,
    title: str,
    studies: Sequence[Study],
    made: dict[str, Any],
    overview: dict[str, Any] | None = None,
) -> Summary:
    """Return a whole summary; studies get what they leave out, and a sentence."""
    one_of("kind", kind, KINDS)
    filled = []
    for study in studies:
        whole: Study = {name: [] for name in _LISTS} | _NOTHING | study
        whole["models"] = mark_front(whole["models"])
        whole["points"] = _fronts_by_family(whole.get("points", []))
        whole.setdefault("sentence", sentence(whole, audited=kind == "audit"))
        filled.append(whole)
    return {
        "schema": SCHEMA,
        "kind": kind,
        "title": title,
        "overview": overview,
        "studies": filled,
        "made": made,
    }


def model_of(
    name: str,
    metrics: dict[str, Any],
    *,
    method: str = "",
    family: str = "",
    criterion: str | None = None,
    divergence_weight: float | None = None,
    chosen: bool = False,
) -> dict[str, Any]:
    """Return one model's entry; models of one family that have a λ are what the slider moves along."""
    return {
        "name": name,
        "method": method or name,
        "family": family or name,
        "criterion": criterion,
        "divergence_weight": divergence_weight,
        "chosen": chosen,
        "front": False,
        "metrics": metrics,
    }


def mark_front(models: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mark the models that no other beats in both accuracy and discrimination.

    >>> def point(accuracy, discrimination):
    ...     both = {"accuracy": {"value": accuracy}, "discrimination": {"value": discrimination}}
    ...     return model_of("m", both)
    >>> [model["front"] for model in mark_front([point(0.9, 0.2), point(0.8, 0.2), point(0.7, 0.0)])]
    [True, False, True]
    """
    points = [(_value(model, "accuracy"), _value(model, "discrimination")) for model in models]
    marked = []
    for model, (right, unequal) in zip(models, points, strict=True):
        beaten = any(
            other[0] >= right and other[1] <= unequal and other != (right, unequal) for other in points
        )
        known = bool(np.isfinite(right) and np.isfinite(unequal))
        marked.append(model | {"front": known and not beaten})
    return marked


def sentence(study: Study, *, audited: bool = False) -> str:
    """Return the one sentence that stands above everything else."""
    chosen = next((model for model in study["models"] if model["chosen"]), None)
    if chosen is None:
        return ""
    found = chosen["metrics"]
    parts = []
    if found["accuracy"]["value"] is not None:
        right = _share(found["accuracy"])
        # Who is audited may have trained the model.
        people = "these people" if audited else "the people it was tested on"
        parts.append(f"“{chosen['name']}” decides as labelled for {right} of {people}")
    if "discrimination" in found and found["discrimination"]["value"] is not None:
        unequal = _share(found["discrimination"], " points")
        # With more than two labels and none named, it is the largest difference over all of them.
        what = f"“{study['pos_label']}”" if study["pos_label"] else "some label"
        parts.append(f"the share of {what} differs between groups by up to {unequal}")
    if "flip_rate" in found:
        parts.append(f"{_share(found['flip_rate'])} would be decided otherwise in another group")
    known = any(measure.get("low") is not None for measure in found.values())
    said = "; ".join(parts)
    text = said[:1].upper() + said[1:] + (" (95 % intervals in brackets)." if known else ".")
    rate = _value(chosen, "positive_rate")
    if rate < 0.01 or rate > 0.99:
        text += f" Beware: it gives {100 * max(rate, 1 - rate):.1f} % the same answer, fair or not."
    return text


def group_rows(
    y: Any, decisions: Any, own: Array, names: Sequence[Any], pos_label: Any, flips: Array | None = None
) -> list[dict[str, Any]]:
    """Return the group table: how many people, how many positive, and what was decided, with intervals.

    Without a positive label there are no shares of it.

    >>> rows = group_rows(["n", "y"] * 4, ["n", "y"] * 4, np.array([0, 0, 1, 1] * 2), ["f", "m"], "y")
    >>> rows[0]["group"], rows[0]["people"], rows[0]["positive_rate"]["value"]
    ('f', 4, 0.5)
    """
    truth, decided = np.asarray(y) == pos_label, np.asarray(decisions) == pos_label
    right = np.asarray(decisions) == np.asarray(y)
    rows = []
    for code, name in enumerate(names):
        here = own == code
        if not here.any():
            continue
        row: dict[str, Any] = {"group": str(name), "people": int(here.sum())}
        if pos_label is not None:
            row |= {
                "positives": int(truth[here].sum()),
                "base_rate": share(truth[here]),
                "positive_rate": share(decided[here]),
                "true_positive_rate": share(decided[here & truth]),
            }
        row["accuracy"] = share(right[here])
        if flips is not None:
            row["flip_rate"] = share(flips[here])
        rows.append(row)
    return rows


def persons(
    contexts: pd.DataFrame,
    said: Array,
    own: Array,
    *,
    groups: Sequence[Any],
    labels: Sequence[Any],
    y: Any = None,
    pos_label: Any,
    limit: int = MOST_PERSONS,
    numbers: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Return people, those whose decision flips first, then by gap: each group's decision, and who they are.

    `said` is (people, groups, actions); `groups` and `labels` name its axes. `numbers` are the people's rows
    in the data set or its file, from 0, where these are not all of it. Without a positive label there is no
    one probability to show.
    """
    gaps = person_gaps(said, own)
    decided = said.argmax(2)
    flips = person_flips(decided, own)
    shares = said[:, :, list(labels).index(pos_label)].round(4) if pos_label is not None else None
    first = np.lexsort((-gaps, ~flips))[:limit]
    columns = [str(name) for name in contexts.columns]
    rows = [
        {
            "person": 1 + int(at if numbers is None else numbers[at]),
            "group": str(groups[own[at]]),
            "label": None if y is None else str(y[at]),
            "decisions": [str(labels[action]) for action in decided[at]],
            "probabilities": [None] * len(groups) if shares is None else shares[at].tolist(),
            "gap": round(float(gaps[at]), 6),
            "flips": bool(flips[at]),
            "features": [shown(value) for value in contexts.iloc[at]],
        }
        for at in first.tolist()
    ]
    return {
        "groups": [str(name) for name in groups],
        "columns": columns,
        "rows": rows,
        "people": len(said),
        "flips": int(flips.sum()),
    }


def made(command: str, *, seeds: Sequence[int], data: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return how a summary was made: the command, versions, seeds and the data's hashes."""
    return {
        "command": command,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "evenhand": __version__,
        "python": platform.python_version(),
        "platform": platform.system() + " " + platform.machine(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "seeds": list(seeds),
        "data": list(data),
    }


def write_summary(summary: Summary, path: str | Path) -> Path:
    """Write a summary as JSON, whole or not at all; return its path."""
    path = Path(path)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(summary, indent=1, allow_nan=False, ensure_ascii=False), encoding="utf-8")
    return partial.replace(path)


def read_summary(path: str | Path) -> Summary:
    """Read a summary that `write_summary` wrote; another file is refused with what is wrong with it."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}; expected a summary saved by evenhand.")
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no JSON ({error}); expected a summary saved by evenhand.") from error
    return check_summary(held, str(path))


def check_summary(summary: Any, origin: str = "the summary") -> Summary:
    """Return the summary if it has the shape that a page needs."""
    if not isinstance(summary, dict) or summary.get("schema") != SCHEMA:
        came = summary.get("schema") if isinstance(summary, dict) else type(summary).__name__
        raise ValueError(f"{origin} has the schema {came!r}, but expected {SCHEMA!r}.")
    one_of("kind", summary.get("kind"), KINDS)
    for name in ("title", "studies", "made"):
        if name not in summary:
            raise ValueError(f"{origin} has no {name!r}; expected a whole summary.")
    for number, study in enumerate(summary["studies"]):
        for name in ("name", "label", "pos_label", "sensitive", "people", "sentence", *_LISTS):
            if name not in study:
                raise ValueError(f"{origin}, study {number + 1} has no {name!r}; expected a whole summary.")
        for model in study["models"]:
            if not isinstance(model.get("metrics"), dict) or "name" not in model:
                raise ValueError(
                    f"{origin}, study {study['name']!r} has a model without name or metrics: {model!r}."
                )
    return summary


def _fronts_by_family(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    families = dict.fromkeys(point["family"] for point in points)
    return [
        point
        for family in families
        for point in mark_front([each for each in points if each["family"] == family])
    ]


def _value(model: dict[str, Any], name: str) -> float:
    value = model["metrics"].get(name, {}).get("value")
    return float("nan") if value is None else float(value)


def _share(measure: dict[str, Any], unit: str = " %") -> str:
    if measure["value"] is None:
        return "an unknown share"
    text = f"{100 * measure['value']:.1f}{unit}"
    if measure.get("low") is None:
        return text
    return text + f" ({100 * measure['low']:.1f} to {100 * measure['high']:.1f})"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
