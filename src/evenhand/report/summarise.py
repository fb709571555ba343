"""Make a summary from its parts; see `evenhand.report.summary` for their types."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evenhand.checks import one_of
from evenhand.code_version import Made
from evenhand.metrics.measures import Measure
from evenhand.report.summary import KINDS, SCHEMA, Metrics, ModelEntry, Overview, Study, Summary
from evenhand.wording import group_called


def summary_of(
    kind: str, title: str, studies: Sequence[Study], made: Made, overview: Overview | None = None
) -> Summary:
    """Return a complete summary; studies get defaults for parts that they leave out, and a sentence."""
    one_of("kind", kind, KINDS)
    return {
        "schema": SCHEMA,
        "kind": kind,
        "title": title,
        "overview": overview,
        "studies": [_whole(study, audited=kind == "audit") for study in studies],
        "made": made,
    }


def model_of(
    name: str,
    metrics: Metrics,
    *,
    method: str = "",
    family: str = "",
    criterion: str | None = None,
    divergence_weight: float | None = None,
    chosen: bool = False,
) -> ModelEntry:
    """Return one model's entry; its method and family are its name unless given."""
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


def mark_front(models: Sequence[ModelEntry], upwards: str = "accuracy") -> list[ModelEntry]:
    """Mark the models on the Pareto front of `upwards` and discrimination: those that no other dominates.

    >>> def point(accuracy, discrimination):
    ...     both = {"accuracy": {"value": accuracy}, "discrimination": {"value": discrimination}}
    ...     return model_of("m", both)
    >>> [model["front"] for model in mark_front([point(0.9, 0.2), point(0.8, 0.2), point(0.7, 0.0)])]
    [True, False, True]
    """
    points = [(_value(model, upwards), _value(model, "discrimination")) for model in models]
    marked: list[ModelEntry] = []
    for model, (right, unequal) in zip(models, points, strict=True):
        beaten = any(
            other[0] >= right and other[1] <= unequal and other != (right, unequal) for other in points
        )
        known = math.isfinite(right) and math.isfinite(unequal)
        marked.append({**model, "front": known and not beaten})
    return marked


def sentence(study: Study, *, audited: bool = False) -> str:
    """Return the one sentence above everything else; '' if no model is chosen.

    If `audited`, the model may have been trained on these people, so they are not called a test set.
    """
    chosen = next((model for model in study["models"] if model["chosen"]), None)
    if chosen is None:
        return ""
    found = chosen["metrics"]
    parts = []
    if found["accuracy"]["value"] is not None:
        people = "these people" if audited else "the test set"
        if study.get("trained_on"):
            people += f", of whom it was trained on {study['trained_on']:,}"
        parts.append(f"“{chosen['name']}” is correct for {_share(found['accuracy'])} of {people}")
    if "discrimination" in found and found["discrimination"]["value"] is not None:
        unequal = _share(found["discrimination"], " points")
        # With more than two labels and none named, it is the largest difference over all of them.
        apart, between = study.get("widest"), "groups"
        if apart and apart["least"] != apart["most"]:
            between = " and ".join(
                group_called(apart[side], study["sensitive"]) for side in ("least", "most")
            )
        label = apart["label"] if apart else study["pos_label"]
        few = study.get("filled_up_to")
        filled = f", with groups of fewer than {few} people filled up to as many" if few else ""
        parts.append(f"the share of “{label}” differs between {between} by {unequal}{filled}")
    if "flip_rate" in found:
        parts.append(f"{_share(found['flip_rate'])} would get a different decision in another group")
    if not parts:
        return ""
    known = any(measure.get("low") is not None for measure in found.values())
    said = "; ".join(parts)
    text = said[:1].upper() + said[1:] + (" (95 % intervals in brackets)." if known else ".")
    rate = _value(chosen, "positive_rate")
    if rate < 0.01 or rate > 0.99:
        text += f" Beware: it gives {100 * max(rate, 1 - rate):.1f} % the same answer, fair or not."
    return text


def cell(value: object, digits: int) -> str:
    """Return a value as a table's text."""
    return "–" if value is None else f"{value:.{digits}f}" if isinstance(value, float) else str(value)


def _whole(study: Study, *, audited: bool) -> Study:
    whole: Study = {
        "published": [],
        "groups": [],
        "convergence": [],
        "submodels": [],
        "persons": None,
        "published_reward": None,
        "decided_by": "",
        "widest": None,
        "trained_on": None,
        "filled_up_to": None,
        "tables": [],
        "notes": [],
        **study,
        "models": mark_front(study["models"], study.get("upwards", "accuracy")),
        "points": _fronts_by_family(study.get("points", [])),
    }
    whole.setdefault("sentence", sentence(whole, audited=audited))
    return whole


def _fronts_by_family(points: Sequence[ModelEntry]) -> list[ModelEntry]:
    families = dict.fromkeys(point["family"] for point in points)
    return [
        point
        for family in families
        for point in mark_front([each for each in points if each["family"] == family])
    ]


def _value(model: ModelEntry, name: str) -> float:
    found = model["metrics"].get(name)
    return math.nan if found is None or found["value"] is None else found["value"]


def _share(measure: Measure, unit: str = " %") -> str:
    value, low, high = measure["value"], measure.get("low"), measure.get("high")
    if value is None:
        return "an unknown share"
    text = f"{100 * value:.1f}{unit}"
    return text if low is None or high is None else text + f" ({100 * low:.1f} to {100 * high:.1f})"
