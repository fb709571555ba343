from __future__ import annotations

import pandas as pd

from evenhand.datasets import Dataset
from evenhand.protocol.compare import beside
from evenhand.protocol.findings import (
    Facts,
    agreement,
    constant_here,
    constant_in_the_paper,
    facts_of,
    lucky_checkpoints,
    theorem_in_words,
)
from evenhand.protocol.grids import CLOSE, CONTROL
from evenhand.protocol.measuring import METRICS

ADULT = Facts("adult", 15_060, (4_913, 10_147), 0.2457)


def row(method: str, accuracy: float, discrimination: float, positive_rate: float = 0.2) -> dict[str, object]:
    metrics = dict.fromkeys(METRICS, 0.5) | {"accuracy": accuracy, "discrimination": discrimination}
    return {"dataset": "adult", "method": method, "seed": 0, **metrics, "positive_rate": positive_rate}


def test_facts_are_of_the_test_part(dataset: Dataset) -> None:
    facts = facts_of(dataset, seed=0, split="random")
    assert facts.people == sum(facts.by_group) == 60
    assert facts.majority == max(facts.positive_share, 1 - facts.positive_share)


def test_the_published_constant_classifiers_are_found() -> None:
    (sentence,) = constant_in_the_paper([ADULT])
    assert "scores 0.7543 or 0.2457 here" in sentence
    wholly, nearly = sentence.split("nearly constant: ")
    assert "CCB (Table 1, accuracy 0.7544)" in wholly
    assert "LFR (Table 1, accuracy 0.7548)" in nearly
    assert "CCB (Table 2" not in sentence
    assert "LR" not in sentence
    assert constant_in_the_paper([Facts("adult", 15_060, (1, 1), 0.5)]) == []
    assert constant_in_the_paper([ADULT._replace(name="mine")]) == []


def test_constant_classifiers_of_this_run_are_named() -> None:
    best = pd.DataFrame([row("CCB", 0.75, 0, 0.002), row("LR", 0.85, 0.2)]).assign(criterion="delta")
    (sentence,) = constant_here(best)
    assert "CCB (99.8 %)" in sentence
    assert "LR" not in sentence


def test_agreement_is_within_chance() -> None:
    table = beside(
        pd.DataFrame([row("LR", 0.8390, 0.1870), row("CCB", 0.8000, 0.0005), row("ours", 0.8, 0.1)]),
        "table1_discrimination",
    )
    (sentence,) = agreement(table, "table1_discrimination", [ADULT])
    assert "agree: LR;" in sentence
    assert "differ: CCB (accuracy 0.800 against 0.754)." in sentence
    assert "ours" not in sentence
    assert agreement(table, "table1_discrimination", [ADULT._replace(name="german")]) == []


def test_the_theorem_in_words() -> None:
    study = {"method": "m", "dataset": "d", "step": [10.0, 2000.0], "smallest": [1, 1e-3], "mean": [1, 0.5]}
    (sentence,) = theorem_in_words([study | {"slope_of_smallest": -1.5, "slope_of_mean": -0.25}])
    assert "over 2,000 steps" in sentence
    assert "1.0e-03 (slope -1.50" in sentence
    assert "5.0e-01 (slope -0.25)" in sentence


def test_settings_found_afterwards_are_told_beside_table_2() -> None:
    said = [
        ("adult", "delta", 0.1),
        ("adult", "delta", 0.3),
        ("adult", "bounded", 0.9),
        ("other", "delta", 0.5),
    ]
    best = pd.DataFrame(
        [
            {**row(CLOSE, 0.81, 0.02), "dataset": name, "criterion": criterion, "flip_rate": flips}
            for name, criterion, flips in said
        ]
    )
    (sentence,) = lucky_checkpoints(best)
    assert "Table 2, adult: the published reward" in sentence
    assert (
        "accuracy 0.8100, discrimination 0.0200 (published: accuracy 0.8165, discrimination 0.0077); "
        "20.0% of the people flip. This is the best"
    ) in sentence
    control = pd.DataFrame([{**row(CONTROL, 0.82, 0.03), "criterion": "delta"}])
    (sentence,) = lucky_checkpoints(pd.concat([best, control]))
    assert "a constant in place of λ·KL they reach accuracy 0.8200, discrimination 0.0300. This" in sentence
    assert lucky_checkpoints(best.assign(method="CCB")) == []


def test_a_constant_classifier_is_not_called_a_lucky_checkpoint() -> None:
    best = pd.DataFrame([row(CLOSE, 0.75, 0, positive_rate=0.004)]).assign(criterion="delta")
    (sentence,) = lucky_checkpoints(best)
    assert sentence.endswith("with one answer for 99.6% of the people.")
    assert "checkpoints" not in sentence
