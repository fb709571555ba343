"""What `fit` leaves behind: the model, its card, and the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from evenhand import save
from evenhand.datasets import Dataset
from evenhand.groups import codes_of
from evenhand.report.render import write_html
from evenhand.report.summarise import write_summary
from evenhand.tables.preprocessing import Parts
from evenhand.workflow.card import card_of, to_markdown
from evenhand.workflow.deployed import Deployed
from evenhand.workflow.tradeoff import Candidate


def card_for(
    dataset: Dataset,
    parts: Parts,
    chosen: Candidate,
    criterion: str,
    *,
    bounds: list[str],
    metrics: Any,
    groups: Any,
    source: dict[str, Any],
    made: Any,
) -> dict[str, Any]:
    """Return the card of the chosen model; `bounds` says which it had to keep, and whether it did.

    `source` is what `evenhand.workflow.table.source_of` returns.
    """
    sizes = {name: len(getattr(parts, name).y) for name in ("train", "validation", "test")}
    everyone = codes_of(dataset.sensitive_features, len(dataset), chosen.model.groups_)
    counts = np.bincount(everyone, minlength=len(chosen.model.groups_)).tolist()
    return card_of(
        title=f"A model of {dataset.label.name} ({dataset.name})",
        data={
            **{name: source[name] for name in ("source", "sha256", "fingerprint")},
            "people": len(dataset),
            "parts": sizes,
            "label": _label(dataset),
            "groups": dict(zip(map(str, chosen.model.groups_), counts, strict=True)),
            "learned from": [str(name) for name in dataset.contexts.columns],
            "notes": dataset.notes,
        },
        model={
            "kind": "CooperativeBandits, one policy a group",
            "divergence weight λ": f"{chosen.divergence_weight:g}",
            "reward": repr(chosen.model.reward),
            "hidden units": chosen.model.hidden,
            "epochs": times if isinstance(times := chosen.model.epochs, str) else f"{times:g}",
            "people met": chosen.model.n_steps_,
            "seed": chosen.model.random_state,
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


def write(
    deployed: Deployed, card: Any, whole: Any, output: Path, report: Path | None, summary: Path | None
) -> dict[str, Path]:
    """Write all that was asked for; return the files by what they are."""
    written = {"model": save(deployed, output)}
    for kind, text in (("md", to_markdown(card)), ("json", json.dumps(deployed.card, indent=2))):
        path = card_path(output, kind)
        path.write_text(text, encoding="utf-8")
        written[f"card_{kind}"] = path
    if summary is not None:
        written["summary"] = write_summary(whole, summary)
    if report is not None:
        written["report"] = write_html(whole, report)
    return written


def card_path(model: Path, kind: str) -> Path:
    """Return where a model's card lies.

    >>> print(card_path(Path("model.skops"), "md"), card_path(Path("model.v2"), "md"))
    model.card.md model.v2.card.md
    """
    stem = model.stem if model.suffix.lower() == ".skops" else model.name
    return model.with_name(f"{stem}.card.{kind}")
