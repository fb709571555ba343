from __future__ import annotations

import hashlib
import json
import shutil

import numpy as np
import pandas as pd
import pytest

from evenhand import CooperativeBandits, load
from evenhand.report import read_summary
from evenhand.tables import load_table
from evenhand.workflow import candidates
from evenhand.workflow.defaults import WEIGHTS
from evenhand.workflow.deployed import Deployed
from factories import FIT, evenhand, make_people


def test_it_shows_the_trade_off_and_the_chosen_model_with_intervals(fitted):
    shown = fitted.result.stdout
    for text in ("λ = 0", "λ = 3, with parity", "flip rate", "Chosen:", "95 % interval", "model.skops"):
        assert text in shown


def test_the_chosen_row_is_marked_without_colours_and_its_price_is_told(fitted, tmp_path):
    out = evenhand("fit", fitted.people, "-o", tmp_path / "m.skops", *FIT, "--criterion", "discrimination")
    table, _, rest = out.stdout.partition("Chosen: ")
    (marked,) = [line for line in table.splitlines() if line.startswith("* ")]
    assert marked.removeprefix("* ").startswith(rest.partition(" (test part)")[0])
    assert "Compared with the most accurate model with a policy per group (" in table
    out = evenhand("fit", fitted.people, "-o", tmp_path / "m.skops", *FIT, "--criterion", "accuracy")
    assert "Compared with" not in out.stdout


def test_guesses_are_told_also_where_nobody_sits_at_a_terminal(fitted, tmp_path):
    out = evenhand("fit", fitted.people, "-o", tmp_path / "m.skops", *FIT)
    for said in (
        "label 'hired' = 'yes'",
        "Guessed that 'hired' is the label.",
        "Guessed that 'sex' is the sensitive",
    ):
        assert said in out.stderr
        assert said not in out.stdout
    assert "Training" not in out.output  # the bar


def test_the_model_file_knows_its_columns_and_its_preprocessing(fitted):
    model = load(fitted.model)
    assert isinstance(model, Deployed)
    assert model.columns == {"skill": "number", "born": "%d.%m.%Y", "job": "category", "branch": "category"}
    assert (model.label, model.sensitive, model.pos_label) == ("hired", ["sex"], "yes")
    assert model.groups_.tolist() == ["f", "m"]


def test_the_card_says_data_seed_metrics_and_limits(fitted):
    text = fitted.model.with_suffix(".card.md").read_text(encoding="utf-8")
    for wanted in ("sha256", "400", "seed: 0", "| accuracy |", "## Limits of use", "f 179, m 221", "born"):
        assert wanted in text
    card = json.loads(fitted.model.with_suffix(".card.json").read_text(encoding="utf-8"))
    assert card["metrics"]["accuracy"]["low"] < card["metrics"]["accuracy"]["high"]
    assert load(fitted.model).card == card


def test_sha256_is_the_files_own_and_the_tables_is_called_fingerprint(fitted, tmp_path):
    card = json.loads(fitted.model.with_suffix(".card.json").read_text(encoding="utf-8"))["data"]
    assert card["source"] == str(fitted.people)
    assert card["sha256"] == hashlib.sha256(fitted.people.read_bytes()).hexdigest()
    assert card["fingerprint"] == load_table(fitted.people, categorical="branch").fingerprint
    told = [read_summary(fitted.summary)]
    for asked in (("--model", fitted.model), ("--predictions", "hired", "--sensitive", "sex")):
        evenhand("audit", fitted.people, *asked, "--summary", tmp_path / "a.json")
        told.append(read_summary(tmp_path / "a.json"))
    assert {whole["made"]["data"][0]["sha256"] for whole in told} == {card["sha256"]}


def test_test_numbers_are_those_of_the_saved_model_on_the_test_people(fitted):
    study = read_summary(fitted.summary)["studies"][0]
    model = load(fitted.model)
    people = pd.read_csv(fitted.people)
    rows = [row["person"] - 1 for row in study["persons"]["rows"]]
    assert len(set(rows)) == len(rows) == study["persons"]["people"] == 60
    decided = model.decide(people.iloc[rows])
    chosen = next(m for m in study["models"] if m["chosen"])["metrics"]
    right = np.mean(decided.decision == people["hired"].to_numpy()[rows])
    assert chosen["accuracy"]["value"] == right
    assert chosen["flip_rate"]["value"] == decided.would_flip.mean()


