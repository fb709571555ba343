"""The model card: what a model was made of, how well it does, and what it must not be used for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.groups import codes_of
from evenhand.workflow.table import source_of

if TYPE_CHECKING:
    from evenhand.datasets import Dataset
    from evenhand.metrics.measures import Measure
    from evenhand.workflow.candidates import Candidate
    from evenhand.workflow.frontier import Frontier

LIMITS = (
    "It was tested on one random part of one table. People from elsewhere, or from later, may be decided "
    "differently well.",
    "Its intervals say how much the measures would move had other people of the same kind been tested; they "
    "do not say how the world will change.",
    "A small flip rate means that the group itself hardly matters. It does not mean that groups are decided "
    "equally often: other columns can stand for the group. Look at discrimination for that.",
    "A small discrimination with a positive rate near 0 or 1 is a constant answer, not a fair one.",
    "Labels that were unfair to begin with are learned as they are.",
    "Nobody should be decided about by this model alone, without a way to object.",
)


def card_of(
    *,
    title: str,
    data: dict[str, Any],
    model: dict[str, Any],
    metrics: dict[str, Any],
    groups: list[dict[str, Any]],
    made: dict[str, Any],
    bounds: list[str] | None = None,
    validation: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a model card as plain data: `data` and `model` say what went in, the rest what came out.

    `bounds` says in words what the model had to keep, and whether it did; `validation` are the measures by
    which it was chosen.
    """
    return {
        "title": title,
        "data": data,
        "model": model,
        "bounds": list(bounds or []),
        "validation": validation or {},
        "metrics": metrics,
        "groups": groups,
        "limits": list(LIMITS),
        "made": made,
    }


def card_for(
    frontier: Frontier,
    chosen: Candidate,
    criterion: str,
    *,
    bounds: list[str],
    metrics: dict[str, Measure],
    groups: list[dict[str, Any]],
    made: dict[str, Any],
) -> dict[str, Any]:
    """Return the card of the chosen model; `bounds` says which it had to keep, and whether it did."""
    dataset, parts, model = frontier.dataset, frontier.parts, chosen.model
    source = source_of(dataset)
    sizes = {name: len(getattr(parts, name).y) for name in ("train", "validation", "test")}
    everyone = codes_of(dataset.sensitive_features, len(dataset), model.groups_)
    counts = np.bincount(everyone, minlength=len(model.groups_)).tolist()
    return card_of(
        title=f"A model of {dataset.label.name} ({dataset.name})",
        data={
            **{name: source[name] for name in ("source", "sha256", "fingerprint") if source[name]},
            "people": len(dataset),
            "parts": sizes,
            "label": _label(dataset),
            "groups": dict(zip(map(str, model.groups_), counts, strict=True)),
            "learned from": [str(name) for name in dataset.contexts.columns],
            "notes": frontier.notes,
        },
        model={
            "kind": "CooperativeBandits, one policy a group",
            "divergence weight λ": f"{chosen.divergence_weight:g}",
            "reward": repr(model.reward),
            "hidden units": model.hidden,
            "epochs": times if isinstance(times := model.epochs, str) else f"{times:g}",
            "people met": model.n_steps_,
            "seed": model.random_state,
            "chosen by": f"{criterion} on the validation part",
        },
        bounds=bounds,
        validation=chosen.validation,
        metrics=metrics,
        groups=groups,
        made={name: value for name, value in made.items() if name not in ("data", "seeds")},
    )


def _label(dataset: Dataset) -> str:
    if dataset.pos_label is not None:
        return f"{dataset.label.name}, positive is {dataset.pos_label}"
    labels = ", ".join(map(str, sorted(dataset.label.unique().tolist())))
    return f"{dataset.label.name}: {labels}, none of them the positive one"


def to_markdown(card: dict[str, Any]) -> str:
    """Return the card as Markdown, in which names from the data stay text.

    >>> card = card_of(title="A <b>model", data={}, model={"λ": 1}, metrics={}, groups=[], made={})
    >>> to_markdown(card).splitlines()[0]
    '# A \\\\<b\\\\>model'
    """
    lines = [f"# {plain(card['title'])}", ""]
    for heading, part in (("The data", card["data"]), ("The model", card["model"])):
        lines += [f"## {heading}", ""]
        lines += [f"- {plain(name)}: {plain(_listed(value))}" for name, value in part.items()]
        lines += [""]
    if card["bounds"]:
        lines += ["## Bounds", "", *(f"- {plain(text)}" for text in card["bounds"]), ""]
    for heading, part in (
        ("On the validation part, where it was chosen", card["validation"]),
        ("On the test part", card["metrics"]),
    ):
        lines += _measures(heading, part) if part else []
    if card["groups"]:
        names = [name for name in card["groups"][0] if name not in ("group", "people", "positives")]
        lines += ["## By group, on the test part", ""]
        lines += ["| group | people | " + " | ".join(name.replace("_", " ") for name in names) + " |"]
        lines += ["|---" * (len(names) + 2) + "|"]
        lines += [
            f"| {plain(row['group'])} | {row['people']} | "
            + " | ".join(f"{_number(row[name]['value'])} ({_between(row[name])})" for name in names)
            + " |"
            for row in card["groups"]
        ]
        lines += [""]
    lines += ["## Limits of use", "", *(f"- {limit}" for limit in card["limits"]), ""]
    if card["made"]:
        lines += ["## How it was made", ""]
        lines += [f"- {plain(name)}: {plain(_listed(value))}" for name, value in card["made"].items()]
        lines += [""]
    return "\n".join(lines)


def _measures(heading: str, measures: dict[str, Any]) -> list[str]:
    lines = [f"## {heading}", "", "| measure | value | 95 % interval |", "|---|---|---|"]
    lines += [
        f"| {plain(name.replace('_', ' '))} | {_number(found['value'])} | {_between(found)} |"
        for name, found in measures.items()
    ]
    return [*lines, ""]


def plain(text: Any) -> str:
    """Return a text in which no character means anything to Markdown, HTML or a terminal.

    >>> plain("a|b <script>")
    'a\\\\|b \\\\<script\\\\>'
    """
    one_line = "".join(sign if sign.isprintable() else " " for sign in str(text))
    return re.sub(r"([\\`*\[\]<>|#&~$!])", r"\\\1", one_line)


def _listed(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_listed(item)}" for name, item in value.items())
    if isinstance(value, (list, tuple)):
        items = [_listed(item) for item in value]
        return (" " if all(item.endswith(".") for item in items) else ", ").join(items)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _between(found: dict[str, Any]) -> str:
    return "–" if found.get("low") is None else f"{found['low']:.4f} to {found['high']:.4f}"


def card_path(model: Path, kind: str) -> Path:
    """Return where a model's card lies.

    >>> print(card_path(Path("model.skops"), "md"), card_path(Path("model.v2"), "md"))
    model.card.md model.v2.card.md
    """
    stem = model.stem if model.suffix.lower() == ".skops" else model.name
    return model.with_name(f"{stem}.card.{kind}")
