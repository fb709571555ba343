"""The tables of Local Law 144 against the worked examples of the rule itself (6 RCNY § 5-301)."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from evenhand import audit

# What the rule prints: applicants, selected, selection rate in per cent, impact ratio.
SEX = {"Male": (1390, 667, "48", "1.00"), "Female": (1181, 555, "47", "0.979")}
RACE = {
    "Hispanic or Latino": (408, 204, "50", "0.97"),
    "White": (797, 412, "52", "1.00"),
    "Black or African American": (390, 170, "44", "0.84"),
    "Native Hawaiian or Pacific Islander": (119, 52, "44", "0.85"),
    "Asian": (616, 302, "49", "0.95"),
    "Native American or Alaska Native": (41, 18, "44", "0.85"),
    "Two or More Races": (213, 96, "45", "0.87"),
}
CROSSED = {
    ("Hispanic or Latino", "Male"): (205, 90, "43.9", "0.841"),
    ("Hispanic or Latino", "Female"): (190, 82, "43.2", "0.827"),
    ("White", "Male"): (412, 215, "52.2", "1.000"),
    ("Black or African American", "Male"): (226, 95, "42.0", "0.806"),
    ("Native Hawaiian or Pacific Islander", "Male"): (87, 37, "42.5", "0.815"),
    ("Asian", "Male"): (321, 167, "52.0", "0.997"),
    ("Native American or Alaska Native", "Male"): (24, 11, "45.8", "0.878"),
    ("Two or More Races", "Male"): (115, 52, "45.2", "0.866"),
    ("White", "Female"): (385, 197, "51.2", "0.981"),
    ("Black or African American", "Female"): (164, 75, "45.7", "0.876"),
    ("Native Hawaiian or Pacific Islander", "Female"): (32, 15, "46.9", "0.898"),
    ("Asian", "Female"): (295, 135, "45.8", "0.877"),
    ("Native American or Alaska Native", "Female"): (17, 7, "41.2", "0.789"),
    ("Two or More Races", "Female"): (98, 44, "44.9", "0.860"),
}
# The example of scores: applicants, scoring rate in per cent, impact ratio.
SCORED = {
    ("Hispanic or Latino", "Male"): (16, 12, "75", "1.00"),
    ("Hispanic or Latino", "Female"): (12, 6, "50", "0.67"),
    ("White", "Male"): (20, 7, "35", "0.47"),
    ("Black or African American", "Male"): (20, 10, "50", "0.67"),
    ("Native Hawaiian or Pacific Islander", "Male"): (4, 3, "75", "1.00"),
    ("Asian", "Male"): (12, 7, "58.3", "0.78"),
    ("Native American or Alaska Native", "Male"): (8, 5, "62.5", "0.83"),
    ("Two or More Races", "Male"): (12, 6, "50", "0.67"),
    ("White", "Female"): (20, 8, "40", "0.53"),
    ("Black or African American", "Female"): (12, 6, "50", "0.67"),
    ("Native Hawaiian or Pacific Islander", "Female"): (4, 2, "50", "0.67"),
    ("Asian", "Female"): (12, 3, "25", "0.33"),
    ("Native American or Alaska Native", "Female"): (8, 5, "62.5", "0.83"),
    ("Two or More Races", "Female"): (8, 4, "50", "0.67"),
}
SCORED_RACE = {
    "Hispanic or Latino": ("64.3", "1.00"), "White": ("37.5", "0.58"), "Black or African American": ("50.0", "0.78"),
    "Native Hawaiian or Pacific Islander": ("62.5", "0.97"), "Asian": ("41.7", "0.65"),
    "Native American or Alaska Native": ("62.5", "0.97"), "Two or More Races": ("50.0", "0.78"),
}  # fmt: skip


def people(cells, unknown=0):
    """Return people of the rule's crossed table, with how many of unknown sex or race."""
    rows = [
        (race, sex, hit)
        for (race, sex), (count, hits, *_) in cells.items()
        for hit in [True] * hits + [False] * (count - hits)
    ]
    half = unknown // 2
    rows += [("White", "unknown", True)] * half + [("?", "Male", False)] * (unknown - half)
    return pd.DataFrame(rows, columns=["race", "sex", "hit"])


def audited(table, decided=None, **keywords):
    decided = np.where(table["hit"], "in", "out") if decided is None else decided
    keywords = {"sensitive_features": table[["sex", "race"]], "pos_label": "in", "n_bootstrap": 2} | keywords
    return audit(decided, None, keywords.pop("y", None), **keywords)


