from __future__ import annotations

import inspect
import io
import json
from contextlib import redirect_stdout

import pandas as pd
import pytest

from evenhand import load
from evenhand.cli import predict
from evenhand.progress import Progress
from evenhand.tables.pieces import parquet_files
from evenhand.tables.streaming import CHUNK
from evenhand.workflow.deciding import Outcome, decide_file, write_record
from evenhand.workflow.table import NoUsableRowsError
from factories import make_people


class Heard(Progress):
    def __init__(self):
        self.labels = []

    def done(self, label, work=None, pieces=1):
        self.labels.append((label, pieces))


def test_a_file_is_decided_chunk_by_chunk(fitted, tmp_path):
    data, heard = tmp_path / "new.csv", Heard()
    people = make_people(25)
    people.loc[3, "sex"] = "x"
    people.to_csv(data, index=False)
    found = decide_file(fitted.model, data, chunk=10, progress=heard)
    assert found == Outcome(
        decided=24,
        rejected=1,
        would_flip=found.would_flip,
        by_rule=0,
        output=tmp_path / "new.decided.csv",
        rejects=tmp_path / "new.rejects.csv",
        unseen={},
        notes=[],
    )
    assert heard.labels == [("9 people", 10), ("19 people", 10), ("24 people", 5)]
    written = pd.read_csv(found.output)
    assert written["would_flip"].sum() == found.would_flip
    whole = load(fitted.model).decide(people).to_frame()
    assert written["decision"].tolist() == whole["decision"].tolist()
    assert written["probability_as_m"].tolist() == whole["probability_as_m"].tolist()


def test_a_model_at_hand_and_standard_output(fitted, tmp_path):
    data = tmp_path / "new.csv"
    make_people(5).to_csv(data, index=False)
    printed = io.StringIO()
    with redirect_stdout(printed):
        found = decide_file(load(fitted.model), data, "-", prefix="new_")
    assert found.output is None
    assert found.rejects is None
    assert "new_decision" in printed.getvalue().splitlines()[0]
    assert len(printed.getvalue().splitlines()) == 6
    assert [entry.name for entry in tmp_path.iterdir()] == ["new.csv"]


def test_nobody_decided_leaves_only_the_reasons(fitted, tmp_path):
    data = tmp_path / "new.csv"
    make_people(2).assign(sex="x").to_csv(data, index=False)
    with pytest.raises(NoUsableRowsError, match="None of 2 rows could be scored"):
        decide_file(fitted.model, data)
    assert {entry.name for entry in tmp_path.iterdir()} == {"new.csv", "new.rejects.csv"}


def test_the_model_is_not_written_over(fitted, tmp_path):
    with pytest.raises(ValueError, match="which is an input; expected another file"):
        decide_file(fitted.model, fitted.people, tmp_path / "d.csv", rejects=fitted.model)


def test_a_failure_in_the_middle_leaves_no_file(fitted, tmp_path):
    people = make_people(20).to_csv(index=False)
    data = tmp_path / "new.csv"
    data.write_text(people)

    class Stops(Progress):
        def done(self, label, work=None, pieces=1):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        decide_file(fitted.model, data, rejects=tmp_path / "r.csv", chunk=5, progress=Stops())
    assert [entry.name for entry in tmp_path.iterdir()] == ["new.csv"]


def test_the_commands_default_is_the_librarys():
    assert inspect.signature(predict.run).parameters["chunk"].default == CHUNK


def test_the_separator_stays_and_rejects_go_beside_the_output(fitted, tmp_path):
    people = pd.read_csv(fitted.people).head(20)
    people.loc[3, "sex"] = "x"
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    people.to_csv(tmp_path / "in" / "p.csv", sep=";", index=False)
    found = decide_file(fitted.model, tmp_path / "in" / "p.csv", tmp_path / "out" / "d.csv")
    assert found.rejects == tmp_path / "out" / "p.rejects.csv"
    assert [entry.name for entry in (tmp_path / "in").iterdir()] == ["p.csv"]
    for path, rows in ((found.output, 19), (found.rejects, 1)):
        assert len(pd.read_csv(path, sep=";")) == rows


def test_a_folder_is_decided_as_one_file_would_be(fitted, tmp_path, monkeypatch):
    people, folder = make_people(25), tmp_path / "new"
    people.loc[13, "sex"] = "x"
    folder.mkdir()
    for name, rows in {"a": people[:10], "b": people[10:10], "c": people[10:]}.items():
        rows.to_parquet(folder / f"{name}.parquet", index=False)
    people.to_parquet(tmp_path / "whole.parquet", index=False)
    monkeypatch.chdir(folder)
    found = decide_file(fitted.model, ".", chunk=4)
    whole = decide_file(fitted.model, tmp_path / "whole.parquet")
    assert (found.output, found.rejects) == (tmp_path / "new.decided.parquet", tmp_path / "new.rejects.csv")
    pd.testing.assert_frame_equal(pd.read_parquet(found.output), pd.read_parquet(whole.output))
    assert pd.read_csv(found.rejects)["line"].tolist() == [14]
    told = json.loads(
        write_record(tmp_path / "r.json", fitted.model, folder, found, began="", command="").read_text()
    )
    assert told["files"]["input"]["sha256"] == parquet_files(folder).sha256()
    with pytest.raises(ValueError, match="in a folder that is an input"):
        decide_file(fitted.model, folder, folder / "decided.parquet")
    people[:5].assign(age="old").to_parquet(folder / "d.parquet", index=False)
    with pytest.raises(ValueError, match=r"Got 'age' as .* in .*d\.parquet"):
        decide_file(fitted.model, folder)


def test_a_folder_without_tables_is_said(fitted, tmp_path):
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match="none is a folder without Parquet files"):
        decide_file(fitted.model, tmp_path / "none")
