"""Sentences made from the numbers: constant classifiers, agreement with the paper and disagreement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand.datasets import Dataset
from evenhand.protocol.compare import TITLES, GradientCurve, published
from evenhand.protocol.grids import CLOSE, CONTROL
from evenhand.protocol.trial import SPLITS

_CONSTANT_RATE = 0.01  # at most this share gets the rarer answer
_CONSTANT_CONSISTENCY = 0.98


class Facts(NamedTuple):
    """The size, groups and labels of a data set's test part."""

    name: str
    people: int
    by_group: tuple[int, ...]
    positive_share: float

    @property
    def majority(self) -> float:
        """The accuracy of giving everybody the more frequent answer."""
        return max(self.positive_share, 1 - self.positive_share)


def facts_of(dataset: Dataset, *, seed: int, split: str) -> Facts:
    """Return the facts about the test part of a split."""
    test = SPLITS[split](dataset, seed).test
    label = dataset.label.iloc[test]
    sizes = dataset.sensitive_features.iloc[test].value_counts(sort=False)
    return Facts(dataset.name, len(test), tuple(map(int, sizes)), float((label == dataset.pos_label).mean()))


def constant_in_the_paper(facts: list[Facts]) -> list[str]:
    """Return one sentence per data set: which published results are, or are nearly, constant classifiers.

    A result is constant if hardly any neighbours get different decisions, and if its accuracy is that of
    giving everybody the same answer, within the sampling error of a test part of that size.
    """
    sentences = []
    for fact in facts:
        paper = published()
        paper = paper[(paper["dataset"] == fact.name) & (paper["consistency"] >= _CONSTANT_CONSISTENCY)]
        found: dict[str, list[str]] = {"constant": [], "nearly constant": []}
        for row in paper.to_dict("records"):
            off = min(abs(row["accuracy"] - share) for share in (fact.majority, 1 - fact.majority))
            if off <= _error(fact.majority, fact.people):
                wholly = row["consistency"] >= 0.999 and row["discrimination"] < 0.001
                name = f"{row['method']} ({_short(row['table'])}, accuracy {row['accuracy']:.4f})"
                found["constant" if wholly else "nearly constant"].append(name)
        listed = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in found.items() if names)
        if listed:
            sentences.append(
                f"Published results on {fact.name} that give everybody the same answer, which scores "
                f"{fact.majority:.4f} or {1 - fact.majority:.4f} here: {listed}."
            )
    return sentences


def constant_here(best: pd.DataFrame) -> list[str]:
    """Return a sentence per data set and criterion: which methods here give nearly everybody one answer."""
    sentences = []
    for (dataset, criterion), rows in best.groupby(["dataset", "criterion"], sort=False):
        rate = rows.groupby("method", sort=False)["positive_rate"].mean()
        same = rate[(rate <= _CONSTANT_RATE) | (rate >= 1 - _CONSTANT_RATE)]
        if len(same):
            listed = ", ".join(f"{name} ({100 * max(r, 1 - r):.1f} %)" for name, r in same.items())
            sentences.append(
                f"This run, {dataset} by {criterion}: one answer for nearly everybody: {listed}."
            )
    return sentences


def agreement(table: pd.DataFrame, name: str, facts: list[Facts]) -> list[str]:
    """Return one sentence per data set: which methods agree with the paper in accuracy and discrimination.

    A method agrees if it differs by no more than two test parts of that size would by chance (95 %), or by no
    more than half the width of this run's interval over seeds.
    """
    sentences = []
    for fact in facts:
        agrees, differs = [], []
        for method, rows in table[table["dataset"] == fact.name].groupby("method", sort=False):
            cells = {str(row["metric"]): row for row in rows.to_dict("records")}
            compared = [cells[metric] for metric in ("accuracy", "discrimination") if metric in cells]
            if not compared or any(np.isnan(cell["published"]) for cell in compared):
                continue
            off = [
                f"{cell['metric']} {cell['ours']:.3f} against {cell['published']:.3f}"
                for cell in compared
                if abs(cell["difference"]) > _by_chance(cell, cells["positive_rate"]["ours"], fact)
            ]
            if off:
                differs.append(f"{method} ({', '.join(off)})")
            else:
                agrees.append(str(method))
        if agrees or differs:
            agree, differ = ", ".join(agrees) or "none", ", ".join(differs) or "none"
            sentences.append(f"{_short(name)}, {fact.name}: agree: {agree}; differ: {differ}.")
    return sentences


def lucky_checkpoints(best: pd.DataFrame) -> list[str]:
    """Return a sentence per data set: how close settings found afterwards come to the published Table 2.

    The control has the same settings and a constant instead of λ·KL.
    """
    paper = published()
    paper = paper[(paper["table"] == "table2_delta") & (paper["method"] == "CCB")].set_index("dataset")
    theirs = paper[["accuracy", "discrimination"]].to_dict("index")
    best = best[(best["criterion"] == "delta") & best["dataset"].isin(paper.index)]
    sentences = []
    for dataset, rows in best.groupby("dataset", sort=False):
        shown = ["accuracy", "discrimination", "flip_rate", "positive_rate"]
        means = rows.groupby("method")[shown].mean().to_dict("index")
        if CLOSE not in means:
            continue
        ours = means[CLOSE]
        began = (
            f"Table 2, {dataset}: the published reward, with two outputs and Adam at 0.001 (settings found "
            f"afterwards), reaches {_both(ours)} (published: {_both(theirs[dataset])})"
        )
        same = max(ours["positive_rate"], 1 - ours["positive_rate"])
        if same >= 1 - _CONSTANT_RATE:
            sentences.append(f"{began}, with one answer for {same:.1%} of the people.")
            continue
        control = ""
        if CONTROL in means:
            control = f" With a constant in place of λ·KL they reach {_both(means[CONTROL])}."
        sentences.append(
            f"{began}; {ours['flip_rate']:.1%} of the people flip.{control} This is the best of many noisy "
            "checkpoints, and not the effect of the fairness term, whose expected gradient is 0."
        )
    return sentences


def _both(row: dict[Any, Any]) -> str:
    return f"accuracy {row['accuracy']:.4f}, discrimination {row['discrimination']:.4f}"


def theorem_in_words(study: Sequence[GradientCurve]) -> list[str]:
    """Return a sentence per run with recorded gradients: how fast the squared gradient norm fell."""
    return [
        f"{one['method']} on {one['dataset']}: over {one['step'][-1]:,.0f} steps the smallest squared "
        f"gradient norm fell to {one['smallest'][-1]:.1e} (slope {one['slope_of_smallest']:.2f} in "
        f"logarithms) and the mean to {one['mean'][-1]:.1e} (slope {one['slope_of_mean']:.2f}); "
        "the theorem says −1."
        for one in study
    ]


def _short(table: str) -> str:
    return TITLES[table].split(":")[0]


def _error(share: float, people: int) -> float:
    return float(1.96 * np.sqrt(share * (1 - share) / people))


def _by_chance(cell: dict[Any, Any], positive_rate: float, fact: Facts) -> float:
    if cell["metric"] == "accuracy":
        error = _error(cell["published"], fact.people)
    else:
        rate = min(max(positive_rate, 1 / fact.people), 1 - 1 / fact.people)
        error = float(np.sqrt(sum(_error(rate, size) ** 2 for size in fact.by_group if size)))
    over_seeds = (cell["high"] - cell["low"]) / 2 if np.isfinite(cell["low"]) else 0.0
    return max(float(np.sqrt(2)) * error, over_seeds)
