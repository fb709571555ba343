"""The model card: what a model was made from, how well it does, and what it must not be used for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from evenhand.bandits.cooperative import CooperativeBandits
from evenhand.boosting import CooperativeBoosting
from evenhand.groups import codes_of
from evenhand.metrics.measures import GroupRow, Measure
from evenhand.workflow.table import digest_of, source_of

if TYPE_CHECKING:
    from evenhand.code_version import Made
    from evenhand.datasets import Dataset
    from evenhand.workflow.candidates import Candidate
    from evenhand.workflow.frontier import Frontier

LIMITS = (
    "It was tested on a random part of one table. It may do worse for people from elsewhere, or later.",
    "The intervals say how much the measures would vary with other people of the same kind, not how the "
    "world will change.",
    "A small flip rate means that the group itself hardly matters. It doesn't mean that all groups get "
    "positive decisions equally often: other columns can stand for the group. Discrimination measures that.",
    "A small discrimination with a positive rate near 0 or 1 means a constant decision, not a fair one.",
    "The model learns unfair labels as they are.",
    "Nobody should be judged by this model alone, without a way to object.",
)


class Card(TypedDict):
    """What a model was made from, and how well it does; plain data for JSON."""

    title: str
    data: dict[str, Any]  # what it was trained on
    model: dict[str, Any]  # its settings
    bounds: list[str]  # which bounds it had to keep, and whether it did, in words
    validation: dict[str, Measure]  # the measures by which it was chosen
    metrics: dict[str, Measure]  # its measures on the test part
    groups: list[GroupRow]  # the same by group
    limits: list[str]
    made: dict[str, Any]


def card_for(
    frontier: Frontier,
    chosen: Candidate,
    criterion: str,
    *,
    bounds: list[str],
    metrics: dict[str, Measure],
    groups: list[GroupRow],
    made: Made,
) -> Card:
    """Return the card of the chosen model; `bounds` says which it had to keep, and whether it did."""
    dataset, parts, model = frontier.dataset, frontier.parts, chosen.model
    source = source_of(dataset)
    sizes = {name: len(getattr(parts, name).y) for name in ("train", "validation", "test")}
    everyone = codes_of(dataset.sensitive_features, len(dataset), model.groups_)
    counts = np.bincount(everyone, minlength=len(model.groups_)).tolist()
    return Card(
        title=f"A model of {dataset.label.name} ({dataset.name})",
        data={
            **{name: source[name] for name in ("source", "sha256", "fingerprint") if source[name]},
            "people": len(dataset),
            "parts": sizes,
            "test part": digest_of(np.asarray(frontier.test_rows)),
            "label": _label(dataset),
            "groups": dict(zip(map(str, model.groups_), counts, strict=True)),
            **({} if dataset.weights is None else {"weight": str(dataset.weights.name)}),
            "learned from": [str(name) for name in dataset.contexts.columns],
            "notes": frontier.notes,
        },
        model={
            "kind": f"{type(model).__name__}, one policy per group",
            "divergence weight λ": chosen.divergence_weight,
            "reward": repr(model.reward),
            **_networks(getattr(model, "bandits_", model)),
            **_trees(getattr(model, "boosting_", model)),
            "seed": model.random_state,
            **({} if parts.threshold is None else {"threshold": parts.threshold}),
            "chosen by": f"{criterion.replace('_', ' ')} on the validation part",
        },
        bounds=bounds,
        validation=chosen.validation,
        metrics=metrics,
        groups=groups,
        limits=list(LIMITS),
        made={name: value for name, value in made.items() if name not in ("data", "seeds")},
    )


def _networks(model: Any) -> dict[str, Any]:
    if not isinstance(model, CooperativeBandits):
        return {}
    times = model.epochs if isinstance(model.epochs, str) else f"{model.epochs:g}"
    return {"hidden units": model.hidden, "epochs": times, "visits in training": model.n_steps_}


def _trees(model: Any) -> dict[str, Any]:
    if not isinstance(model, CooperativeBoosting):
        return {}
    return {"rounds of trees": model.n_steps_, "trees": len(model.policies_.trees.root)}


def _label(dataset: Dataset) -> str:
    if dataset.pos_label is not None:
        return f"{dataset.label.name}, positive is {dataset.pos_label}"
    labels = ", ".join(map(str, sorted(dataset.label.unique().tolist())))
    return f"{dataset.label.name}: {labels}, none of them the positive one"


def to_markdown(card: Card | dict[str, Any]) -> str:
    """Return the card as Markdown, in which names from the data stay text."""
    lines = [f"# {plain(card['title'])}", ""]
    lines += _items("The data", card["data"]) + _items("The model", card["model"])
    if card["bounds"]:
        lines += ["## Bounds", "", *(f"- {plain(text)}" for text in card["bounds"]), ""]
    for heading, part in (
        ("On the validation part, where it was chosen", card["validation"]),
        ("On the test part", card["metrics"]),
    ):
        if part:
            rows = [[plain(_words(name)), _number(one["value"]), _between(one)] for name, one in part.items()]
            lines += _table(heading, ["measure", "value", "95 % interval"], rows)
    groups: list[dict[str, Any]] = [dict(row) for row in card["groups"]]
    if groups:
        groups = [row | row.pop("decided", {}) for row in groups]
        names = [name for name in groups[0] if name not in ("group", "people", "positives")]
        rows = [
            [plain(row["group"]), str(row["people"])]
            + [f"{_number(row[name]['value'])} ({_between(row[name])})" for name in names]
            for row in groups
        ]
        lines += _table("By group, on the test part", ["group", "people", *map(_words, names)], rows)
    lines += ["## Limits of use", "", *(f"- {limit}" for limit in card["limits"]), ""]
    lines += _items("How it was made", card["made"]) if card["made"] else []
    return "\n".join(lines)


def _items(heading: str, part: dict[str, Any]) -> list[str]:
    return [f"## {heading}", "", *(f"- {plain(name)}: {plain(_listed(part[name]))}" for name in part), ""]


def _table(heading: str, columns: list[str], rows: list[list[str]]) -> list[str]:
    head, *body = (f"| {' | '.join(cells)} |" for cells in (columns, *rows))
    return [f"## {heading}", "", head, "|---" * len(columns) + "|", *body, ""]


def _words(name: str) -> str:
    return name.replace("_", " ")


def plain(text: Any) -> str:
    r"""Return a text in which no character means anything to Markdown, HTML or a terminal.

    >>> plain("a|b <script>")
    'a\\|b \\<script\\>'
    """
    one_line = "".join(sign if sign.isprintable() else " " for sign in str(text))
    return re.sub(r"([\\`*\[\]<>|#&~$!])", r"\\\1", one_line)


def _listed(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_listed(item)}" for name, item in value.items())
    if isinstance(value, (list, tuple)):
        items = [_listed(item) for item in value]
        return (" " if all(item.endswith(".") for item in items) else ", ").join(items)
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _between(found: Measure) -> str:
    return "–" if found.get("low") is None else f"{found['low']:.4f} to {found['high']:.4f}"
