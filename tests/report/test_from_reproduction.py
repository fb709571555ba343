from __future__ import annotations

from evenhand.report.from_reproduction import summary_of_reproduction
from evenhand.report.render import published_table, render
from evenhand.report.summarise import model_of


def _results():
    found = {
        "accuracy": {"value": 0.8, "low": 0.5, "high": 1.1},
        "discrimination": {"value": 0.1, "low": -0.2, "high": 0.4},
        "gap": {"value": 1.0, "low": -1.0, "high": 3.0},
    }
    study = {
        "name": "german", "label": "credit", "pos_label": "good", "sensitive": "sex", "people": 1000,
        "models": [model_of("CCB", found, criterion="delta", chosen=True)], "submodels": [], "notes": [],
        "published": [{"method": "CCB", "criterion": "delta", "metrics": {"accuracy": {"value": 0.7}}},
                      {"method": "LFR", "criterion": "delta", "metrics": {"accuracy": {"value": 0.6}}}],
        "convergence": [],
    }  # fmt: skip
    row = {"dataset": "CS", "method": "LR", "metric": "accuracy", "ours": 0.5, "low": None, "high": None}
    return {
        "settings": {"seeds": 2}, "command": "evenhand reproduce --seeds 2", "studies": [study],
        "versions": {"evenhand": "1", "code": "abcdef", "python": "3", "machine": "m", "numpy": "2"},
        "datasets": [{"name": "german", "people": 1000, "fingerprint": "0", "source": "a wheel"}],
        "tables": {"table5_education_gender": {"title": "Table 5", "rows": [row]}},
    }  # fmt: skip


def test_intervals_stay_within_what_is_possible_and_delta_is_added():
    study = summary_of_reproduction(_results())["studies"][0]
    metrics = study["models"][0]["metrics"]
    assert (metrics["accuracy"]["low"], metrics["accuracy"]["high"]) == (0.5, 1.0)
    assert metrics["discrimination"]["low"] == 0.0
    assert metrics["gap"] == {"value": 1.0, "low": 0.0, "high": 3.0}
    assert metrics["delta"]["value"] == 0.8 - 0.1


def test_published_numbers_stand_beside_ours():
    summary = summary_of_reproduction(_results())
    rows = published_table(summary["studies"][0])
    assert rows[0]["ours"]["accuracy"]["value"] == 0.8
    assert rows[1]["ours"] == {}
    page = render(summary)
    assert "0.7000" in page
    assert "Table 5" in page
    assert "evenhand reproduce --seeds 2" in page


def test_a_path_along_lambda_adds_the_slider_groups_and_people():
    path = [
        model_of(f"λ = {w}", {"accuracy": {"value": 0.5}}, family="bandits", divergence_weight=w)
        for w in (0, 1)
    ]
    detail = {"models": [*path, model_of("blind", {})], "groups": [], "persons": None, "published_reward": None,
              "decided_by": "λ = 1"}  # fmt: skip
    study = summary_of_reproduction(_results(), {"german": detail})["studies"][0]
    assert [m["divergence_weight"] for m in study["models"]] == [None, 0, 1]
    assert study["models"][1]["family"] == "bandits, along λ"
    assert study["decided_by"] == "λ = 1"
