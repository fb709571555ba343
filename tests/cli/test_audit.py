from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from evenhand import load
from evenhand.report import read_summary
from factories import FIT, evenhand, make_people


def test_a_saved_model_is_audited_with_its_own_columns(fitted, tmp_path):
    out = evenhand("audit", fitted.people, "--model", fitted.model, "--report", tmp_path / "a.html", "--summary",
                   tmp_path / "a.json")  # fmt: skip
    assert "400 people in 2 groups" in out.stdout
    assert "in another group" in out.stdout
    study = read_summary(tmp_path / "a.json")["studies"][0]
    assert study["models"][0]["metrics"]["flip_rate"]["value"] is not None
    assert [row["group"] for row in study["groups"]] == ["f", "m"]
    assert len(study["persons"]["rows"][0]["probabilities"]) == 2
    assert (tmp_path / "a.html").stat().st_size < 6e6


def test_predictions_in_a_column_of_labels_or_scores(fitted, tmp_path):
    people = pd.read_csv(fitted.people)
    people["score"] = (people["hired"] == "yes") * 0.5 + 0.2
    people["said"] = people["hired"]
    people.to_csv(tmp_path / "p.csv", index=False)
    for column in ("said", "score"):
        out = evenhand("audit", tmp_path / "p.csv", "--label", "hired", "--sensitive", "sex", "--predictions",
                       column, "--json")  # fmt: skip
        found = {row["metric"]: row for row in json.loads(out.stdout)["metrics"] if row["group"] is None}
        assert found["accuracy"]["value"] == 1.0


def test_mistakes_are_messages(fitted):
    roles = ("--label", "hired", "--sensitive", "sex")
    for options, wanted in (
        (roles, "expected one"),
        ((*roles, "--predictions", "hired", "--engine", "gpu"), "Got engine='gpu', but expected"),
        ((*roles, "--model", fitted.model, "--predictions", "x"), "expected one"),
        ((*roles, "--predictions", "nothing"), "nothing"),
        ((*roles, "--predictions", "sex"), "Got 'sex' both as predictions and as sensitive"),
        (("--model", fitted.folder / "none.skops"), "there is no such file"),
        (("--model", fitted.model, "--label", "hird"), "Did you mean 'hired'?"),
        (
            ("--model", fitted.model, "--sensitive", "sx"),
            "Got the sensitive column sx, which has no effect with this model: it has a policy for every group "
            "of sex. To compare other groups, audit its decisions: evenhand predict, then evenhand audit on what "
            "that wrote, with --predictions decision --sensitive sx.",
        ),
        (("--model", fitted.model, "--sensitive", "job"), "it has a policy for every group of sex."),
        (
            ("--model", fitted.model, "--drop", "skil"),
            "Got skil in drop, which has no effect with this model",
        ),
        (
            ("--model", fitted.model, "--categorical", "job"),
            "Got job in categorical, which has no effect with this model",
        ),
        (
            ("--model", fitted.model, "--threshold", "0.5"),
            "Got a threshold, which has no effect with a model",
        ),
        (
            ("--model", fitted.model, "--positive", "Yes"),
            "Got positive='Yes', but expected one of 'no', 'yes'",
        ),
    ):
        out = evenhand("audit", fitted.people, *options, code=2)
        assert wanted in out.stderr.replace("\n", " ")
        assert "Traceback" not in out.output


def test_integer_labels_may_have_gaps(fitted, tmp_path):
    people = pd.read_csv(fitted.people)
    people["hired"] = (people["hired"] == "yes").astype(int)
    people.to_csv(tmp_path / "whole.csv", index=False)
    model = tmp_path / "m.skops"
    evenhand("fit", tmp_path / "whole.csv", "--label", "hired", "--sensitive", "sex", "-o", model, *FIT)
    people.tail(-1).to_csv(tmp_path / "less.csv", index=False)
    people.assign(hired=people["hired"].where(people.index > 0)).to_csv(tmp_path / "gap.csv", index=False)
    found = []
    for name in ("less.csv", "gap.csv"):
        out = evenhand("audit", tmp_path / name, "--model", model, "--json")
        found.append(json.loads(out.stdout))
    assert "1 of 400 rows are left out: no 'hired' (1)." in found[1]["notes"]
    assert found[0]["metrics"] == found[1]["metrics"]


