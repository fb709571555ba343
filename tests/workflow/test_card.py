from __future__ import annotations

import pytest

from evenhand.workflow.card import LIMITS, Card, plain, to_markdown


def test_a_card_has_all_its_parts():
    text = to_markdown(
        Card(
            title="A <b>model",
            data={"people": 1200, "groups": {"f": 3}, "notes": ["a", "b"], "said": ["One.", "Two."]},
            model={"λ": "1"},
            metrics={
                "flip_rate": {"value": 0.5, "low": 0.25, "high": 0.75},
                "auc": {"value": None},
                "gap": {"value": 2.8e-6, "low": 1.2e-6, "high": 0.000213},
            },
            groups=[{"group": "f", "people": 3, "positives": 1, "accuracy": {"value": 1.0}}],
            made={"command": "evenhand fit"},
            bounds=[{"measure": "a", "at_most": 1}],
            bounds_in_words=["Kept: a ≤ 1"],
            limits=list(LIMITS),
            validation={"delta": {"value": 0.125, "low": None}},
        )
    )
    assert text.splitlines()[0] == r"# A \<b\>model"
    for line in ("- people: 1,200", "- groups: f 3", "- notes: a, b", "- said: One. Two.", "| flip rate | 0.5000 | 0.2500 to 0.7500 |",
                 "| auc | – | – |", "| gap | 2.8e-06 | 1.2e-06 to 0.000213 |", "| group | people | accuracy |", "| f | 3 | 1.0000 (–) |",
                 "- command: evenhand fit", f"- {LIMITS[0]}", "- Kept: a ≤ 1",
                 "| delta | 0.1250 | – |"):  # fmt: skip
        assert line in text.splitlines()


@pytest.mark.parametrize(
    "text", ["<script>x</script>", "a|b", "[x](javascript:y)", "`x`", "a\nb\u202e", "# a"]
)
def test_names_from_the_data_mean_nothing_to_markdown(text):
    made = plain(text)
    assert "\n" not in made
    assert "\u202e" not in made
    for sign in "<>|[]`#":
        assert made.count(sign) == made.count("\\" + sign)