def test_people_are_named_by_their_rows_in_the_file(fitted, tmp_path):
    people = pd.read_csv(fitted.people)
    people.loc[:40, "hired"] = None
    people.loc[50:60, "sex"] = None
    people.to_csv(tmp_path / "p.csv", index=False)
    evenhand("fit", tmp_path / "p.csv", "--label", "hired", "--sensitive", "sex", "-o", tmp_path / "m.skops",
             *FIT, "--summary", tmp_path / "s.json")  # fmt: skip
    study = read_summary(tmp_path / "s.json")["studies"][0]
    at = study["persons"]["columns"].index("skill")
    for row in study["persons"]["rows"]:
        person = people.iloc[row["person"] - 1]
        assert (row["group"], row["label"]) == (person["sex"], person["hired"])
        assert np.array_equal(row["features"][at] or 0.0, np.nan_to_num(person["skill"]))
    assert any("their row in the file" in note for note in study["notes"])


def test_json_is_one_document_and_nothing_else(fitted, tmp_path):
    out = evenhand("fit", fitted.people, "--label", "hired", "--sensitive", "sex", "-o", tmp_path / "m.skops",
                   *FIT, "--json")  # fmt: skip
    document = json.loads(out.stdout)
    assert document["chosen"].startswith("λ = ")
    assert len(document["models"]) == 4
    assert document["written"]["model"] == str(tmp_path / "m.skops")
    assert out.stderr == ""


def test_same_seed_same_numbers(fitted, tmp_path):
    runs = [
        json.loads(evenhand("fit", fitted.people, "-o", tmp_path / f"{i}.skops", *FIT, "--json").stdout)
        for i in range(2)
    ]
    assert runs[0]["models"] == runs[1]["models"]
    assert runs[0]["test"] == runs[1]["test"]
    assert "Guessed that 'hired' is the label." in runs[0]["notes"]


def test_bounds_that_nobody_keeps_fail_with_the_nearest_and_write_nothing(fitted, tmp_path):
    out = evenhand("fit", fitted.people, "-o", tmp_path / "m.skops", *FIT, "--max-discrimination", "0",
                   "--max-flip", "0", code=1)  # fmt: skip
    assert "No model kept discrimination ≤ 0 and flip rate ≤ 0" in out.stderr
    assert "the nearest is λ = " in out.stderr
    assert "What fairness costs (validation part)" in out.stdout
    assert "λ = 3, with parity" in out.stdout
    assert not (tmp_path / "m.skops").exists()
    out = evenhand("fit", fitted.people, "-o", tmp_path / "m.skops", *FIT, "--max-discrimination", "0",
                   "--max-flip", "0", "--json", code=1)  # fmt: skip
    document = json.loads(out.stdout)
    assert document["chosen"] is None
    assert len(document["models"]) == 4


def test_bounds_and_whether_the_test_part_keeps_them_are_told_everywhere(fitted, tmp_path):
    told = json.loads(fit_within(fitted, tmp_path, 1.0, "--json").stdout)
    values = {model["name"]: model["validation"]["discrimination"]["value"] for model in told["models"]}
    measured = told["test"]["discrimination"]["value"]
    assert told["bounds"] == {"discrimination": 1.0}
    assert not any("was not kept" in note for note in told["notes"])
    # A bound between the two values of the model that is chosen without one: kept here, broken there.
    kept = values[told["chosen"]]
    assert kept < measured
    bound = (kept + measured) / 2
    out = fit_within(fitted, tmp_path, bound)
    text = (tmp_path / "m.card.md").read_text(encoding="utf-8")
    card = json.loads((tmp_path / "m.card.json").read_text(encoding="utf-8"))
    study = read_summary(tmp_path / "s.json")["studies"][0]
    wanted = f"On the test part the bound was not kept: discrimination {card['metrics']['discrimination']['value']:.4f}"
    assert wanted in out.stderr
    assert wanted in text
    assert any(wanted in note for note in study["notes"])
    assert f"Kept on the validation part, as asked: discrimination ≤ {bound:g}." in text
    assert card["validation"]["discrimination"]["value"] <= bound
    assert f"| discrimination | {card['validation']['discrimination']['value']:.4f} | – |" in text


def fit_within(fitted, folder, bound, *options):
    return evenhand("fit", fitted.people, "--label", "hired", "--sensitive", "sex", "-o", folder / "m.skops", *FIT,
                    "--policies", "networks", "--max-discrimination", bound, "--summary", folder / "s.json", *options)  # fmt: skip


def test_models_with_versions_as_endings_keep_their_cards_apart(fitted, tmp_path):
    for name in ("m.v1", "m.v2", "m"):
        evenhand("fit", fitted.people, "-o", tmp_path / name, *FIT)
    cards = sorted(path.name for path in tmp_path.glob("*.card.*"))
    assert cards == [f"{name}.card.{kind}" for name in ("m", "m.v1", "m.v2") for kind in ("json", "md")]


