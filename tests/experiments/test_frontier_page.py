from __future__ import annotations

import importlib
import json

import pandas as pd
import pytest

from evenhand.report.render import render
from factories import make_dataset

SEEDS = 4


@pytest.fixture(scope="module")
def page():
    return importlib.import_module("frontier_page")


@pytest.fixture(scope="module")
def words():
    return importlib.import_module("frontier_words")


@pytest.fixture(scope="module")
def dataset():
    return make_dataset(200, name="german")


def _trial(method, seed, criterion, accuracy, discrimination, point, positive_rate=0.6):
    scores = {
        "accuracy": accuracy, "discrimination": discrimination, "positive_rate": positive_rate, "flip_rate": 0.02,
        "delta": accuracy - discrimination,
    }  # fmt: skip
    more = {"consistency": 0.9, "balanced_accuracy": accuracy, "auc": accuracy, "gap": 0.1}
    return {
        "dataset": "german", "seed": seed, "method": method, "parameters": json.dumps(point), "criterion": criterion,
        **{f"validation_{name}": value for name, value in scores.items()}, **scores, **more,
    }  # fmt: skip


@pytest.fixture(scope="module")
def tables(page):
    """Ours above LFR on every split; fairlearn hardly below ours on average; LR more accurate than all."""
    trials = []
    for seed in range(SEEDS):
        noise = 0.001 * seed
        for criterion in ("delta", "accuracy"):
            trials += [
                _trial("CCB parity", seed, criterion, 0.80 + noise, 0.02, {"divergence_weight": 1.0}),
                _trial("CCB trade-off", seed, criterion, 0.82, 0.08, {"bound": 0.1}),
                _trial("LFR", seed, criterion, 0.75 + 2 * noise, 0.03, {"n_prototypes": 10}),
                _trial(
                    "LFR", seed, criterion, 0.70 + 0.01 * (criterion == "delta"), 0.05, {"n_prototypes": 50}
                ),
                _trial("fairlearn", seed, criterion, 0.80 + 0.0025 - noise, 0.02, {"difference_bound": 0.1}),
                _trial("LR unaware", seed, criterion, 0.85 - noise / 2, 0.2, {"C": 1.0}),
                _trial("LR unaware", seed, criterion, 0.70, 0.0, {"C": 9.0}, positive_rate=1.0),
            ]
    table = pd.DataFrame(trials)
    choosing = importlib.import_module("choosing")
    paper = pd.DataFrame([{"dataset": "german", "accuracy": 0.7, "discrimination": 0.0423}])
    at_delta = table[table.method != "CCB trade-off"]
    rows = []
    for name, method in page.METHODS.items():
        if (at_delta.method == method).any():
            best = choosing.chosen(at_delta[at_delta.criterion == "delta"], [method], choosing.DELTA.rank)
            rows.append({"method": name, "dataset": "german", "delta": choosing.interval(best.delta), "mean": best.delta.mean()})  # fmt: skip
    rows.append(
        {"method": "published CCB", "dataset": "german", "delta": "0.6577", "mean": paper.accuracy[0]}
    )
    cost = pd.DataFrame(
        [
            {"kind": "no fairness (λ = 0)", "accuracy": "0.8300 ± 0.0100", "discrimination": "0.1000 ± 0.0100", "flip_rate": "0.1000 ± 0.0100"},
            {"kind": "both", "accuracy": "0.8000 ± 0.0100", "discrimination": "0.0050 ± 0.0100", "flip_rate": "0.0300 ± 0.0100"},
        ]
    ).assign(dataset="german")  # fmt: skip
    areas = pd.DataFrame(
        {
            "points": ["front of validation"] * 2 + ["all points"] * 2,
            "method": ["ours", "LFR"] * 2,
            "german": ["2.0 ± 0.1", "1.0 ± 0.1", "2.0 ± 0.1", "3.0 ± 0.1"],
        }
    )
    bounds = pd.DataFrame(
        {
            "bound on": ["discrimination"] * 2, "bound": [0.02, 0.1], "dataset": "german", "on test": ["0.0300 ± 0.01", "0.0500 ± 0.01"],
            "accuracy": "0.8 ± 0.1", "sampling error": ["0.0500", "0.0500"], "met": ["3 of 4", "4 of 4"],
        }
    )  # fmt: skip
    return page.Tables(table, pd.DataFrame(rows), cost, areas, bounds)