def assert_printed(found, want, rate="Selection Rate"):
    """Compare with what the rule prints, to as many digits as it prints."""
    assert set(found.index) == set(want)
    for category, (*counts, percent, ratio) in want.items():
        row = found.loc[[category]].iloc[0]
        if rate == "Selection Rate":
            assert (row["# of Applicants"], row["# Selected"]) == tuple(counts), category
        assert f"{100 * row[rate]:.{len(percent.partition('.')[2])}f}" == percent, category
        assert f"{row['Impact Ratio']:.{len(ratio.partition('.')[2])}f}" == ratio, category


def test_the_rule_s_example_of_selections():
    found = audited(people(CROSSED, unknown=250)).statutory("nyc-ll144", small=0)
    assert list(found.tables) == ["Sex Categories", "Race/Ethnicity Categories", "Intersectional Categories"]
    assert_printed(found.tables["Sex Categories"], SEX)
    assert_printed(found.tables["Intersectional Categories"], CROSSED)
    assert found.notes[0] == "250 people with unknown sex or race/ethnicity are in no table."
    # The rule's table by race has 408 Hispanic or Latino applicants, its crossed one 205 + 190: no data has both.
    others = {name: row for name, row in RACE.items() if name != "Hispanic or Latino"}
    assert_printed(found.tables["Race/Ethnicity Categories"].drop("Hispanic or Latino"), others)
    by_race = {(race, ("Male", "Female")[at % 2]): row for at, (race, row) in enumerate(RACE.items())}
    alone = audited(people(by_race)).statutory("nyc-ll144", small=0)
    assert_printed(alone.tables["Race/Ethnicity Categories"], RACE)


def test_the_rule_s_example_of_scores():
    table = people(SCORED)
    # 84 of 168 score above the median; those below it have equal scores in part, as scores do.
    scores = np.where(table["hit"], 70 + np.arange(len(table)) % 9, 60 - np.arange(len(table)) % 5)
    label = np.where(np.arange(len(table)) % 3, "out", "in")
    found = audited(table, scores, y=label, threshold=65).statutory("nyc-ll144", rate="scoring", small=0)
    assert found.tables["Sex Categories"]["Scoring Rate"].round(3).to_dict() == {
        "Male": 0.543,
        "Female": 0.447,
    }
    assert found.tables["Sex Categories"]["Impact Ratio"].round(2).to_dict() == {"Male": 1.0, "Female": 0.82}
    assert_printed(found.tables["Intersectional Categories"], SCORED, "Scoring Rate")
    # The rule prints 64.2 for 18 of 28, which is 64.29.
    assert_printed(found.tables["Race/Ethnicity Categories"], SCORED_RACE, "Scoring Rate")
    assert "# Selected" not in found.tables["Sex Categories"]
    assert "above 65, the median of all 168 people who were scored" in " ".join(found.notes)


def test_categories_below_two_percent_are_shown_with_count_and_rate_but_left_out():
    found = audited(people(CROSSED)).statutory("nyc-ll144")
    table = found.tables["Race/Ethnicity Categories"]
    left = table.loc["Native American or Alaska Native"]
    assert (left["# of Applicants"], left["# Selected"]) == (41, 18)
    assert left["Selection Rate"] == pytest.approx(18 / 41)
    assert np.isnan(left["Impact Ratio"])
    assert left["Note"] == "left out (1.6 %)"
    assert (table.drop("Native American or Alaska Native")["Note"] == "").all()
    assert any("justify" in note for note in found.notes)
    assert not any(
        "justify" in note for note in audited(people(CROSSED)).statutory("nyc-ll144", small=0).notes
    )


def test_a_small_category_with_the_highest_rate_sets_no_standard():
    table = people({("a", "f"): (500, 100), ("a", "m"): (490, 196), ("b", "f"): (5, 5), ("b", "m"): (5, 5)})
    found = audited(table).statutory("nyc-ll144")
    assert found.tables["Race/Ethnicity Categories"].loc["a", "Impact Ratio"] == 1
    assert found.tables["Intersectional Categories"]["Impact Ratio"].dropna().to_dict() == {
        ("a", "f"): 0.5,
        ("a", "m"): 1.0,
    }


def test_which_column_is_which_is_recognised_or_said():
    table = people(CROSSED)
    for names in (("gender", "ethnicity"), ("x", "race"), ("sex", "x")):
        found = audited(table, sensitive_features=table[["sex", "race"]].set_axis(names, axis=1))
        assert found.statutory("nyc-ll144").tables["Sex Categories"].index.tolist() == ["Female", "Male"]
    odd = audited(table, sensitive_features=table[["sex", "race"]].set_axis(["a", "b"], axis=1))
    with pytest.raises(
        ValueError, match="Got the sensitive columns 'a', 'b', but expected one that is the sex"
    ):
        odd.statutory("nyc-ll144")
    told = odd.statutory("nyc-ll144", sex="a", race="b")
    assert told.tables["Race/Ethnicity Categories"].index.names == ["b"]
    with pytest.raises(ValueError, match="sex='c'"):
        odd.statutory("nyc-ll144", sex="c")
    with pytest.raises(ValueError, match="expected one that is the sex and another"):
        audited(table, sensitive_features=table["sex"]).statutory("nyc-ll144")


