from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from evenhand.datasets import Dataset
from evenhand.protocol import reproduce as module
from evenhand.protocol.compare import THEIRS
from evenhand.protocol.grids import Method
from evenhand.protocol.reproduce import _command, reproduce
from evenhand.protocol.store import StoreError


@pytest.fixture
def small(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put made-up people in the place of German, and of the students."""
    german = Dataset("german", dataset.contexts, dataset.label, dataset.sensitive, "yes", notes=["made up"])
    monkeypatch.setattr(module, "load_public", lambda name, progress: german)

    def tasks(sensitive: str, majors: Any) -> list[Dataset]:
        return [Dataset("simulated-CS-CS201", german.contexts, german.label, german.sensitive, "yes")]

    monkeypatch.setattr(module, "education_tasks", tasks)


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".csv", ".md", ".json")
    }


@pytest.mark.usefixtures("small")
def test_everything_is_written_and_a_second_run_writes_the_same(tmp_path: Path) -> None:
    results = reproduce(datasets=["german", "education"], out=tmp_path)
    written = files(tmp_path)
    assert set(written) == {
        "table1_discrimination.csv", "table2_delta.csv", "table_bounded.csv", "table3_submodels.csv",
        "table5_education_gender.csv", "table6_education_race.csv", "best.csv", "convergence.csv",
        "theorem.csv", "failures.csv", "tables.md",
    }  # fmt: skip
    assert results.failures.empty
    reproduce(datasets=["german", "education"], out=tmp_path)
    assert files(tmp_path) == written

    assert results.command == "evenhand reproduce --datasets german,education"
    papers, ours = (
        ["LR", "Rawlsian", "LFR", "ALFR", "CCB"],
        ["LR unaware", "CCB cured", "CCB both", "boosted", "boosted both"],
    )
    methods = pd.read_csv(tmp_path / "table1_discrimination.csv")["method"].unique().tolist()
    assert methods == [*papers, *THEIRS, *ours]
    students = pd.read_csv(tmp_path / "table5_education_gender.csv")["method"].unique().tolist()
    assert students == [*papers, *ours]
    assert [curve["method"] for curve in results.curves] == ["CCB", "CCB cured"]
    assert pd.read_csv(tmp_path / "convergence.csv")["method"].unique().tolist() == ["CCB", "CCB cured"]
    assert len(results.theorem) == pd.read_csv(tmp_path / "theorem.csv")["method"].nunique() == 2
    assert "CCB" in str(results)


@pytest.mark.usefixtures("small")
def test_simulated_students_have_none_of_the_authors_variants(tmp_path: Path) -> None:
    results = reproduce(methods=["Rawlsian (authors)"], datasets=["german", "education"], out=tmp_path)
    assert list(results.tables) == ["table1_discrimination", "table2_delta", "table_bounded"]


@pytest.mark.usefixtures("small")
def test_two_seeds_make_intervals(tmp_path: Path) -> None:
    results = reproduce(datasets=["german"], methods=["LR"], seeds=2, out=tmp_path)
    table = results.tables["table1_discrimination"]
    assert (table["seeds"] == 2).all()
    assert (table["low"] <= table["ours"]).all()
    assert "table3_submodels" not in results.tables
    assert list(results.theorem) == []


@pytest.mark.usefixtures("small")
def test_a_part_can_be_asked_for_without_writing_tables(tmp_path: Path) -> None:
    results = reproduce(datasets=["german"], methods=["CCB"], out=tmp_path, tables=False)
    assert set(files(tmp_path)) == set()
    assert len(results.theorem) == 2
    assert results.tables["table3_submodels"]["method"].nunique() == 4


@pytest.mark.usefixtures("small")
def test_where_everything_fails_that_is_what_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(seed: int, **point: Any) -> Any:
        raise RuntimeError("no such luck")

    monkeypatch.setattr(module, "paper_methods", lambda full: [Method("LR", broken)])
    results = reproduce(datasets=["german", "education"], methods=["LR"], out=tmp_path)
    assert results.tables["table1_discrimination"].empty
    assert len(pd.read_csv(tmp_path / "failures.csv")) == 3
    assert results.failures["error"].iloc[0].endswith("no such luck\n")


def test_wrong_names_and_a_damaged_store_are_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Got datasets='germany'.*Did you mean 'german'"):
        reproduce(datasets=["germany"], out=tmp_path)
    with pytest.raises(ValueError, match="Got methods='LRR'.*Did you mean 'LR' or 'LFR'"):
        reproduce(methods=["LRR"], out=tmp_path)
    with pytest.raises(ValueError, match="Got seeds=0"):
        reproduce(seeds=0, out=tmp_path)
    (tmp_path / "trials.sqlite").write_text("no database " * 100)
    with pytest.raises(StoreError, match="damaged, or not a store"):
        reproduce(datasets=["german"], out=tmp_path)


@pytest.mark.data
def test_a_real_data_set_beside_its_published_row(tmp_path: Path) -> None:
    results = reproduce(datasets=["german"], methods=["LR"], out=tmp_path)
    table = results.tables["table1_discrimination"].set_index("metric")
    assert table.loc["accuracy", "published"] == 0.77
    assert abs(table.loc["accuracy", "difference"]) < 0.05
    assert "german: agree: LR; differ: none." in " ".join(results.sentences)


@pytest.mark.parametrize("engine, ending", [("threads", "--methods 'CCB'"), ("cuda", "--engine cuda")])
def test_the_command_names_an_engine_whose_numbers_differ(engine, ending):
    command = _command(True, 100, None, ["CCB"], engine)
    assert command.startswith("evenhand reproduce --full --seeds 100 ")
    assert command.endswith(ending)
