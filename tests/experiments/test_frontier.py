"""The tables behind the README, against cases worked out by hand."""

from __future__ import annotations

import importlib
import json

import numpy as np
import pandas as pd
import pytest

from evenhand.datasets import Dataset

SEEDS = range(4)


@pytest.fixture
def frontier(monkeypatch):
    found = importlib.import_module("frontier")
    monkeypatch.setattr(found, "people_of", lambda name: PEOPLE)
    return found


@pytest.fixture
def tables(monkeypatch):
    found = importlib.import_module("frontier_tables")
    monkeypatch.setattr(found, "people_of", lambda name: PEOPLE)
    return found


def _people(n=1000):
    labels = pd.Series(np.where(np.arange(n) % 10 < 7, "good", "bad"), name="credit")
    sexes = pd.DataFrame({"sex": np.where(np.arange(n) % 4 == 0, "f", "m")})
    return Dataset("german", pd.DataFrame({"age": np.arange(n)}), labels, sexes, pos_label="good")


PEOPLE = _people()


def _row(
    method, seed, accuracy, discrimination, *, seen=None, criterion="delta", rate=0.5, flips=0.0, **point
):
    validation = {"accuracy": accuracy, "discrimination": discrimination} if seen is None else seen
    validation = {"positive_rate": rate, "flip_rate": flips, **validation}
    return {
        "dataset": "german", "seed": seed, "method": method, "parameters": json.dumps(point), "criterion": criterion,
        **{f"validation_{name}": value for name, value in validation.items()},
        "accuracy": accuracy, "discrimination": discrimination, "delta": accuracy - discrimination,
        "positive_rate": rate, "flip_rate": flips, "auc": 0.8, "balanced_accuracy": 0.7,
    }  # fmt: skip


def _table(ours, theirs):
    """Ours and OxonFair as told, the others at a delta of 0.4."""
    rows = []
    for seed in SEEDS:
        rows += [_row("CCB parity", seed, ours[seed], 0.1), _row("OxonFair", seed, theirs[seed], 0.1)]
        rows += [
            _row(name, seed, 0.5, 0.1) for name in ("fairlearn", "LFR", "ALFR", "Rawlsian", "LR unaware")
        ]
    return pd.DataFrame(rows)


def test_a_front_is_what_no_other_point_beats(tables):
    points = np.array([[0.7, 0.9], [0.8, 0.5], [0.7, 0.8], [0.6, 0.9], [0.6, 1.0], [0.75, 0.4]])
    assert tables.front(points).tolist() == [[0.6, 1.0], [0.7, 0.9], [0.8, 0.5]]


def test_the_area_is_the_union_of_the_rectangles(tables):
    points = np.array([[0.8, 0.5], [0.6, 1.0], [0.7, 0.4]])
    assert tables.hypervolume(points) == pytest.approx(0.6 * 1.0 + 0.2 * 0.5)
    assert tables.hypervolume(points[:1]) == pytest.approx(0.4)


def test_areas_of_validations_front_are_measured_on_test(tables):
    # On validation the first point beats the second, on test it is the other way round.
    rows = []
    for seed in SEEDS:
        for name in ("CCB x", "OxonFair", "fairlearn", "LFR", "ALFR", "Rawlsian", "LR unaware"):
            better = 0.1 if name == "CCB x" else 0.0
            rows += [
                _row(name, seed, 0.5 + better, 0.5, seen={"accuracy": 0.9, "discrimination": 0.0}, at=1),
                _row(name, seed, 0.8, 0.2, seen={"accuracy": 0.4, "discrimination": 0.1}, at=2),
            ]
    found = tables.areas(pd.DataFrame(rows)).groupby(["points", "method"]).area.mean()
    assert found["front of validation", "ours"] == pytest.approx(100 * 0.6 * 0.5)
    assert found["front of validation", "LFR"] == pytest.approx(100 * 0.5 * 0.5)
    assert found["all points", "LFR"] == pytest.approx(100 * 0.8 * 0.8)
    gaps = tables.hypervolume_gaps(tables.areas(pd.DataFrame(rows))).set_index(["points", "ours less"])
    assert gaps.loc[("front of validation", "LFR"), "german"] == "5.0000 ± 0.0000"
    assert gaps.loc[("all points", "OxonFair"), "german"] == "0.0000 ± 0.0000"


@pytest.mark.parametrize(
    ("ours", "theirs", "seen", "wins"),
    [
        ([0.80, 0.81, 0.80, 0.81], [0.70, 0.71, 0.70, 0.71], "ahead", "4 of 4"),
        ([0.70, 0.71, 0.70, 0.71], [0.80, 0.81, 0.80, 0.81], "behind", "0 of 4"),
        ([0.90, 0.60, 0.90, 0.60], [0.75, 0.75, 0.75, 0.75], "not told apart", "2 of 4"),
    ],
)
def test_methods_are_compared_split_by_split(tables, ours, theirs, seen, wins):
    row = tables.paired_table(_table(ours, theirs)).set_index("ours less").loc["OxonFair"]
    assert (row["ours is"], row["ahead on"]) == (seen, wins)
    assert float(row["difference"].split(" ")[0]) == pytest.approx(np.mean(ours) - np.mean(theirs), abs=1e-4)


def test_bold_are_the_best_and_what_is_not_told_apart_from_it(tables):
    none = pd.DataFrame(columns=["dataset", "accuracy", "discrimination"])
    clear = tables.delta_table(_table([0.70, 0.71, 0.70, 0.71], [0.9, 0.91, 0.9, 0.91]), none)
    assert clear[clear.best].method.tolist() == ["OxonFair"]
    close = tables.delta_table(_table([0.91, 0.89, 0.91, 0.89], [0.9, 0.9, 0.9, 0.9]), none)
    assert set(close[close.best].method) == {"ours", "OxonFair"}