def test_people_are_named_by_their_rows_in_the_file(fitted, tmp_path):
    people = pd.read_csv(fitted.people)
    people["said"] = people["hired"]
    people.loc[::3, "hired"] = None
    people.loc[1, "sex"] = None
    people.to_csv(tmp_path / "p.csv", index=False)
    for options in (("--model", fitted.model), ("--predictions", "said")):
        out = evenhand("audit", tmp_path / "p.csv", "--label", "hired", "--sensitive", "sex", *options,
                       "--summary", tmp_path / "a.json", "--json")  # fmt: skip
        found = json.loads(out.stdout)
        study = read_summary(tmp_path / "a.json")["studies"][0]
        if options[0] == "--model":
            numbers = [row["person"] for row in study["persons"]["rows"]]
            assert sorted(numbers) == sorted(person["person"] for person in found["people"]) != []
        pairs = next(table["rows"] for table in study["tables"] if "neighbour" in table["columns"])
        for pair, shown in zip(found["neighbours"], pairs, strict=False):
            assert people["sex"][pair["person"] - 1] == pair["group"]
            assert people["sex"][pair["neighbour"] - 1] == pair["neighbour_group"]
            assert shown[:2] == [str(pair["person"]), str(pair["neighbour"])]
        for person in found["people"]:
            row = people.loc[person["person"] - 1]
            assert (row["sex"], row["hired"], row["job"]) == (person["group"], person["label"], person["job"])
    assert found["neighbours"]


def test_a_sensitive_column_may_have_any_name(fitted, tmp_path):
    people = pd.read_csv(fitted.people).rename(columns={"sex": "sex & gender"})
    people["old"] = np.where(people.index % 2 == 0, "a", "b")
    people["said"] = people["hired"]
    people.loc[3, "sex & gender"] = None
    people.to_csv(tmp_path / "p.csv", index=False)
    for sensitive in (("--sensitive", "sex & gender"), ("--sensitive", "sex & gender", "--sensitive", "old")):
        out = evenhand("audit", tmp_path / "p.csv", "--label", "hired", *sensitive, "--predictions", "said",
                       "--json")  # fmt: skip
        found = json.loads(out.stdout)
        assert found["about"]["people"] == 399
        overall = {row["metric"]: row["value"] for row in found["metrics"] if row["group"] is None}
        assert overall["accuracy"] == 1.0


@pytest.mark.parametrize(
    ("change", "code", "wanted"),
    [(lambda people: people.assign(hired=""), 1, "None of the 50 rows of {} can be audited: no 'hired' (50)."),
     (lambda people: people.assign(sex="x"), 1, "can be audited: group 'x' in 'sex': training had only 'f', 'm' (50)."),
     (lambda people: people.assign(hired=["maybe", *people["hired"][1:]]), 2,
      "Column 'hired' of {} has 'maybe' in row 1 (1 such rows), but expected what the model decides: 'no', 'yes'."),
     (lambda people: people.assign(hired=(people["hired"] == "yes") * 1), 2, "what the model decides: 'no', 'yes'"),
     (lambda people: people.head(0), 2, "has 6 columns and 0 rows")],
)  # fmt: skip
def test_a_file_that_can_not_be_audited_says_why(fitted, tmp_path, change, code, wanted):
    path = tmp_path / "p.csv"
    change(make_people(50)).to_csv(path, index=False)
    out = evenhand("audit", path, "--model", fitted.model, "--report", tmp_path / "a.html", code=code)
    assert wanted.format(path) in out.stderr
    assert len(out.stderr.splitlines()) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.csv"]


