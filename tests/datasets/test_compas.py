from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.datasets import DataUnavailableError, TamperedFileError, load_compas


@pytest.mark.data
def test_filtered_and_published_rows_are_the_documented_ones() -> None:
    filtered, published = load_compas(), load_compas(rows="published")
    assert (len(filtered), len(published)) == (6_172, 5_278)
    assert filtered.sensitive_features.value_counts().to_dict() == {"black": 3_175, "other": 2_997}
    assert published.sensitive_features.value_counts().to_dict() == {"black": 3_175, "other": 2_103}
    assert set(published.sensitive["race"]) == {"African-American", "Caucasian"}
    assert (filtered.label == "yes").sum() == 2_809
    assert (published.label == "yes").sum() == 2_483
    assert (filtered.test_people, published.test_people) == (None, 1_057)


@pytest.mark.data
def test_nothing_from_the_instrument_or_from_afterwards_is_a_context() -> None:
    assert list(load_compas().contexts) == [
        *(
            "sex",
            "age",
            "juv_fel_count",
            "juv_misd_count",
            "juv_other_count",
            "priors_count",
            "c_charge_degree",
        )
    ]


@pytest.mark.data
def test_neither_race_column_is_a_context_unless_sex_is_the_sensitive_one() -> None:
    assert not {"black", "race"} & set(load_compas(sensitive="race").contexts)
    by_sex = load_compas(sensitive="sex").contexts
    assert "race" in by_sex
    assert "sex" not in by_sex


@pytest.mark.private_data
def test_the_full_table_has_a_label_for_11038_of_its_11757() -> None:
    full = load_compas(rows="full")
    assert full.name == "compas-full"
    assert len(full) == 11_757 - 719
    assert (full.label == "yes").sum() == 3_703
    assert full.label.name == "is_recid"


def test_without_the_full_table_it_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(
        DataUnavailableError, match=r"compas/compas-scores.csv is needed.*ProPublica.*EVENHAND_DATA"
    ):
        load_compas(rows="full", data_dir=tmp_path)


def test_another_full_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "compas").mkdir()
    (tmp_path / "compas" / "compas-scores.csv").write_text("id,is_recid\n1,0\n")
    with pytest.raises(TamperedFileError, match="refused"):
        load_compas(rows="full", data_dir=tmp_path)
