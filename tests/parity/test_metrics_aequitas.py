"""Impact ratios against Aequitas's disparities, frozen by freeze_aequitas.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenhand.metrics import impact_ratio, impact_ratios, positive_rates
from parity.freeze_aequitas import people

THEIRS = json.loads(Path(__file__).with_name("aequitas.json").read_text())
LABEL, DECIDED, RACE = people()


@pytest.mark.parametrize("reference", THEIRS)
def test_impact_ratios_are_their_disparities_of_predicted_prevalence(reference: str) -> None:
    theirs = THEIRS[reference]
    assert positive_rates(LABEL, DECIDED, sensitive_features=RACE) == pytest.approx(theirs["pprev"])
    mine = impact_ratios(LABEL, DECIDED, sensitive_features=RACE, reference=reference)
    assert mine == pytest.approx(theirs["pprev_disparity"])
    # The disparity of the predicted positive rate compares how many were selected, however large the groups.
    assert mine != pytest.approx(theirs["ppr_disparity"], rel=0.1)


def test_the_smallest_of_their_disparities_to_the_highest_group_is_the_impact_ratio() -> None:
    prevalence = THEIRS["a"]["pprev"]
    want = min(prevalence.values()) / max(prevalence.values())
    assert impact_ratio(LABEL, DECIDED, sensitive_features=RACE) == pytest.approx(want)