def test_features_may_be_named_as_the_audits_own_columns(tmp_path):
    people, path = make_people(200), tmp_path / "p.csv"
    for name in ("person", "group", "label", "decision", "flips", "gap", "neighbour", "metric"):
        people[name] = np.where(people.index % 3 == 0, f"{name} a", f"{name} b")
    people.to_csv(path, index=False)
    roles = ("--label", "hired", "--sensitive", "sex")
    evenhand("fit", path, *roles, "-o", tmp_path / "m.skops", *FIT)
    out = evenhand("audit", path, "--model", tmp_path / "m.skops", "--json", "--summary", tmp_path / "a.json")
    for person in json.loads(out.stdout)["people"]:
        row = people.iloc[person["person"] - 1]
        assert (person["group"], person["label"], person["person "]) == (
            row["sex"],
            row["hired"],
            row["person"],
        )
    assert "person " in read_summary(tmp_path / "a.json")["studies"][0]["persons"]["columns"]


def test_where_to_write_is_checked_before_the_work(fitted, tmp_path):
    nowhere = tmp_path / "none" / "a.html"
    for command in (
        ("audit", fitted.people, "--model", fitted.model, "--report", nowhere),
        ("audit", fitted.people, "--model", fitted.model, "--summary", tmp_path),
        (
            "fit",
            fitted.people,
            "--label",
            "hired",
            "--sensitive",
            "sex",
            "-o",
            tmp_path / "m.skops",
            "--report",
            nowhere,
        ),
        ("fit", fitted.people, "--label", "hired", "--sensitive", "sex", "-o", tmp_path),
        ("predict", fitted.model, fitted.people, "-o", tmp_path / "none" / "d.csv"),
        (
            "predict",
            fitted.model,
            fitted.people,
            "-o",
            tmp_path / "d.csv",
            "--rejects",
            tmp_path / "none" / "r.csv",
        ),
    ):
        out = evenhand(*command, code=2)
        assert any(
            wanted in out.stderr for wanted in ("there is no folder", "which is a folder", "the ending of")
        )
        assert not list(tmp_path.iterdir())


def test_decisions_of_other_names_than_the_labels_are_no_findings(fitted, tmp_path):
    people = pd.read_csv(fitted.people)
    people["said"] = np.where(people["hired"] == "yes", "Approved", "Denied")
    people["Said"] = people["hired"].str.title()
    people.to_csv(tmp_path / "p.csv", index=False)
    for column, named in (("said", "'Approved', 'Denied'"), ("Said", "'No', 'Yes'")):
        out = evenhand("audit", tmp_path / "p.csv", "--label", "hired", "--sensitive", "sex", "--predictions",
                       column, "--drop", "Said" if column == "said" else "said", code=2)  # fmt: skip
        assert f"Got {named} among the decisions, but the labels are 'no', 'yes'" in out.stderr


def test_of_more_than_two_labels_none_is_positive_unless_named(tmp_path):
    people, path = make_people(300), tmp_path / "p.csv"
    people["hired"] = np.where(people["sex"] == "f", "c", np.where(people.index % 2, "a", "b"))
    people.to_csv(path, index=False)
    roles = ("--label", "hired", "--sensitive", "sex", "--predictions", "hired", "--json")
    for options, positive, wanted in (((), None, 1.0), (("--positive", "b"), "b", 0.5)):
        out = evenhand("audit", path, *roles, *options)
        found = json.loads(out.stdout)
        assert found["about"]["positive"] == positive
        overall = {row["metric"]: row["value"] for row in found["metrics"] if row["group"] is None}
        assert overall["discrimination"] == pytest.approx(wanted, abs=0.1)
    assert "0.0 % of f and" in found["summary"]


def test_a_saved_model_may_be_audited_for_another_positive_label(fitted):
    for options, positive in ((("--sensitive", "sex"), "yes"), (("--positive", "no"), "no")):
        out = evenhand("audit", fitted.people, "--model", fitted.model, *options, "--json")
        assert json.loads(out.stdout)["about"]["positive"] == positive


