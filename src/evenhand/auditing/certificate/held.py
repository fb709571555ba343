"""What a certificate needs of a model: its policies, and the columns that they take."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from evenhand.arrays import Floats
from evenhand.auditing.certificate.domain import Encode
from evenhand.auditing.certificate.mixture import can_be_bounded, has_trees
from evenhand.frames import as_pandas
from evenhand.metrics.counts import positive_label
from evenhand.metrics.gower import as_frame
from evenhand.tables.columns import CATEGORY, NUMBER
from evenhand.tables.matching import contexts_of, known_categories
from evenhand.tables.preprocessing import encode, told_missing

_LABELS = 6  # every set of them is compared


class Held(NamedTuple):
    """What a certificate needs of a model."""

    policies: Any  # a CooperativeBandits, which is not imported for those who only audit
    encode: Encode
    kinds: dict[str, str]
    categories: dict[str, list[Any]]
    gaps: set[str]
    contexts: pd.DataFrame | None
    threshold: float | None
    positive: int


def bounded_policies(model: Any, radius: float | None = None) -> Any:
    """Return the policies of a model; raise if they can't be bounded, or not near people."""
    policies = getattr(model, "model", getattr(model, "estimator_", model))
    if not can_be_bounded(policies):
        raise TypeError(
            f"Got {type(policies).__name__}, but expected a fitted CooperativeBandits, CooperativeBoosting "
            "or CooperativeEnsemble, or a Deployed or tabular model around one: only their policies can be "
            "bounded."
        )
    labels = len(policies.classes_)
    most = 2 if has_trees(policies) else _LABELS
    if not 2 <= labels <= most:
        raise ValueError(
            f"Got a model of {labels} labels, but a certificate takes 2, or of networks up to {_LABELS}."
        )
    if radius is not None and has_trees(policies):
        raise ValueError(
            "Got a radius for policies with trees, but only networks are bounded near people. `evenhand fit "
            "--policies networks` makes them."
        )
    return policies


def held_by(model: Any, X: Any, radius: float | None = None) -> Held:
    """Return what a certificate needs of a model; raise if it can't be bounded."""
    policies = bounded_policies(model, radius)
    labels = policies.classes_.tolist()
    positive = positive_label(labels, getattr(model, "pos_label", None))
    threshold, frame = getattr(model, "threshold", None), None if X is None else as_pandas(X)
    about = threshold, 1 if positive is None else positive
    prepared = getattr(model, "preprocessor", getattr(model, "preprocessor_", None))
    if prepared is None:
        if frame is None:
            raise ValueError(
                f"Got no X, but a bare {type(policies).__name__} needs it: the columns' ranges are X's."
            )
        return _bare(policies, as_frame(_dense(frame) if sparse.issparse(frame) else frame), *about)
    kinds = getattr(model, "columns", None) or model.columns_
    contexts = None if frame is None else contexts_of(frame, kinds, prepared)
    categories = {
        name: list(dict.fromkeys(known_categories(prepared, name).values()))
        for name, kind in kinds.items()
        if kind == CATEGORY
    }
    return Held(
        policies, lambda rows: _dense(encode(prepared, rows)), kinds, categories, told_missing(prepared),
        contexts, *about,
    )  # fmt: skip


def _bare(policies: Any, table: pd.DataFrame, threshold: float | None, positive: int) -> Held:
    """Return what is needed of a model that takes people's columns as they are."""
    table = table.rename(columns=str)
    words = getattr(policies, "categories_", None)
    if words is None:  # networks take numbers, and no gaps
        kinds = dict.fromkeys(table.columns, NUMBER)
        return Held(
            policies, lambda rows: rows.to_numpy(np.float64), kinds, {}, set(), table, threshold, positive
        )
    from evenhand.boosting.columns import as_numbers

    table = table.assign(**{name: table[name].map(str) for name in words})
    kinds = {name: CATEGORY if name in words else NUMBER for name in table.columns}
    return Held(
        policies, lambda rows: as_numbers(rows, words).to_numpy(np.float64), kinds,
        {name: known.tolist() for name, known in words.items()},
        {name for name, kind in kinds.items() if kind == NUMBER and table[name].isna().any()},
        table, threshold, positive,
    )  # fmt: skip


def _dense(features: Any) -> Floats:
    dense = features if isinstance(features, np.ndarray) else features.toarray()
    return np.asarray(dense, dtype=np.float64)