def test_a_wrong_column_is_a_message_without_traceback(fitted, tmp_path):
    out = evenhand("fit", fitted.people, "--label", "hird", "-o", tmp_path / "m.skops", code=2)
    assert "Did you mean 'hired'?" in out.stderr
    assert "Traceback" not in out.output
    assert out.stdout == ""


def test_wrong_options_say_what_was_wanted(fitted):
    for options, wanted in (
        (("--weights", "0,x"), "numbers separated by commas"),
        (("--weights=-1",), "at least 0"),
        (("--epochs", "many"), "Got --epochs 'many', but expected 'auto' or a number"),
        (("--epochs", "0"), "above 0"),
        (("--jobs", "0"), "Got --jobs 0, but expected 1 or more, or -1"),
        (
            ("--criterion", "best", *FIT),
            "expected one of 'even', 'balanced_even', 'delta', 'discrimination', 'accuracy'",
        ),
        (("--positive", "ye"), "Did you mean 'yes'?"),
    ):
        out = evenhand("fit", fitted.people, *options, code=2)
        assert wanted in out.stderr


def test_the_defaults_are_the_librarys_own(fitted, tmp_path):
    assert CooperativeBandits().divergence_weight in WEIGHTS
    evenhand("fit", fitted.people, "--weights", "20", "-o", tmp_path / "m.skops", "--criterion", "delta")
    ours = load(tmp_path / "m.skops").model.bandits_
    assert ours.epochs == CooperativeBandits().epochs
    assert ours.n_steps_ == 20_000  # 280 people to train on: more than 20 times each
    text = (tmp_path / "m.card.md").read_text(encoding="utf-8")
    assert "- epochs: auto" in text
    assert "- visits in training: 20,000" in text


def test_a_wrong_criterion_is_refused_before_anything_is_read(tmp_path):
    out = evenhand("fit", tmp_path / "nothing.csv", "--criterion", "acuracy", code=2)
    assert "Did you mean 'accuracy'?" in out.stderr


def test_several_sensitive_columns_are_crossed_and_predict_needs_both(tmp_path):
    people = make_people(600)
    people["old"] = np.where(people.index % 2 == 0, 0, 1)
    people.to_csv(tmp_path / "p.csv", index=False)
    evenhand("fit", tmp_path / "p.csv", "--sensitive", "sex", "--sensitive", "old", "-o",
             tmp_path / "m.skops", *FIT)  # fmt: skip
    model = load(tmp_path / "m.skops")
    assert model.groups_.tolist() == ["sex=f, old=0", "sex=f, old=1", "sex=m, old=0", "sex=m, old=1"]
    decided = model.decide(people.astype(str))
    assert decided.scored.all()


def test_many_labels(tmp_path):
    people = make_people(500)
    people["hired"] = np.where(people["skill"].fillna(0) > 0.8, "star", people["hired"])
    people.to_csv(tmp_path / "p.csv", index=False)
    evenhand("fit", tmp_path / "p.csv", "--label", "hired", "--positive", "star", "-o", tmp_path / "m.skops",
             *FIT, "--report", tmp_path / "r.html")  # fmt: skip
    assert load(tmp_path / "m.skops").classes_.tolist() == ["no", "star", "yes"]


@pytest.fixture(scope="module")
def grades(tmp_path_factory):
    """Three labels in alphabetical order, of which nobody named one as positive."""
    folder = tmp_path_factory.mktemp("grades")
    people = make_people(500).rename(columns={"hired": "grade"})
    people["grade"] = np.where(
        people["skill"].fillna(0) > 0.8, "A", np.where(people["grade"] == "yes", "B", "C")
    )
    people.to_csv(folder / "p.csv", index=False)
    out = evenhand("fit", folder / "p.csv", "--label", "grade", "--sensitive", "sex", "-o", folder / "m.skops",
                   *FIT, "--report", folder / "r.html", "--summary", folder / "s.json", "--json")  # fmt: skip
    return folder, people, json.loads(out.stdout)


def test_with_many_labels_no_positive_one_is_guessed(grades):
    folder, people, told = grades
    model = load(folder / "m.skops")
    assert model.pos_label is None
    assert any("none was named as the positive one" in note for note in told["notes"])
    assert "positive_rate" not in told["test"]
    rows = [row["person"] - 1 for row in read_summary(folder / "s.json")["studies"][0]["persons"]["rows"]]
    decided = model.decide(people.iloc[rows]).decision
    sex = people["sex"].to_numpy()[rows]
    gaps = [abs(np.mean(decided[sex == "f"] == g) - np.mean(decided[sex == "m"] == g)) for g in "ABC"]
    assert told["test"]["discrimination"]["value"] == pytest.approx(max(gaps))
    assert told["test"]["delta"]["value"] == pytest.approx(told["test"]["accuracy"]["value"] - max(gaps))
    assert "- label: column grade, labels A, B, C, positive none" in (folder / "m.card.md").read_text(
        encoding="utf-8"
    )