@pytest.mark.parametrize("prefix", ["", "new_"])
def test_what_predict_added_is_no_feature(fitted, tmp_path, prefix):
    decided = tmp_path / "d.csv"
    evenhand("predict", fitted.model, fitted.people, "-o", decided, "--prefix", prefix)
    out = evenhand("audit", decided, "--label", "hired", "--sensitive", "sex", "--predictions",
                   f"{prefix}decision", "--json")  # fmt: skip
    found = json.loads(out.stdout)
    seen = json.dumps([found["neighbours"], found["subgroups"]])
    assert found["neighbours"]
    assert "probability" not in seen
    assert "would_flip" not in seen
    assert any(f"since `evenhand predict` added them: '{prefix}decision'" in note for note in found["notes"])
    assert not any("almost perfectly" in note for note in found["notes"])


def test_a_typo_in_predictions_speaks_of_predictions(fitted):
    out = evenhand(
        "audit", fitted.people, "--label", "hired", "--sensitive", "sex", "--predictions", "hird", code=2
    )
    assert "Got predictions='hird'" in out.stderr
    assert "Did you mean 'hired'?" in out.stderr.replace("\n", " ")


def test_decisions_may_come_without_labels(fitted, tmp_path):
    people = pd.read_csv(fitted.people).rename(columns={"hired": "said"})
    people["other"] = np.where(people.index % 2 == 0, "a", "b")  # two values, and no label for that
    people["score"] = np.linspace(0, 1, len(people))
    people.to_csv(tmp_path / "p.csv", index=False)
    arguments = ("audit", tmp_path / "p.csv", "--sensitive", "sex", "--predictions")
    out = evenhand(*arguments, "said", "--report", tmp_path / "a.html", "--json")
    found = json.loads(out.stdout)
    assert "no labels were given" in found["summary"]
    assert found["about"]["positive"] == "yes"
    overall = {row["metric"]: row["value"] for row in found["metrics"] if row["group"] is None}
    rates = (people["said"] == "yes").groupby(people["sex"]).mean()
    assert overall["discrimination"] == pytest.approx(abs(rates["f"] - rates["m"]))
    assert overall["accuracy"] is None
    out = evenhand(*arguments, "score", code=2)
    assert "Column 'score' holds 400 different values, which are scores rather than" in out.stderr
    people.assign(said=people["said"].where(people.index > 2)).to_csv(tmp_path / "p.csv", index=False)
    out = evenhand(*arguments, "said", code=2)
    assert "Column 'said' has 3 gaps; expected a decision for everybody." in out.stderr


def test_the_people_a_model_was_made_with_are_recognised(fitted, tmp_path):
    people, path = pd.read_csv(fitted.people), tmp_path / "p.csv"
    for changed, met in (
        (people, True),
        (people.assign(more=range(len(people))), True),
        (people.tail(-1), False),
        (people.assign(hired=people["hired"].iloc[::-1].to_numpy()), False),
        (people.assign(branch="x"), False),
    ):
        changed.to_csv(path, index=False)
        out = evenhand("audit", path, "--model", fitted.model, "--json")
        told = json.loads(out.stdout)
        assert told["about"].get("trained_on") == (280 if met else None)
        assert ("trained on 280 of the 400." in told["summary"]) == met


def test_another_label_of_the_same_people_is_audited(fitted, tmp_path):
    people = pd.read_csv(fitted.people).rename(columns={"hired": "later"})
    people.to_csv(tmp_path / "p.csv", index=False)
    evenhand("audit", tmp_path / "p.csv", "--model", fitted.model, "--label", "later", "--json")


