"""The model card: what a model was made from, how well it does, and what it must not be used for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from evenhand.bandits.cooperative import CooperativeBandits
from evenhand.boosting import CooperativeBoosting
from evenhand.metrics.measures import GroupRow, Measure, value_of
from evenhand.wording import measured
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
# What the card says about a model that was changed after it was measured.
NOT_MEASURED: dict[str, Any] = {
    "validation": {}, "metrics": {}, "groups": [], "bounds": [], "bounds_in_words": []
}  # fmt: skip


class Card(TypedDict):
    """What a model was made from, and how well it does; plain data for JSON."""

    title: str
    data: dict[str, Any]  # what it was trained on
    model: dict[str, Any]  # its settings
    bounds: list[dict[str, Any]]  # those it had to keep, and its values on validation and test
    bounds_in_words: list[str]
    validation: dict[str, Measure]  # its measures on the validation part, where it was chosen
    metrics: dict[str, Measure]  # its measures on the test part
    groups: list[GroupRow]  # the same per group
    limits: list[str]
    made: dict[str, Any]


def card_for(
    frontier: Frontier,
    chosen: Candidate,
    criterion: str,
    *,
    bounds: dict[str, float],
    bounds_in_words: list[str],
    metrics: dict[str, Measure],
    groups: list[GroupRow],
    made: Made,
) -> Card:
    """Return the card of the chosen model; `bounds` holds the bound per measure, if any."""
    dataset, parts, model = frontier.dataset, frontier.parts, chosen.model
    source = source_of(dataset)
    sizes = {name: len(getattr(parts, name).y) for name in ("train", "validation", "test")}
    counts = {str(name): count for name, count in dataset.group_counts.items()}
    if dataset.whole is not None:
        sizes["train"] = dataset.whole.training
    return Card(
        title=f"A model that predicts {dataset.label.name} ({dataset.name})",
        data={
            **{name: source[name] for name in ("source", "sha256", "fingerprint") if source[name]},
            "people": dataset.people,
            "parts": sizes,
            "test part": digest_of(np.asarray(frontier.test_rows)),
            "label": _label(dataset),
            "sensitive": [str(name) for name in dataset.sensitive_columns],
            "groups": {str(name): counts[str(name)] for name in model.groups_},
            **({"merged": dataset.merged} if dataset.merged else {}),
            **({} if dataset.weights is None else {"weight": str(dataset.weights.name)}),
            **({"decimal sign": ","} if dataset.decimal == "," else {}),
            "learned from": [str(name) for name in dataset.contexts.columns],
            "notes": frontier.notes,
        },
        model={
            "kind": type(model).__name__,
            "policies": [str(name) for name in model.groups_],
            "divergence weight λ": chosen.divergence_weight,
            "reward": repr(model.reward),
            **_networks(getattr(model, "bandits_", model)),
            **_trees(getattr(model, "boosting_", model)),
            "seed": model.random_state,
            **({} if parts.threshold is None else {"threshold": parts.threshold}),
            "chosen by": criterion,
        },
        bounds=[
            {
                "measure": name,
                "at_most": bound,
                "validation": chosen.validation[name]["value"],
                "test": metrics[name]["value"],
                "kept_on_test": value_of(metrics, name) <= bound,
            }
            for name, bound in bounds.items()
        ],
        bounds_in_words=bounds_in_words,
        validation=chosen.validation,
        metrics=metrics,
        groups=groups,
        limits=list(LIMITS),
        made={name: value for name, value in made.items() if name not in ("data", "seeds")},
    )


def _networks(model: Any) -> dict[str, Any]:
    if not isinstance(model, CooperativeBandits):
        return {}
    return {"hidden units": model.hidden, "epochs": model.epochs, "visits in training": model.n_steps_}


def _trees(model: Any) -> dict[str, Any]:
    if not isinstance(model, CooperativeBoosting):
        return {}
    return {"rounds of trees": model.n_steps_, "trees": len(model.policies_.trees.root)}


def _label(dataset: Dataset) -> dict[str, Any]:
    labels = sorted(dataset.label.unique().tolist())
    return {"column": str(dataset.label.name), "labels": labels, "positive": dataset.pos_label}


def tested(card: dict[str, Any]) -> str:
    """Return the main measures on the test part, in one line.

    >>> tested({"metrics": {"accuracy": {"value": 0.75}, "flip_rate": {"value": None}}})
    'accuracy 0.750'
    """
    found = {
        name: card.get("metrics", {}).get(name, {}) for name in ("accuracy", "discrimination", "flip_rate")
    }
    return ", ".join(
        f"{_words(name)} {one['value']:.3f}" for name, one in found.items() if one.get("value") is not None
    )


def to_markdown(card: Card | dict[str, Any]) -> str:
    """Return the card as Markdown; names from the data are escaped."""
    lines = [f"# {plain(card['title'])}", ""]
    lines += _items("The data", card["data"]) + _items("The model", card["model"])
    told = card.get("bounds_in_words", card["bounds"])  # files of an earlier version have one of them
    if told:
        lines += ["## Bounds", "", *(f"- {plain(text)}" for text in told), ""]
    for heading, part in (
        ("On the validation part, where it was chosen", card["validation"]),
        ("On the test part", card["metrics"]),
    ):
        if part:
            rows = [
                [plain(_words(name)), _number(one["value"], name), _between(one, name)]
                for name, one in part.items()
            ]
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
    r"""Escape the characters that mean something to Markdown, HTML or a terminal.

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
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _number(value: float | None, name: str = "") -> str:
    return "–" if value is None else measured(value, name, digits=4)


def _between(found: Measure, name: str = "") -> str:
    if found.get("low") is None:
        return "–"
    return f"{_number(found['low'], name)} to {_number(found['high'], name)}"