def test_deciding_everybody_alike_stands_beside_the_methods(tables):
    table = _table([0.8] * 4, [0.7] * 4)
    alike = tables.by_delta(table)[tables.ALIKE]
    assert alike.seed.tolist() == list(SEEDS)
    assert (alike.positive_rate == 1).all()
    assert alike.accuracy.mean() == pytest.approx(0.7, abs=0.05)  # as many labels are 'good'
    assert (alike.delta == alike.accuracy).all()
    assert tables.ALIKE in set(tables.paired_table(table)["ours less"])


def test_choices_are_made_on_validation_and_a_constant_comes_last(tables):
    rows = [
        _row(
            "CCB parity", 0, 0.6, 0.0, seen={"accuracy": 0.9, "discrimination": 0.0}, at="good on validation"
        ),
        _row("CCB parity", 0, 0.9, 0.0, seen={"accuracy": 0.6, "discrimination": 0.0}, at="good on test"),
        _row("CCB parity", 0, 0.99, 0.0, rate=1.0, at="constant"),
    ]
    best = tables.chosen(pd.DataFrame(rows), ["CCB parity"], tables.DELTA.rank)
    assert json.loads(best.parameters.iloc[0])["at"] == "good on validation"
    best = tables.chosen(pd.DataFrame(rows[2:]), ["CCB parity"], tables.DELTA.rank)
    assert json.loads(best.parameters.iloc[0])["at"] == "constant"


def test_bounds_count_sampling_error_at_the_rate_of_the_decisions(tables):
    # 150 people in a test part, 37.5 and 112.5 by group; half of them decided positively.
    error = 1.645 * np.sqrt(0.5 * 0.5 * (1 / 37.5 + 1 / 112.5))
    seen = {"accuracy": 0.8, "discrimination": 0.01, "flip_rate": 0.0}
    on_test = [0.01, 0.02 + 0.9 * error, 0.02 + 1.1 * error, 0.5]
    rows = [
        _row("CCB trade-off", seed, 0.8, found, seen=seen, criterion="accuracy", bound=0.02)
        for seed, found in zip(SEEDS, on_test, strict=True)
    ]
    # Trained for a looser bound, or for none: not asked, however accurate.
    other = {**seen, "accuracy": 0.99}
    rows += [
        _row("CCB trade-off", seed, 0.99, 0.9, seen=other, criterion="accuracy", bound=0.1) for seed in SEEDS
    ]
    rows += [
        _row("CCB trade-off", seed, 0.99, 0.9, seen=other, criterion="accuracy", bound=None) for seed in SEEDS
    ]
    rows += [_row("CCB individual", seed, 0.8, 0.1, seen=seen, criterion="accuracy") for seed in SEEDS]
    table = tables.bounds_table(pd.DataFrame(rows)).set_index(["bound on", "bound"])
    row = table.loc[("discrimination", 0.02)]
    assert (row["met"], row["met exactly"]) == ("2 of 4", "1 of 4")
    assert float(row["sampling error"]) == pytest.approx(error, abs=1e-4)


def test_the_floor_is_what_blind_decisions_show(tables):
    floor = tables.floor_table(_table([0.8] * 4, [0.7] * 4)).set_index("as many positive decisions as")
    random = np.random.default_rng(0)
    groups = (PEOPLE.sensitive_features.to_numpy() == "f")[:150]
    shown = []
    for _ in range(4000):
        yes = random.random(150) < 0.5
        shown.append(abs(yes[groups].mean() - yes[~groups].mean()))
    assert float(floor.loc["ours", "discrimination by chance"]) == pytest.approx(np.mean(shown), rel=0.05)


def test_old_trials_are_not_mixed_in(frontier):
    with pytest.raises(SystemExit, match="lacks"):
        frontier.check_whole(_table([0.8] * 4, [0.7] * 4), ["german"], SEEDS)


def test_what_a_kind_of_fairness_costs_is_told_split_by_split(tables):
    kinds = {"CCB free": 0.8, "LR unaware": 0.7, "CCB individual": 0.79, "CCB both": 0.75}
    rows = [
        _row(method, seed, accuracy + seed / 100, 0.005, criterion="accuracy")
        for method, accuracy in kinds.items()
        for seed in SEEDS
    ]
    told = tables.cost_gaps(pd.DataFrame(rows)).set_index(["accuracy of", "less"])["german"]
    # Splits differ by more than the kinds do, which the pairs do not see.
    assert told["individual", "no fairness (λ = 0)"] == "-0.0100 ± 0.0000"
    assert told["both", "LR without the group"] == "0.0500 ± 0.0000"


def test_draws_that_differ_and_seconds_stand_beside_delta(tables):
    rows = _table([0.8] * 4, [0.7] * 4).assign(seconds=1.25, draws_differ=0.0)
    rows.loc[rows.method == "fairlearn", "draws_differ"] = 0.125
    table = tables.delta_table(rows, pd.DataFrame()).set_index("method")
    assert table.loc["fairlearn", ["draws that differ", "seconds", "AUC"]].tolist() == ["12.50%", "1.2", ""]
    assert table.loc["OxonFair", ["draws that differ", "seconds"]].tolist() == ["", "1.2"]


def test_every_competitor_is_a_method(frontier, tables):
    names = [method.name for method in frontier.methods()]
    assert len(names) == len(set(names))
    assert {*tables.COMPETITORS, *tables.UNAWARE, *tables.DRAWN} <= set(names)
