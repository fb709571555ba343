"""Fits past memory: what fits in memory is what a fit there gives, and a killed run goes on."""

from __future__ import annotations

import dask
import dask.dataframe
import duckdb
import numpy as np
import pandas as pd
import pyarrow.dataset
import pytest

from evenhand import explore, load
from evenhand.tables import csv_pieces, load_table, pieces
from evenhand.tables.pieces import drawn
from evenhand.tables.surveying import PART
from evenhand.workflow import stream_training, streamed
from evenhand.workflow.deciding import open_model
from factories import evenhand, make_people

ASKED = {"label": "hired", "sensitive": "sex", "weights": [0, 20], "n_jobs": 1}
FEW = {**ASKED, "policies": "networks", "epochs": 3}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(streamed, "LEAST", 10)
    monkeypatch.setattr(pieces, "BATCH", 170)


def written(folder, people, files=3):
    folder.mkdir()
    for at, part in enumerate(np.array_split(np.arange(len(people)), files)):
        people.iloc[part].to_parquet(folder / f"{at}.parquet", row_group_size=250)
    return folder


@pytest.fixture
def folder(tmp_path):
    return written(tmp_path / "people", make_people(1200))


def policies(frontier):
    return [np.concatenate([part.ravel() for part in one.model.policies_]) for one in frontier.trained]


@pytest.mark.parametrize("weighed", [False, True])
def test_a_table_that_fits_in_the_buffer_is_fitted_as_in_memory(tmp_path, weighed):
    people = make_people(1200)
    people["stands_for"] = np.arange(1200) % 4
    options = {**FEW, "epochs": 1, "weight": "stands_for" if weighed else None}
    folder = written(tmp_path / "people", people)
    whole = load_table(people, label="hired", sensitive="sex", weight="stands_for")
    chance = drawn(np.arange(len(whole)), 0, PART)
    split = [
        np.flatnonzero(part) for part in (chance >= 0.3, chance < 0.15, (chance >= 0.15) & (chance < 0.3))
    ]
    inside, outside = explore(people, split=split, **options), explore(folder, buffer_rows=5000, **options)
    for one, other in zip(policies(inside), policies(outside), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)
    assert inside.test_rows == outside.test_rows
    assert inside.notes == outside.notes
    numbers = inside.candidates.drop(columns="name").to_numpy(float), outside.candidates.drop(columns="name")
    np.testing.assert_allclose(numbers[0], numbers[1].to_numpy(float), atol=0.01)
    assert outside.choose().card["data"]["people"] == 1200


def test_networks_learn_from_everybody_and_the_rest_from_a_part(folder):
    frontier = explore(folder, buffer_rows=200, **{**ASKED, "epochs": 3, "weights": [20]})
    card = frontier.choose().card
    assert card["data"]["people"] == 1200
    assert sum(card["data"]["parts"].values()) == 1200
    assert sum(card["data"]["groups"].values()) == 1200
    assert len(frontier.parts.train.y) < 300 < card["data"]["parts"]["train"]
    assert max(len(frontier.parts.validation.y), len(frontier.parts.test.y)) < 300
    networks = frontier.trained[0].model.bandits_
    assert networks.n_steps_ == 3 * card["data"]["parts"]["train"]
    assert frontier.trained[0].curve["steps"]
    assert "networks learned from all of them, trees from" in frontier.notes[-1]
    assert "Dataset 'people' (1,200 people" in repr(frontier)


def test_people_in_the_order_of_their_labels_are_learned_as_well(tmp_path):
    people = make_people(4000)
    found = {}
    for name, table in {"mixed": people, "sorted": people.sort_values("hired")}.items():
        frontier = explore(
            written(tmp_path / name, table), buffer_rows=300, **{**FEW, "weights": [1], "epochs": 5}
        )
        found[name] = frontier.candidates["accuracy"].max()
    assert abs(found["mixed"] - found["sorted"]) < 0.05
    assert min(found.values()) > 0.8


class Killed(BaseException):
    pass