@pytest.mark.parametrize("by", ["model", "predictions"])
def test_dates_are_shown_as_dates(fitted, by):
    given = ("--model", fitted.model) if by == "model" else ("--predictions", "hired", "--sensitive", "sex")
    out = json.loads(evenhand("audit", fitted.people, *given, "--json").stdout)
    born = re.compile(r"born (\d{4}-\d\d-\d\d|missing) \| \d{4}-\d\d-\d\d")
    assert any(born.search(pair["differ_in"]) for pair in out["neighbours"])
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", person["born"]) for person in out["people"])
    if by == "model":
        wrote = pd.read_csv(fitted.people)["born"]
        for person in out["people"]:
            assert pd.to_datetime(wrote[person["person"] - 1], format="%d.%m.%Y") == pd.Timestamp(
                person["born"]
            )
        persons = read_summary(fitted.summary)["studies"][0]["persons"]
        at = persons["columns"].index("born")
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", row["features"][at]) for row in persons["rows"])


def test_nothing_is_written_over_what_is_read(fitted, tmp_path):
    people, model = tmp_path / "p.csv", tmp_path / "m.skops"
    people.write_bytes(fitted.people.read_bytes())
    model.write_bytes(fitted.model.read_bytes())
    for output in (people, model):
        for option in ("--report", "--summary"):
            before = output.read_bytes()
            out = evenhand("audit", people, "--model", model, option, output, code=2)
            assert "which is an input" in out.stderr.replace("\n", " ")
            assert output.read_bytes() == before


def test_the_findings_say_who_was_left_out_and_what_was_guessed(fitted, tmp_path):
    people = pd.read_csv(fitted.people)
    people["said"] = people["hired"]
    people.loc[people.index < 150, "hired"] = None
    people.loc[people.index >= 390, "sex"] = None
    people.to_csv(tmp_path / "p.csv", index=False)
    out = evenhand("audit", tmp_path / "p.csv", "--label", "hired", "--sensitive", "sex", "--predictions", "said",
                   "--summary", tmp_path / "a.json", "--json")  # fmt: skip
    notes = json.loads(out.stdout)["notes"]
    told = "Left out: 150 people without 'hired'."
    assert told in notes
    assert "The positive label is 'yes'." in notes
    assert any("10 people with unknown 'sex'" in note for note in notes)
    assert f"Note: {told}" in read_summary(tmp_path / "a.json")["studies"][0]["notes"]


def test_the_findings_about_a_model_say_which_rows_and_categories_it_could_not_take(fitted, tmp_path):
    people = pd.read_csv(fitted.people)
    people["skill"] = people["skill"].astype(object)
    people.loc[:19, "hired"] = None
    people.loc[20:24, "sex"] = "x"
    people.loc[25:28, "skill"] = ["good", "bad", "fair", "poor"]
    people.loc[100:139, "job"] = "poet"
    people.to_csv(tmp_path / "p.csv", index=False)
    out = evenhand("audit", tmp_path / "p.csv", "--model", fitted.model, "--json")
    notes = json.loads(out.stdout)["notes"]
    assert (
        "29 of 400 rows are left out: no 'hired' (20); group 'x' in 'sex': training had only 'f', 'm' (5); "
        "column 'skill': got 'good', expected a number (1); other reasons (3)."
    ) in notes
    assert any(
        "40 people with a value of 'job' that was never seen" in note and "'poet'" in note for note in notes
    )


def test_0_and_1_are_not_taken_for_the_labels_of_others(fitted, tmp_path):
    people = pd.read_csv(fitted.people)
    people.assign(said=(people["hired"] == "no") * 1).to_csv(tmp_path / "p.csv", index=False)
    given = ("audit", tmp_path / "p.csv", "--label", "hired", "--sensitive", "sex", "--predictions", "said")
    out = evenhand(*given, code=2)
    assert "0 and 1 only, but the labels are 'no', 'yes'; expected" in out.stderr.replace("\n", " ")
    out = evenhand(*given, "--threshold", 0.5, "--positive", "no", "--json")
    assert {row["metric"]: row["value"] for row in json.loads(out.stdout)["metrics"][::-1]}["accuracy"] == 1


