"""Who would flip is read from what `evenhand predict` wrote, in a folder as in a file; else it is left out."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from factories import evenhand


def told(*arguments) -> dict:
    result = evenhand("audit", *arguments)
    return json.loads(result.stdout)


@pytest.fixture
def predicted(fitted, tmp_path):
    """A folder with what `evenhand predict` wrote, in two files."""
    people = pd.read_csv(fitted.people)
    people.to_parquet(tmp_path / "people.parquet")
    evenhand("predict", fitted.model, tmp_path / "people.parquet")
    decided = pd.read_parquet(tmp_path / "people.decided.parquet")
    folder = tmp_path / "decided"
    folder.mkdir()
    decided.iloc[:150].to_parquet(folder / "a.parquet")
    decided.iloc[150:].to_parquet(folder / "b.parquet")
    return folder


def test_who_flips_is_read_from_what_predict_wrote(fitted, predicted):
    asked = ("--predictions", "decision", "--label", "hired", "--sensitive", "sex", "--json")
    counted = told(predicted, *asked)
    whole = told(fitted.people, "--model", fitted.model, "--json")
    one, other = (
        [row for row in found["metrics"] if row["metric"] == "flip_rate"] for found in (counted, whole)
    )
    assert one == other
    assert one[0]["value"] > 0
    assert "`evenhand predict` wrote" in counted["summary"]
    apart = [{who["person"]: who for who in found["people"]} for found in (counted, whole)]
    assert list(apart[0])[:3] != []
    assert {who for who in apart[0] if apart[0][who]["flips"]} == {
        who for who in apart[1] if apart[1][who]["flips"]
    }
    for person in set(apart[0]) & set(apart[1]):
        mine, theirs = (found[person] for found in apart)
        assert mine["gap"] == pytest.approx(abs(theirs["P(yes) as f"] - theirs["P(yes) as m"]), abs=2e-6)
        for name in ("group", "label", "decision", "decided as f", "decided as m", "job"):
            assert mine[name] == theirs[name]


def test_a_small_file_that_predict_wrote_says_the_same(predicted, tmp_path):
    asked = ("--predictions", "decision", "--label", "hired", "--sensitive", "sex", "--json")
    counted = told(predicted, *asked)
    whole = pd.concat([pd.read_parquet(path) for path in sorted(predicted.iterdir())], ignore_index=True)
    whole.to_parquet(tmp_path / "p.parquet")
    whole.to_csv(tmp_path / "p.csv", index=False)
    for name in ("p.parquet", "p.csv"):
        found = told(tmp_path / name, *asked)
        rates, others = (
            [row for row in one["metrics"] if row["metric"] == "flip_rate"] for one in (found, counted)
        )
        assert rates == others
        for mine, theirs in zip(found["people"], counted["people"], strict=True):
            for key in (
                "person",
                "group",
                "label",
                "decision",
                "flips",
                "gap",
                "decided as f",
                "P(yes) as m",
            ):
                assert mine[key] == theirs[key]
    other = told(tmp_path / "p.csv", *asked, "--positive", "no")  # the probabilities are still those of 'yes'
    assert [who["P(yes) as m"] for who in other["people"]] == [who["P(yes) as m"] for who in found["people"]]


@pytest.mark.parametrize("counted", [True, False])
def test_decisions_that_were_changed_by_hand_have_no_flips(predicted, tmp_path, counted):
    people = pd.concat([pd.read_parquet(path) for path in sorted(predicted.iterdir())], ignore_index=True)
    people.loc[::10, "decision"] = np.where(people["decision"][::10] == "yes", "no", "yes")
    path = tmp_path / "edited"
    path.mkdir()
    people.to_parquet(path / "p.parquet")
    found = told(
        path if counted else path / "p.parquet", "--predictions", "decision", "--sensitive", "sex", "--json"
    )
    assert found["about"]["how"] == "given"
    assert "flip_rate" not in {row["metric"] for row in found["metrics"]}
    assert any("'decision' contradict the probabilities beside them" in note for note in found["notes"])


@pytest.mark.parametrize("ending", ["folder", "parquet", "csv"])
@pytest.mark.parametrize(
    "column, written",
    [("probability", lambda text: text.replace(".", ",")), ("probability_as_m", lambda text: "-")],
    ids=["decimal commas", "a mark"],
)
def test_probabilities_that_are_not_numbers_leave_only_the_flips_out(
    predicted, tmp_path, ending, column, written
):
    people = pd.concat([pd.read_parquet(path) for path in sorted(predicted.iterdir())], ignore_index=True)
    asked = ("--predictions", "decision", "--label", "hired", "--sensitive", "sex", "--json")
    path = tmp_path / f"edited.{ending}"
    if ending == "folder":
        path.mkdir()
    file = path / "p.parquet" if ending == "folder" else path

    def audited() -> dict:
        people.to_csv(file, index=False) if ending == "csv" else people.to_parquet(file)
        return told(path, *asked)

    before = audited()
    texts = people[column].astype(str)
    people[column] = [written(text) if row < 5 else text for row, text in enumerate(texts)]
    found = audited()
    assert found["metrics"] == [row for row in before["metrics"] if row["metric"] != "flip_rate"]
    assert (before["about"]["how"], found["about"]["how"]) == ("written", "given")
    assert any(f"Got values that are not numbers in '{column}'; expected" in note for note in found["notes"])


def test_probabilities_in_text_are_read_as_numbers(predicted, tmp_path):
    asked = ("--predictions", "decision", "--label", "hired", "--sensitive", "sex", "--json")
    people = pd.concat([pd.read_parquet(path) for path in sorted(predicted.iterdir())], ignore_index=True)
    people.to_parquet(tmp_path / "numbers.parquet")
    for name in ("probability", "probability_as_f", "probability_as_m"):
        people[name] = people[name].astype(str)
    people.to_parquet(tmp_path / "texts.parquet")
    texts, numbers = (told(tmp_path / f"{name}.parquet", *asked) for name in ("texts", "numbers"))
    assert texts["metrics"] == numbers["metrics"]
    assert texts["people"] == numbers["people"]


def test_the_list_of_people_is_the_first_of_all(predicted, tmp_path):
    asked = ("--predictions", "decision", "--label", "hired", "--sensitive", "sex")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evenhand.report.persons.MOST_PERSONS", 5)
        listed = told(predicted, *asked, "--json")["people"]
    everybody = pd.concat([pd.read_parquet(path) for path in sorted(predicted.iterdir())], ignore_index=True)
    far = (everybody["probability_as_f"] - everybody["probability_as_m"]).abs()
    order = np.lexsort((np.arange(len(far)), -far, ~everybody["would_flip"]))
    assert [who["person"] - 1 for who in listed] == order[:5].tolist()
    evenhand("audit", predicted, *asked, "--report", tmp_path / "a.html")


def test_more_than_two_labels_say_that_flips_were_not_read(predicted, tmp_path):
    whole = pd.concat([pd.read_parquet(path) for path in sorted(predicted.iterdir())], ignore_index=True)
    whole.loc[:9, "decision"] = "perhaps"
    whole.to_parquet(tmp_path / "p.parquet")
    found = told(tmp_path / "p.parquet", "--predictions", "decision", "--sensitive", "sex", "--json")
    assert "wrote about other groups is used for two labels only. Audit with the model" in found["summary"]
    assert not any(row["metric"] == "flip_rate" for row in found["metrics"])
