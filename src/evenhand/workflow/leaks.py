"""Find columns that are the label under another name, before anything is trained."""

from __future__ import annotations

import shlex
from dataclasses import replace

from sklearn.linear_model import LogisticRegression

from evenhand.auditing.near_copies import near_copies
from evenhand.tables.dataset import Dataset
from evenhand.tables.preprocessing import prepare
from evenhand.tables.splits import Split
from evenhand.wording import listed


class LeakWarning(UserWarning):
    """The label can be predicted almost perfectly from one feature, which may have been made from it."""


def on_leaks(dataset: Dataset, rows: Split) -> list[str]:
    """Name the columns that nearly determine the label, and say how good a model is without them."""
    train = dataset.contexts.iloc[rows.train]
    names = [str(name) for name in near_copies(train, dataset.label.iloc[rows.train].to_numpy())]
    if not names:
        return []
    text = (
        f"The label {dataset.label.name!r} can be predicted almost perfectly from {listed(names)}. If that "
        "is known only after the label, or made from it, the model will be of no use: leave it out with "
        f"drop={names!r}, on the command line {' '.join('--drop ' + shlex.quote(name) for name in names)}."
    )
    if len(names) < dataset.contexts.shape[1]:
        others = replace(dataset, contexts=dataset.contexts.drop(columns=names))
        with_it, without = (100 * _correct(data, rows) for data in (dataset, others))
        text += (
            f" A logistic regression is correct for {without:.1f} % of the validation part without it, and "
            f"for {with_it:.1f} % with it."
        )
    return [text]


def _correct(dataset: Dataset, rows: Split) -> float:
    parts = prepare(dataset, rows)
    kind = str if parts.train.y.dtype == object else parts.train.y.dtype
    model = LogisticRegression(max_iter=500).fit(parts.train.X, parts.train.y.astype(kind))
    return float(model.score(parts.validation.X, parts.validation.y.astype(kind)))
