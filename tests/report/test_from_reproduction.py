from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from evenhand.datasets import Dataset
from evenhand.protocol.compare import Results
from evenhand.protocol.grids import CLOSE
from evenhand.protocol.reproduce import CRITERION_TABLES
from evenhand.report import read_summary, write_summary
from evenhand.report.from_reproduction import summary_of_reproduction
from evenhand.report.render import published_table, render
from evenhand.report.summarise import model_of
from evenhand.report.summary import check_summary

NAN = float("nan")


def _cells(method, dataset="german", **found):
    metrics = {
        "accuracy": (0.8, 0.5, 1.1),
        "discrimination": (0.1, -0.2, 0.4),
        "gap": (1.0, -1.0, 3.0),
    } | found
    rows = [[dataset, method, name, *values, NAN, NAN, 2] for name, values in metrics.items()]
    columns = ["dataset", "method", "metric", "ours", "low", "high", "published", "difference", "seeds"]
    return pd.DataFrame(rows, columns=columns)


def _results(**change):
    people = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
    german = Dataset("german", people, pd.Series(["good", "bad"], name="credit"), pd.DataFrame({"sex": ["f", "m"]}),
                     "good", source="a wheel", notes=["made up"])  # fmt: skip
    both = pd.concat([_cells("CCB"), _cells("CCB both")])
    tables = dict.fromkeys(CRITERION_TABLES.values(), both)
    tables["table3_submodels"] = pd.concat([_cells("Model 0"), _cells("Model 1"), _cells("Model 0", "adult")])
    tables["table5_education_gender"] = _cells("LR", "CS", accuracy=(0.5, NAN, NAN))
    options = {
        "datasets": [german],
        "tables": tables,
        "sentences": ["This run, german by delta: fine.", "This run, adult by delta: fine."],
        "curves": [{"dataset": "german", "method": "CCB", "step": [1, 2], "reward": [0.5, 1.5]}],
    }
    return Results("evenhand reproduce --seeds 2", 2, Path("results"), **options | change)


def test_it_is_a_whole_summary_that_is_read_back(tmp_path):
    summary = summary_of_reproduction(_results())
    assert check_summary(summary) is summary
    assert read_summary(write_summary(summary, tmp_path / "summary.json")) == summary
    assert (summary["kind"], summary["made"]["command"]) == ("reproduce", "evenhand reproduce --seeds 2")
    assert summary["made"]["seeds"] == [0, 1]
    assert summary["made"]["data"][0]["source"] == "a wheel"
    (study,) = summary["studies"]
    assert len(study["models"]) == 2 * 3
    chosen = [(model["name"], model["criterion"]) for model in study["models"] if model["chosen"]]
    assert chosen == [("CCB both", "delta")]
    assert [model["name"] for model in study["submodels"]] == ["Model 0", "Model 1"]
    assert {entry["method"] for entry in study["published"]} == {"LR", "Rawlsian", "LFR", "ALFR", "CCB"}
    assert study["convergence"][0]["series"] == {"accumulated reward": [0.5, 1.5]}
    assert study["notes"] == ["made up", "This run, german by delta: fine."]


def test_without_a_public_data_set_the_students_are_still_there():
    summary = summary_of_reproduction(_results(datasets=[]))
    assert summary["studies"] == []
    assert "Table 5" in render(summary)


def test_intervals_stay_within_what_is_possible_and_delta_is_added():
    study = summary_of_reproduction(_results())["studies"][0]
    metrics = study["models"][0]["metrics"]
    assert (metrics["accuracy"]["low"], metrics["accuracy"]["high"]) == (0.5, 1.0)
    assert metrics["discrimination"]["low"] == 0.0
    assert metrics["gap"] == {"value": 1.0, "low": 0.0, "high": 3.0}
    assert metrics["delta"]["value"] == pytest.approx(0.7)


def test_published_numbers_stand_beside_ours():
    summary = summary_of_reproduction(_results())
    rows = published_table(summary["studies"][0])
    by_method = {(row["method"], row["criterion"]): row for row in rows}
    assert by_method["CCB", "delta"]["ours"]["accuracy"]["value"] == 0.8
    assert by_method["LFR", "delta"]["ours"] == {}
    page = render(summary)
    assert f"{by_method['CCB', 'delta']['metrics']['accuracy']['value']:.4f}" in page
    assert "Table 5" in page
    assert "evenhand reproduce --seeds 2" in page


def test_what_the_authors_ran_stands_beside_their_row_too():
    both = pd.concat([_cells("CCB"), _cells(CLOSE, accuracy=(0.7, 0.6, 0.8)), _cells("CCB both")])
    study = summary_of_reproduction(_results(tables=dict.fromkeys(CRITERION_TABLES.values(), both)))[
        "studies"
    ][0]
    rows = [row for row in published_table(study) if row["criterion"] == "delta"]
    assert [row["method"] for row in rows] == ["LR", "Rawlsian", "LFR", "ALFR", "CCB", CLOSE]
    assert rows[-1]["ours"]["accuracy"]["value"] == 0.7
    assert rows[-1]["metrics"] == rows[-2]["metrics"]
    assert len(study["published"]) == 10  # the figure shows each published number once


def test_a_path_along_lambda_adds_the_slider_groups_and_people():
    path = [
        model_of(f"λ = {w}", {"accuracy": {"value": 0.5}}, family="bandits", divergence_weight=w)
        for w in (0, 1)
    ]
    detail = {"models": [*path, model_of("blind", {})], "groups": [], "persons": None, "published_reward": None,
              "decided_by": "λ = 1"}  # fmt: skip
    study = summary_of_reproduction(_results(), {"german": detail})["studies"][0]
    assert [m["divergence_weight"] for m in study["models"]] == [*[None] * 6, 0, 1]
    assert study["models"][6]["family"] == "bandits, along λ"
    assert study["models"][6]["name"] == "λ = 0 (seed 0)"
    assert study["decided_by"] == "λ = 1"


def test_headline_ring_groups_and_people_are_of_the_model_chosen_on_validation(tmp_path):
    metrics = {"accuracy": {"value": 0.5}, "discrimination": {"value": 0.2}}
    path = [
        model_of(f"λ = {w}", metrics, family="bandits", divergence_weight=w, chosen=w == 1) for w in (0, 1)
    ]
    detail = {"models": path, "groups": [{"group": "f", "people": 2}], "persons": None,
              "published_reward": None, "decided_by": "λ = 1"}  # fmt: skip
    summary = summary_of_reproduction(_results(), {"german": detail})
    study = summary["studies"][0]
    assert [model["name"] for model in study["models"] if model["chosen"]] == ["λ = 1 (seed 0)"]
    assert study["sentence"].startswith("“λ = 1 (seed 0)”")
    page = render(summary).split("<script type")[0]
    assert page.count("chosen on the validation part") == 1
    assert "It was chosen on the validation part" in page  # the sentence before names it