def test_a_killed_run_goes_on_where_it_stopped(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(stream_training, "EVERY", 0.0)
    whole = explore(folder, buffer_rows=100, **FEW)
    meet, calls = stream_training.meet, []

    def killed(*arguments, **options):
        if len(calls) == 7:
            raise Killed
        calls.append(1)
        meet(*arguments, **options)

    monkeypatch.setattr(stream_training, "meet", killed)
    with pytest.raises(Killed):
        explore(folder, buffer_rows=100, resume=tmp_path / "kept", **FEW)
    assert not list((tmp_path / "kept").glob("people-*"))  # no people are left behind
    calls.clear()
    monkeypatch.setattr(stream_training, "meet", lambda *a, **o: (calls.append(1), meet(*a, **o)))
    again = explore(folder, buffer_rows=100, resume=tmp_path / "kept", **FEW)
    buckets = -(-0.83 * 1200 // 100) * 3
    assert 0 < len(calls) < buckets - 5
    for one, other in zip(policies(whole), policies(again), strict=True):
        assert np.array_equal(one, other)
    assert [one.curve for one in whole.trained] == [one.curve for one in again.trained]


def test_people_whom_a_killed_run_left_on_the_disk_are_deleted(folder, tmp_path):
    left = tmp_path / "kept" / "people-left"
    left.mkdir(parents=True)
    (left / "00000.people").write_bytes(b"somebody")
    explore(folder, buffer_rows=300, resume=tmp_path / "kept", **FEW)
    assert not left.exists()
    assert not list((tmp_path / "kept").glob("people-*"))


def test_a_damaged_state_is_trained_again(folder, tmp_path):
    explore(folder, buffer_rows=300, resume=tmp_path / "kept", **FEW)
    for path in (tmp_path / "kept").glob("*.skops"):
        path.write_bytes(b"damaged")
    again = explore(folder, buffer_rows=300, resume=tmp_path / "kept", **FEW)
    assert again.trained[0].model.n_steps_ > 0


def test_with_another_bound_only_networks_with_parity_are_trained_again(folder, tmp_path, monkeypatch):
    first = explore(folder, buffer_rows=300, resume=tmp_path / "kept", parity_bound=0.01, **FEW)
    met, meet = [], stream_training.meet
    monkeypatch.setattr(stream_training, "meet", lambda m, *a, **o: (met.append(len(m)), meet(m, *a, **o)))
    again = explore(folder, buffer_rows=300, resume=tmp_path / "kept", parity_bound=0.02, **FEW)
    assert set(met) == {len(again.trained) / 2}
    for one, other in zip(first.trained, again.trained, strict=True):
        assert one.parity or np.array_equal(one.model.policies_.W1, other.model.policies_.W1)


def test_a_state_of_other_people_is_not_used(folder, tmp_path, monkeypatch):
    explore(folder, buffer_rows=300, resume=tmp_path / "kept", **FEW)
    make_people(400, seed=5).to_parquet(folder / "2.parquet")
    calls, meet = [], stream_training.meet
    monkeypatch.setattr(stream_training, "meet", lambda *a, **o: (calls.append(1), meet(*a, **o)))
    explore(folder, buffer_rows=300, resume=tmp_path / "kept", **FEW)
    assert calls


def test_labels_and_groups_that_are_numbers_stay_numbers(tmp_path):
    people = make_people(900)
    people["hired"] = (people["hired"] == "yes").astype(int)
    people["sex"] = np.where(people["sex"] == "m", 1.0, 2.0)
    people.loc[::9, "sex"] = np.nan
    folder = written(tmp_path / "people", people)
    streaming, inside = (explore(table, **options, **FEW).choose() for table, options in (
        (folder, {"buffer_rows": 200}), (people, {})
    ))  # fmt: skip
    for one in (streaming, load(streaming.save(tmp_path / "model.skops"))):
        assert one.classes_.dtype == inside.classes_.dtype == np.int64
        assert one.groups_.tolist() == inside.groups_.tolist()
        assert one.pos_label == 1
        assert one.decide(people[:50]).decision.dtype == inside.decide(people[:50]).decision.dtype


def test_partitions_of_dask_are_people_of_one_fit(folder):
    people = make_people(1200)
    frame = dask.dataframe.from_pandas(people, npartitions=5)
    one, other = (explore(table, buffer_rows=300, **FEW) for table in (folder, frame))
    for policy, same in zip(policies(one), policies(other), strict=True):
        np.testing.assert_allclose(policy, same, atol=1e-5)


@pytest.mark.parametrize("how", ["duckdb", "arrow"])
def test_relations_of_duckdb_and_data_sets_of_arrow_are_people_of_one_fit(folder, how):
    query = f"from read_parquet('{folder}/*.parquet')"
    table = duckdb.sql(query) if how == "duckdb" else pyarrow.dataset.dataset(folder)
    one, other = (explore(people, buffer_rows=300, **FEW) for people in (folder, table))
    for policy, same in zip(policies(one), policies(other), strict=True):
        np.testing.assert_allclose(policy, same, atol=1e-5)
    assert explore(table, **FEW).dataset.whole is None  # few enough for memory


def test_a_frame_with_other_people_at_the_second_reading_is_refused():
    people, calls = make_people(600), []

    def part():
        calls.append(1)
        return people.sample(300, random_state=len(calls))

    frame = dask.dataframe.from_delayed([dask.delayed(part, pure=False)() for _ in range(2)], meta=people[:0])
    with pytest.raises(ValueError, match="the Dask frame has 600 people at the second reading, or others"):
        explore(frame, buffer_rows=300, **FEW)


def test_the_command_line_streams_a_folder(folder, tmp_path, monkeypatch):
    output, page = tmp_path / "model.skops", tmp_path / "report.html"
    evenhand(
        "fit", folder, "--label", "hired", "--sensitive", "sex", "-o", output, "--weights", "20", "--epochs", "2",
        "--policies", "networks", "--report", page,
    )  # fmt: skip
    assert not list(tmp_path.glob(".*unfinished"))
    assert open_model(output).decide(make_people(50)).scored.all()
    assert "1,200" in page.read_text(encoding="utf-8")


def test_a_large_parquet_file_is_streamed_by_itself(tmp_path, monkeypatch):
    make_people(600).to_parquet(tmp_path / "people.parquet")
    inside = explore(tmp_path / "people.parquet", **FEW)
    monkeypatch.setattr(pieces, "LARGE", 500)
    monkeypatch.setattr(streamed, "BUFFER", 100)
    assert inside.dataset.whole is None
    assert explore(tmp_path / "people.parquet", **FEW).dataset.whole.training > 300


def test_a_csv_file_is_streamed_if_asked_or_large(tmp_path, monkeypatch):
    people = make_people(600)
    people.to_csv(tmp_path / "people.csv", index=False)
    people.to_parquet(tmp_path / "people.parquet")
    one, other = (explore(tmp_path / f"people.{kind}", buffer_rows=100, **FEW) for kind in ("csv", "parquet"))
    for policy, same in zip(policies(one), policies(other), strict=True):
        np.testing.assert_allclose(policy, same, atol=1e-5)
    assert explore(tmp_path / "people.csv", **FEW).dataset.whole is None
    monkeypatch.setattr(csv_pieces, "LARGE", 500)
    monkeypatch.setattr(streamed, "BUFFER", 100)
    assert explore(tmp_path / "people.csv", **FEW).dataset.whole.training > 300


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ("people.xlsx", {"buffer_rows": 100}, "only Parquet and CSV files, frames of Dask"),
        ("people.csv", {"buffer_rows": 100, "sheet": "a"}, "only an Excel file"),
        (
            "people.parquet",
            {"buffer_rows": 5},
            "Got buffer_rows=5, but expected a whole number of at least 10",
        ),
        ("people.parquet", {"buffer_rows": 100, "split": [[0], [1], [2]]}, "Got a split for a table that is"),
    ],
)
def test_what_can_not_be_streamed_is_said(tmp_path, table, options, message):
    make_people(60).to_csv(tmp_path / "people.csv")
    make_people(60).to_parquet(tmp_path / "people.parquet")
    make_people(60).to_excel(tmp_path / "people.xlsx", index=False)
    with pytest.raises(ValueError, match=message):
        explore(tmp_path / table, **options, **FEW)