def test_with_many_labels_predict_tells_the_probability_of_the_decision_and_of_each(grades):
    folder, people, _ = grades
    evenhand("predict", folder / "m.skops", folder / "p.csv")
    decided = pd.read_csv(folder / "p.decided.csv")
    each = decided[["probability_of_A", "probability_of_B", "probability_of_C"]]
    np.testing.assert_allclose(each.sum(axis=1), 1, atol=1e-5)
    assert (decided["decision"] == each.idxmax(axis=1).str[-1]).all()
    np.testing.assert_array_equal(decided["probability"], each.max(axis=1))
    own = np.where(people["sex"] == "f", decided["probability_as_f"], decided["probability_as_m"])
    np.testing.assert_array_equal(decided["probability"], own)


@pytest.mark.parametrize("seed", [0, 2])  # the one person is in the training part for one seed alone
def test_a_group_of_one_person_is_named(tmp_path, seed):
    people = make_people(100)
    people.loc[0, "sex"] = "x"
    people.to_csv(tmp_path / "p.csv", index=False)
    out = evenhand("fit", tmp_path / "p.csv", "--label", "hired", "--sensitive", "sex", "-o", tmp_path / "m.skops",
                   "--seed", seed, *FIT, code=2)  # fmt: skip
    assert "The group 'x' in 'sex' has 1 person," in out.stderr
    assert "expected at least 2 there. Merge small groups" in out.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.csv"]


@pytest.mark.parametrize("damaged", [False, True])
def test_killed_it_goes_on_and_ends_as_if_it_had_not_been(fitted, tmp_path, monkeypatch, damaged):
    options = ("--label", "hired", "--sensitive", "sex", *FIT)
    train, trained = candidates._train, []

    def counting(*point):
        if len(trained) == 3:
            raise KeyboardInterrupt
        trained.append(point)
        return train(*point)

    monkeypatch.setattr(candidates, "_train", counting)
    model = tmp_path / "m.skops"
    evenhand("fit", fitted.people, "-o", model, *options, code=130)
    unfinished = tmp_path / ".m.skops.unfinished"
    assert not model.exists()
    assert len(list(unfinished.glob("*.skops"))) == 3
    if damaged:
        next(unfinished.glob("*.skops")).write_bytes(b"cut off")
    again = []
    monkeypatch.setattr(candidates, "_train", lambda *point: again.append(point) or train(*point))
    evenhand("fit", fitted.people, "-o", model, *options)
    assert len(again) == (2 if damaged else 1)
    assert not unfinished.exists()
    people = pd.read_csv(fitted.people)
    for name in ("predict", "predict_proba"):
        np.testing.assert_array_equal(
            getattr(load(model), name)(people), getattr(load(fitted.model), name)(people)
        )
    assert load(model).card["validation"] == load(fitted.model).card["validation"]


def test_what_was_trained_otherwise_is_not_taken_up(fitted, tmp_path, monkeypatch):
    options = ("--label", "hired", "--sensitive", "sex", *FIT)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", lambda *_, **__: None)
        evenhand("fit", fitted.people, "-o", tmp_path / "m.skops", *options)
    train, again = candidates._train, []
    monkeypatch.setattr(candidates, "_train", lambda *point: again.append(point) or train(*point))
    evenhand("fit", fitted.people, "-o", tmp_path / "m.skops", *options, "--seed", 1)
    assert len(again) == 4


@pytest.mark.parametrize(
    ("outputs", "wanted"),
    [(("-o", "p.csv"), "which is an input"), (("--report", "p.csv"), "which is an input"),
     (("-o", "m.skops", "--report", "m.skops"), "which another output goes to"),
     (("-o", "m.skops", "--summary", "m.card.json"), "which another output goes to")],
)  # fmt: skip
def test_nothing_is_written_over_the_table_or_over_another_output(tmp_path, monkeypatch, outputs, wanted):
    monkeypatch.chdir(tmp_path)
    make_people(60).to_csv("p.csv", index=False)
    out = evenhand("fit", "p.csv", "--label", "hired", "--sensitive", "sex", *outputs, code=2)
    assert wanted in out.stderr.replace("\n", " ")
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]