@pytest.fixture(scope="module")
def choices(page, tables):
    return page.choices_of(tables, "german")


@pytest.fixture(scope="module")
def summary(page, tables, dataset):
    return page.summary(tables, [dataset], "python experiments/frontier_page.py")


def test_the_page_is_made_of_the_tables(summary, tables):
    study = summary["studies"][0]
    assert [model["name"] for model in study["models"]] == ["ours", "fairlearn", "LFR", "LR unaware"]
    ours = study["models"][0]["metrics"]["accuracy"]
    assert ours["value"] == pytest.approx(0.8015)
    assert ours["low"] < 0.8015 < ours["high"]
    assert study["published"][0]["metrics"]["delta"]["value"] == pytest.approx(0.70 - 0.0423)
    assert [table["title"] for table in study["tables"]] == [
        "What each kind of fairness costs",
        "The whole front, as an area",
        "Does a bound hold?",
    ]
    assert study["tables"][1]["rows"] == [
        ["ours", "2.0 ± 0.1", "2.0 ± 0.1"],
        ["LFR", "1.0 ± 0.1", "3.0 ± 0.1"],
    ]
    assert "Does a bound hold?" in render(summary)


def test_the_overview_counts_splits_and_grid_points(summary, page):
    notes = " ".join(summary["overview"]["notes"])
    assert "German 4." in notes
    assert "Grid points: ours 2, fairlearn 1, LFR 2 and LR unaware 2. Of ours, delta chooses from 1;" in notes
    assert summary["overview"]["tables"][0]["rows"][-1] == ["published CCB", "0.6577"]
    assert page.span(pd.Series([2, 4])) == "2–4"


def test_grid_points_are_means_over_splits_once_each_and_constants_are_left_out(summary):
    study = summary["studies"][0]
    names = [(point["family"], point["name"]) for point in study["points"]]
    assert names == [
        ("ours", "CCB parity: divergence weight 1.0"),
        ("ours", "CCB trade-off: bound 0.1"),
        ("fairlearn", "fairlearn: difference bound 0.1"),
        ("LFR", "LFR: n prototypes 10"),
        ("LFR", "LFR: n prototypes 50, checkpoint by delta"),
        ("LFR", "LFR: n prototypes 50, checkpoint by accuracy"),
        ("LR unaware", "LR unaware: C 1.0"),
    ]
    assert study["points"][0]["metrics"]["accuracy"]["value"] == pytest.approx(0.8015)
    assert (
        "The figure leaves out grid points that decide all people alike on most splits: 1." in study["notes"]
    )


def test_a_grid_point_that_was_not_tried_on_every_split_is_left_out(page, tables):
    trials = tables.trials
    some = trials[(trials.method != "CCB trade-off") | (trials.seed == 0)]
    points, left_out = page.grid_points(some)
    assert "CCB trade-off" not in {point["method"] for point in points}
    assert left_out[page.UNFINISHED] == 1


def test_tables_that_are_older_than_the_trials_are_refused(page, tables):
    stale = tables.delta.assign(mean=tables.delta["mean"] + 0.01)
    with pytest.raises(SystemExit, match="make the tables again with .*--tables"):
        page.choices_of(
            page.Tables(tables.trials, stale, tables.cost, tables.hypervolume, tables.bounds), "german"
        )


def test_bounds_of_an_older_shape_are_refused(page, tables, tmp_path):
    for name in page.Tables.__annotations__:
        getattr(tables, name).drop(columns="bound on", errors="ignore").to_csv(tmp_path / f"{name}.csv")
    with pytest.raises(SystemExit, match="no column 'bound on': make the tables again"):
        page.Tables.read(tmp_path)