def test_a_group_too_small_to_be_in_memory_is_named(tmp_path):
    people = make_people(3000)
    people.loc[:8, "sex"] = "x"
    with pytest.raises(ValueError, match=r"The group 'x' in 'sex' has 9 people, \d of them among those"):
        explore(written(tmp_path / "people", people), buffer_rows=50, **FEW)


def test_people_of_weight_zero_teach_nothing(tmp_path):
    people = make_people(1200)
    people["stands_for"] = np.where(np.arange(1200) < 300, 0, 2)
    frontier = explore(
        written(tmp_path / "people", people), weight="stands_for", buffer_rows=200, **{**FEW, "epochs": 1}
    )
    assert frontier.trained[0].model.n_steps_ < 0.8 * frontier.dataset.whole.training
    people["stands_for"] = np.where(np.arange(1200) == 700, -1, 1)
    with pytest.raises(ValueError, match="The weight 'stands_for' of .* is -1 in row 701"):
        explore(written(tmp_path / "wrong", people), weight="stands_for", buffer_rows=200, **FEW)


def test_too_little_disk_is_said_before_people_are_read(folder, monkeypatch):
    usage = pd.Series({"free": 10})
    monkeypatch.setattr("evenhand.tables.spool.shutil.disk_usage", lambda path: usage)
    with pytest.raises(
        RuntimeError, match="Got 10 free bytes in .*, but expected .* people are shuffled there"
    ):
        explore(folder, buffer_rows=200, **FEW)


def test_people_who_are_gone_from_the_disk_are_missed(folder, monkeypatch):
    meet = stream_training.meet

    def emptied(*arguments, **options):
        for path in spools[0].folder.glob("*.people"):
            path.write_bytes(b"")
        meet(*arguments, **options)

    spools, spool = [], streamed.Spool
    monkeypatch.setattr(streamed, "Spool", lambda *a, **o: spools.append(spool(*a, **o)) or spools[0])
    monkeypatch.setattr(stream_training, "meet", emptied)
    with pytest.raises(RuntimeError, match=r"Got 0 people in .*\.people, but expected the \d+ put there"):
        explore(folder, buffer_rows=200, **FEW)