def test_other_classes_have_tables_of_their_own():
    table = people(CROSSED)
    styles = np.array(["leads", "follows", "asks"])[np.arange(len(table)) % 3]
    found = audited(table, styles, pos_label=None)
    with pytest.raises(
        ValueError, match="Got selected=None, but the decisions are 'asks', 'follows', 'leads'"
    ):
        found.statutory("nyc-ll144")
    counts = [
        found.statutory("nyc-ll144", selected=style).tables["Sex Categories"]["# Selected"].sum()
        for style in ("leads", "follows", "asks")
    ]
    assert counts == [857, 857, 857]


def test_wrong_wishes_are_messages():
    found = audited(people(CROSSED))
    with pytest.raises(ValueError, match="Got preset='nyc', but expected one of 'nyc-ll144', 'four-fifths'"):
        found.statutory("nyc")
    with pytest.raises(ValueError, match="Got rate='scoring' for an audit of decisions"):
        found.statutory("nyc-ll144", rate="scoring")
    with pytest.raises(ValueError, match="no effect on the tables of 'four-fifths'"):
        found.statutory("four-fifths", sex="sex")


@pytest.mark.parametrize("preset", ["nyc-ll144", "four-fifths"])
def test_nobody_known_and_nobody_selected(preset):
    table = people({("a", "f"): (30, 0), ("a", "m"): (30, 0)}, unknown=4)
    tables = audited(table).statutory(preset).tables
    assert all(found["Impact Ratio"].isna().all() for found in tables.values() if "Impact Ratio" in found)
    with pytest.raises(ValueError, match="Got nobody with a known sex and race"):
        audited(table.assign(sex="unknown")).statutory(preset)


@pytest.mark.parametrize("preset", ["nyc-ll144", "four-fifths"])
def test_as_text_as_data_and_in_a_notebook(preset):
    table = people({("a", "f"): (60, 30), ("a", "m"): (60, 20), ("<b>", "f"): (60, 15), ("<b>", "m"): (3, 1)})
    found = audited(table).statutory(preset)
    assert repr(found) == found.summary()
    assert "left out (1.6 %)" in found.summary()
    document = found.to_dict()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    first = next(iter(document["tables"].values()))[0]
    assert first["sex"] == "f"
    html = found._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    verdicts = re.findall(
        r"\b(un)?(fair|compliant|legal|lawful|passe[sd]|fail(s|ed))\b", found.summary().lower()
    )
    assert verdicts == []


def test_people_count_as_those_they_stand_for():
    table = people({("a", "f"): (60, 30), ("a", "m"): (60, 20), ("b", "f"): (60, 15), ("b", "m"): (40, 10)})
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 4, len(table))
    repeated = np.repeat(np.arange(len(table)), weights)
    decided, scores = np.where(table["hit"], "in", "out"), rng.random(len(table))
    for said, rate, more in (
        (decided, "selection", {}),
        (scores, "scoring", {"y": decided, "threshold": 0.5}),
    ):
        weighted = audited(table, said, sample_weight=weights, **more)
        if more:
            more["y"] = decided[repeated]
        counted = audited(table.iloc[repeated].reset_index(drop=True), said[repeated], **more)
        one, other = (found.statutory("nyc-ll144", rate=rate) for found in (weighted, counted))
        for name, found in one.tables.items():
            pd.testing.assert_frame_equal(found, other.tables[name], check_dtype=False)
        assert "People are weighted by sample_weight" in " ".join(one.notes)
    few, lot = (audited(table, sample_weight=given) for given in (weights, 10 * weights))
    tests = [found.statutory("four-fifths").tables["sex: tests"] for found in (few, lot)]
    pd.testing.assert_frame_equal(*tests)  # nobody is more certain for standing for ten times as many
    plain = audited(table).statutory("four-fifths").tables
    of_one = audited(table, sample_weight=np.ones(len(table))).statutory("four-fifths").tables
    for name, found in plain.items():
        pd.testing.assert_frame_equal(found, of_one[name], check_dtype=False)
    rows = few.statutory("four-fifths").tables["sex"]
    assert rows["To Cross 4/5"].isna().all()
    assert rows["Low"].notna().any()
