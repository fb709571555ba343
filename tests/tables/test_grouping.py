from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from evenhand import CooperativeBandits
from evenhand.tables import load_table, split
from evenhand.tables.preprocessing import prepare


def people(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    skill = rng.normal(size=n)
    return pd.DataFrame(
        {
            "skill": skill,
            "sex": np.where(np.arange(n) % 2, "f", "m"),
            "senior": np.arange(n) // 2 % 2,
            "hired": np.where(skill > 0, "yes", "no"),
        }
    )


def test_several_sensitive_columns_are_crossed_all_the_way_to_the_policies() -> None:
    dataset = load_table(people(), label="hired", sensitive=["sex", "senior"])
    parts = prepare(dataset, split(dataset, seed=0))
    model = CooperativeBandits(epochs=1).fit(parts.train.X, parts.train.y, sensitive_features=parts.train.s)
    assert model.groups_.tolist() == [
        "sex=f, senior=0",
        "sex=f, senior=1",
        "sex=m, senior=0",
        "sex=m, senior=1",
    ]
    assert list(dataset.contexts) == ["skill"]


MARKS = ["?", "unknown", "Unknown", "N/A", "", "  ", None, "NaN", "missing"]


@pytest.mark.parametrize("mark", MARKS)
def test_every_way_to_write_an_unknown_group_is_left_out_and_said(mark: str | None, tmp_path) -> None:
    table = people()
    table.loc[:9, "sex"] = mark
    table.to_csv(tmp_path / "p.csv", index=False)
    for source in (table, tmp_path / "p.csv"):
        dataset = load_table(source, label="hired", sensitive="sex")
        assert set(dataset.sensitive_features) == {"f", "m"}
        assert len(dataset) == 190
        told = [note for note in dataset.notes if note.startswith("Left out: 10 people with unknown 'sex'")]
        assert "--unknown keep" in told[0]


def test_unknown_groups_that_are_kept_are_one_group() -> None:
    table = people().assign(sex=lambda table: table["sex"].astype(object))
    table.loc[:8, "sex"] = MARKS
    dataset = load_table(table, label="hired", sensitive="sex", unknown="keep")
    assert dataset.sensitive_features.value_counts().to_dict() == {"m": 96 - 1, "f": 96, "unknown": 9}
    assert any("they are the group 'unknown'" in note for note in dataset.notes)
    table["senior"] = table["senior"].astype(float).where(table.index > 4)
    codes = load_table(table, label="hired", sensitive="senior", unknown="keep")
    assert codes.sensitive_features.value_counts().to_dict() == {"1": 98, "0": 97, "unknown": 5}
    with pytest.raises(ValueError, match="Got unknown='ask', but expected one of 'keep', 'drop'"):
        load_table(table, label="hired", sensitive="sex", unknown="ask")


def test_none_can_be_a_group() -> None:
    table = people().assign(sex=["none", "catholic"] * 100)
    assert set(load_table(table, label="hired", sensitive="sex").sensitive_features) == {"none", "catholic"}


def test_small_groups_are_merged_and_named() -> None:
    table = people()
    table.loc[:2, "sex"], table.loc[3:8, "sex"] = "x", "y"
    dataset = load_table(table, label="hired", sensitive="sex", merge_small="other", min_group=7)
    assert dataset.sensitive_features.value_counts().to_dict() == {"f": 96, "m": 95, "other": 9}
    assert dataset.merged == {"y": "other", "x": "other"}
    assert "Groups of fewer than 7 people are merged into 'other': 'y' (6), 'x' (3)." in dataset.notes
    untouched = load_table(table, label="hired", sensitive="sex", min_group=7)
    assert set(untouched.sensitive_features) == {"f", "m", "x", "y"}