def test_blanks_around_labels_groups_and_decisions_make_no_difference(fitted, tmp_path):
    people = pd.read_csv(fitted.people)
    people["said"] = people["hired"].to_numpy()[::-1]
    padded = people.copy()
    for column in ("sex", "hired", "said"):
        padded.loc[::3, column] += " "
    people.loc[7, "hired"], padded.loc[7, "hired"] = None, "  "
    people.to_csv(tmp_path / "plain.csv", index=False)
    padded.to_csv(tmp_path / "padded.csv", index=False)
    given = ("--label", "hired", "--sensitive", "sex", "--json")
    for options in (("--model", fitted.model), ("--predictions", "said")):
        outs = [evenhand("audit", tmp_path / f"{name}.csv", *given, *options) for name in ("plain", "padded")]
        plain, other = (json.loads(out.stdout) for out in outs)
        for part in ("about", "metrics", "people", "neighbours"):
            assert plain[part] == other[part]


def test_the_test_part_alone_can_be_audited(fitted, tmp_path):
    out = evenhand("audit", fitted.people, "--model", fitted.model, "--part", "test", "--json")
    told = json.loads(out.stdout)
    measured = {row["metric"]: row["value"] for row in told["metrics"] if row["group"] is None}
    card = load(fitted.model).card
    assert told["about"]["people"] == card["data"]["parts"]["test"] == 60
    for name in ("accuracy", "discrimination", "flip_rate"):
        assert measured[name] == pytest.approx(card["metrics"][name]["value"])
    assert "trained_on" not in told["about"]
    pd.read_csv(fitted.people).head(399).to_csv(tmp_path / "p.csv", index=False)
    out = evenhand("audit", tmp_path / "p.csv", "--model", fitted.model, "--part", "test", code=2)
    assert "does not hold the people that the model was made with" in out.stderr


def test_counterparts_are_found_for_a_model_and_for_decisions(fitted, tmp_path):
    people = pd.read_csv(fitted.people)
    people.iloc[30:].to_csv(tmp_path / "some.csv", index=False)
    out = evenhand("audit", tmp_path / "some.csv", "--model", fitted.model, "--twins", "--json")
    found = json.loads(out.stdout)["twins"]
    assert {row["group"] for row in found["flips"]} == {"f", "m"}
    assert "Of the counterparts of f in m, " in found["summary"]
    out = evenhand(
        "audit", fitted.people, "--sensitive", "sex", "--predictions", "hired", "--edges", "sex->skill"
    )
    assert "made by the graph sex->skill" in " ".join(out.stdout.split())
    out = evenhand("audit", fitted.people, "--model", fitted.model, "--edges", "sex->skil", code=2)
    assert "Did you mean 'skill'" in " ".join(out.output.split())


def test_the_worst_possible_person_is_looked_for(fitted):
    """The model is what `evenhand fit` makes by default: networks and trees."""
    out = evenhand(
        "audit", fitted.people, "--model", fitted.model, "--certify", "--time-limit", "1", "--json"
    )
    found = json.loads(out.stdout)["worst"]
    assert found["worst"]["gap"] <= found["worst"]["bound"]
    assert set(found["worst"]["person"]) == set(found["ranges"])


def test_a_radius_needs_a_certificate_of_networks(fitted):
    asked = ["audit", fitted.people, "--model", fitted.model, "--radius", "0.1"]
    out = evenhand(*asked, "--certify", code=2)
    assert "a radius is only possible for networks" in " ".join(out.output.split())
    out = evenhand(*asked, code=2)
    assert "--radius, which has no effect without --certify" in " ".join(out.output.split())


def test_a_search_finds_people_whose_decision_changes_with_the_group(fitted):
    out = evenhand("audit", fitted.people, "--model", fitted.model, "--search", "--time-limit", "0", "--json")
    told = json.loads(out.stdout)
    assert told["search"]["n_predictions"] > 0
    assert "nothing is proven about people it did not find" in told["summary"]
    for person in told["search"]["people"]:
        decided = {value for name, value in person.items() if name.startswith("decided as ")}
        assert len(decided) > 1