def test_a_folder_without_results_says_what_to_run(page, tmp_path):
    with pytest.raises(SystemExit, match=r"no trials.csv; run `python experiments/frontier.py` first"):
        page.Tables.read(tmp_path)


def test_differences_are_paired_and_chance_is_named(choices, words):
    text = words.against_each(choices)
    above, _, rest = text.partition("; ")
    assert "above LFR (+0.0585" in above
    assert "LR unaware" in above
    assert rest.startswith("not to be told from fairlearn (+0.0005")
    assert "this may be chance" in words.verdict(choices, "fairlearn")
    assert "chance does not explain it" in words.verdict(choices, "LFR")


def test_where_another_method_is_better_it_is_said(choices, words):
    text = words.where_others_do_better(choices)
    assert "Accuracy: LR unaware 0.8492 (ours 0.8015)" in text
    assert "LFR" not in text
    turned = {"ours": choices["LFR"], "LFR": choices["ours"]}
    assert words.headline(turned).startswith("LFR has the highest delta of 2 methods: 0.7815")
    assert "ours is number 2 with 0.7230" in words.headline(turned)
    assert "below LFR (−0.0585" in words.against_each(turned)
    assert words.over_all({"A": turned}).endswith("By more than chance below: LFR on A.")
    assert "none of the 1 data sets" in words.over_all({"A": turned})
    assert "all of the 1 data sets" in words.over_all({"A": {"ours": choices["ours"], "LFR": choices["LFR"]}})


def test_a_constant_classifier_is_the_least_to_beat(choices, words):
    seeds = choices["ours"].index
    low = words.beside_a_constant(choices, pd.Series(0.25, index=seeds))
    assert (
        "a delta of 0.7500 on the same test parts. By more than chance above it: ours and fairlearn." in low
    )
    assert "No method is above it" in words.beside_a_constant(choices, pd.Series(0.9, index=seeds))


def test_what_was_asked_for_and_not_kept_is_said(tables, words):
    cost = words.costs(tables.cost)
    assert "Both kinds: accuracy −0.0300; on test discrimination 0.0050, within the 0.0100" in cost
    assert "flip rate 3.0\N{NO-BREAK SPACE}%, not within the 0.5\N{NO-BREAK SPACE}%" in cost
    bounds = words.bounds(tables.bounds)
    assert "0.02 on 3 of 4 splits (its mean there, 0.0300, is above it) and 0.1 on 4 of 4 splits" in bounds
    assert "larger than the bound for 0.02 on discrimination: there" in bounds
    areas = words.areas(tables.hypervolume, "german")
    assert (
        "front of validation, ours (2.0 ± 0.1; LFR 1.0 ± 0.1); all points, LFR (3.0 ± 0.1; ours 2.0 ± 0.1)"
        in areas
    )


def test_one_split_has_no_interval(words):
    assert words.measured(pd.Series([0.5]), "accuracy") == {"value": 0.5, "low": None, "high": None}
    assert words.measured(pd.Series([0.0, 0.1]), "accuracy")["low"] == 0.0
    one = {name: pd.DataFrame({"delta": [value]}, index=[0]) for name, value in (("ours", 0.5), ("LFR", 0.4))}
    assert words.headline(one).endswith("one split tells nothing about chance.")


def test_the_script_writes_both_files(page, tables, dataset, tmp_path, monkeypatch, capsys):
    for name in page.Tables.__annotations__:
        getattr(tables, name).to_csv(tmp_path / f"{name}.csv", index=False)
    monkeypatch.setattr(page, "load", lambda name, rows: dataset)
    monkeypatch.setattr("sys.argv", ["frontier_page.py", "--out", str(tmp_path)])
    page.main()
    assert (tmp_path / "report.html").stat().st_size > 100_000
    assert json.loads((tmp_path / "summary.json").read_text())["kind"] == "compare"
    assert "report.html" in capsys.readouterr().out
