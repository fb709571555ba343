from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.datasets import available, load
from evenhand.datasets.sources import COMPAS_SCORES, DAYS_IN_HOSPITAL_Y2, DAYS_IN_HOSPITAL_Y3, has_private


@pytest.mark.data
@pytest.mark.parametrize("name", available().index)
def test_each_entry_loads_as_it_says(name: str) -> None:
    if name in ("health", "compas-full") and not has_private(
        COMPAS_SCORES, DAYS_IN_HOSPITAL_Y2, DAYS_IN_HOSPITAL_Y3
    ):
        pytest.skip("the files of ../shared/data are not there; EVENHAND_DATA can name their folder")
    entry, dataset = available().loc[name], load(name)
    assert dataset.name == name
    assert len(dataset) == entry["people"]
    assert dataset.sensitive.columns[0] == entry["sensitive"]
    assert dataset.description
    assert dataset.source
    assert dataset.licence


def test_says_what_is_ready_and_what_is_missing(tmp_path: Path) -> None:
    ready = available(cache_dir=tmp_path, data_dir=tmp_path)["ready"]
    assert ready["adult"] == "downloads"
    assert ready["compas-full"] == f"needs compas/compas-scores.csv in {tmp_path}"
    files = "health/DaysInHospital_Y2.csv, health/DaysInHospital_Y3.csv"
    assert ready["health"] == f"needs {files} in {tmp_path}"


@pytest.mark.data
def test_options_reach_the_loader() -> None:
    assert len(load("adult", rows="complete")) == 45_222


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"Got name='germany'.*Did you mean 'german'"):
        load("germany")
