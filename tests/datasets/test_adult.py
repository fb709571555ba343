from __future__ import annotations

import pytest

from evenhand.datasets import load_adult

pytestmark = pytest.mark.data


def test_all_rows_are_the_documented_ones() -> None:
    adult = load_adult()
    assert len(adult) == 48_842
    assert adult.label.value_counts().to_dict() == {"<=50K": 37_155, ">50K": 11_687}
    assert adult.sensitive_features.value_counts().to_dict() == {"Male": 32_650, "Female": 16_192}
    assert adult.contexts.shape[1] == 13
    assert "fnlwgt" in adult.contexts
    assert (adult.contexts["occupation"] == "?").sum() == 2_809
    assert not adult.contexts.isna().any().any()
    assert adult.test_rows is None


@pytest.mark.parametrize("rows", ["complete", "published"])
def test_complete_cases(rows: str) -> None:
    adult = load_adult(rows=rows)
    assert len(adult) == 45_222
    assert not (adult.contexts == "?").any().any()
    assert (adult.label == ">50K").sum() == 11_208


def test_the_published_test_part_is_the_official_file() -> None:
    adult = load_adult(rows="published")
    assert adult.test_rows is not None
    assert adult.test_rows.sum() == 15_060
    # The majority's share that the published tables show for a constant classifier.
    assert round(float((adult.label[adult.test_rows] == "<=50K").mean()), 4) == 0.7543


def test_sex_is_no_context_and_the_columns_keep_their_kinds() -> None:
    adult = load_adult()
    assert list(adult.sensitive) == ["sex", "race"]
    assert "sex" not in adult.contexts
    assert adult.contexts["age"].dtype == "int64"
    assert set(adult.contexts["race"].cat.categories) == {
        *("White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other")
    }


def test_race_can_be_the_sensitive_one() -> None:
    adult = load_adult(sensitive="race")
    assert adult.sensitive.columns[0] == "race"
    assert "race" not in adult.contexts
    assert "sex" in adult.contexts


def test_unknown_rows_are_named() -> None:
    with pytest.raises(ValueError, match=r"Got rows='complet'.*Did you mean 'complete'"):
        load_adult(rows="complet")
