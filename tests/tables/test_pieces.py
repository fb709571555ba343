"""Tables in pieces: what is read is what a table in memory has, and what is wrong with a file is said."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenhand.bandits.randomness import uniform
from evenhand.tables import pieces as module
from evenhand.tables.coding import Coding, Encoder
from evenhand.tables.csv_pieces import pieces_of
from evenhand.tables.load import load_table
from evenhand.tables.pieces import drawn
from evenhand.tables.preprocessing import encode, make_preprocessor
from evenhand.tables.surveying import survey
from factories import make_people

ASKED = {
    "label": "hired", "sensitive": "sex", "drop": (), "categorical": (), "map": None, "weight": None, "seed": 0,
    "unknown": "drop", "merge_small": None, "min_group": 20, "pos_label": None,
}  # fmt: skip


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(module, "BATCH", 70)


def many_kinds(n=600):
    """Return people with gaps, dates, codes, truth values, more than a hundred towns, and unknown groups."""
    rng = np.random.default_rng(1)
    people = make_people(n)
    people["town"] = np.char.add("t", rng.geometric(0.02, n).astype(str))
    people["member"] = rng.random(n) < 0.5
    people["since"] = pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.integers(0, 9000, n), unit="D")
    people["zip"] = rng.integers(1, 30, n)
    people["wage"] = rng.lognormal(8, 1, n)
    people.loc[rng.random(n) < 0.1, ["sex"]] = None
    people.loc[rng.random(n) < 0.1, ["hired"]] = None
    people.loc[rng.random(n) < 0.1, ["job"]] = None
    return people


def written(folder, people, files=3):
    folder.mkdir(exist_ok=True)
    for at, part in enumerate(np.array_split(np.arange(len(people)), files)):
        people.iloc[part].to_parquet(folder / f"{at}.parquet", row_group_size=90)
    return folder


def read(found):
    """Return the coding after a whole reading, and everybody's numbers and codes."""
    coding, numbers, codes = Coding(found.contexts, found.kinds), [], []
    for batch in found.pieces.batches(found.used, coding.categories):
        rows = batch[found.combinations.in_rows(batch)[0] >= 0]
        one, other = coding.code(rows, found.pieces.place)
        coding.learn(one, other)
        numbers.append(one)
        codes.append(other)
    return coding, np.concatenate(numbers), np.concatenate(codes)


@pytest.mark.parametrize("how", ["folder", "dask"])
@pytest.mark.parametrize("unknown", ["drop", "keep"])
def test_the_preprocessing_is_that_of_the_table_in_memory(tmp_path, how, unknown):
    people = many_kinds()
    whole = load_table(people, label="hired", sensitive="sex", unknown=unknown)
    table = written(tmp_path / "people", people)
    if how == "dask":
        table = pytest.importorskip("dask.dataframe").from_pandas(people, npartitions=4)
    found = survey(pieces_of(table), sample=1000, **{**ASKED, "unknown": unknown})
    assert found.notes == whole.notes
    pd.testing.assert_frame_equal(found.contexts, whole.contexts)
    coding, numbers, codes = read(found)
    pd.testing.assert_frame_equal(coding.contexts(numbers, codes), whole.contexts)
    inside = make_preprocessor(whole.contexts).fit(whole.contexts)
    streamed = coding.preprocessor()
    assert streamed.get_feature_names_out().tolist() == inside.get_feature_names_out().tolist()
    wanted, found_features = encode(inside, whole.contexts), encode(streamed, whole.contexts)
    assert type(wanted) is type(found_features)
    np.testing.assert_allclose(found_features.toarray(), wanted.toarray(), atol=2e-6)
    ours = Encoder(coding, streamed)(numbers, codes)
    assert np.array_equal(ours.toarray(), found_features.toarray())


def test_few_categories_make_dense_features(tmp_path):
    people = make_people(200)[["skill", "branch", "sex", "hired"]]
    whole = load_table(people, label="hired", sensitive="sex")
    coding, numbers, codes = read(survey(pieces_of(written(tmp_path / "p", people)), sample=1000, **ASKED))
    inside = make_preprocessor(whole.contexts).fit(whole.contexts)
    wanted = encode(inside, whole.contexts)
    ours = Encoder(coding, coding.preprocessor())(numbers, codes)
    assert isinstance(ours, np.ndarray)
    np.testing.assert_allclose(ours, wanted, atol=2e-6)


def test_labels_and_groups_are_counted_exactly_whatever_the_sample(tmp_path):
    people = many_kinds()
    whole = load_table(people, label="hired", sensitive="sex")
    found = survey(pieces_of(written(tmp_path / "people", people)), sample=50, **ASKED)
    table = pd.crosstab(whole.label, whole.sensitive_features)
    assert found.combinations.people.tolist() == table.to_numpy().tolist()
    assert [note for note in found.notes if "Left out" in note] == [
        note for note in whole.notes if "Left out" in note
    ]
    assert found.notes[2] == "What each column holds was decided on 50 rows drawn at random."


def test_a_sample_has_every_row_as_likely(tmp_path):
    people = make_people(900)
    people["at"] = np.arange(900) * 2.5
    found = survey(pieces_of(written(tmp_path / "people", people)), sample=300, **ASKED)
    at = found.contexts["at"].to_numpy() / 2.5
    assert len(at) == 300
    assert np.histogram(at, bins=[0, 225, 450, 675, 900])[0].max() < 100
    assert sorted(at) == sorted(np.argsort(drawn(np.arange(900), 0, 0))[:300])


def test_rows_draw_the_numbers_of_the_compiled_loop():
    rows = np.arange(50)
    assert drawn(rows, 7, 3).tolist() == [uniform(7, row, 3) for row in rows]


def test_small_groups_are_merged_by_their_people_in_the_whole_table(tmp_path):
    people = make_people(400)
    people.loc[:5, "sex"] = "x"
    people.loc[6:30, "sex"] = "y"
    options = {**ASKED, "merge_small": "other"}
    found = survey(pieces_of(written(tmp_path / "people", people)), sample=30, **options)
    assert found.combinations.names.tolist() == ["f", "m", "other", "y"]
    assert found.combinations.settled.merged == {"x": "other"}
    assert "Groups of fewer than 20 people are merged into 'other': 'x' (6)." in found.notes


def test_values_are_called_otherwise(tmp_path):
    options = {**ASKED, "map": {"yes": 1, "no": 0, "sex:f": "w", "job:cook": "chef"}}
    found = survey(pieces_of(written(tmp_path / "people", make_people(200))), sample=1000, **options)
    assert found.combinations.classes.tolist() == [0, 1]
    assert found.combinations.names.tolist() == ["m", "w"]
    assert "chef" in set(found.contexts["job"])


# What is wrong with files ------------------------------------------------------------------------------


def test_a_damaged_row_group_is_named(tmp_path):
    path = written(tmp_path / "people", make_people(300), files=1) / "0.parquet"
    group = pq.ParquetFile(path).metadata.row_group(2).column(0)
    content = bytearray(path.read_bytes())
    start = group.dictionary_page_offset or group.data_page_offset
    content[start : start + group.total_compressed_size] = b"\xff" * group.total_compressed_size
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"0\.parquet is not a complete Parquet file \(row group 2\)"):
        survey(pieces_of(path), sample=1000, **ASKED)


def test_a_file_that_is_cut_off_is_named(tmp_path):
    folder = written(tmp_path / "people", make_people(300))
    (folder / "1.parquet").write_bytes((folder / "1.parquet").read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"1\.parquet is not a complete Parquet file"):
        pieces_of(folder)


def test_a_file_that_changes_between_readings_is_named(tmp_path):
    folder = written(tmp_path / "people", make_people(300))
    found = survey(pieces_of(folder), sample=1000, **ASKED)
    os.utime(folder / "2.parquet", ns=(1, 1))
    with pytest.raises(ValueError, match=r"2\.parquet was changed while it was read"):
        read(found)


def test_a_type_that_differs_between_files_is_named(tmp_path):
    folder = written(tmp_path / "people", make_people(300))
    last = pd.read_parquet(folder / "2.parquet")
    last.assign(branch=last["branch"].astype(str)).to_parquet(folder / "2.parquet")
    with pytest.raises(ValueError, match=r"Got 'branch' as .*string in .*2\.parquet, but as int64"):
        pieces_of(folder)


def test_empty_files_and_partitions_have_nobody(tmp_path):
    people = make_people(300)
    folder = written(tmp_path / "people", people)
    schema = pq.read_schema(folder / "0.parquet")
    pq.write_table(schema.empty_table(), folder / "00.parquet")
    found = survey(pieces_of(folder), sample=1000, **ASKED)
    assert found.rows == 300
    dask = pytest.importorskip("dask.dataframe")
    frame = dask.from_pandas(people.assign(at=np.arange(300) * 2.5), npartitions=3)
    frame = frame[frame["at"] >= 300]  # the first partition is empty then
    assert survey(pieces_of(frame), sample=1000, **ASKED).rows == 180
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "none.parquet")
    with pytest.raises(ValueError, match=r"none\.parquet has no rows"):
        survey(pieces_of(tmp_path / "none.parquet"), sample=1000, **ASKED)
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        ValueError, match="empty is a folder without Parquet files; expected a CSV, Parquet or Excel"
    ):
        pieces_of(tmp_path / "empty")


def test_a_value_of_another_kind_than_the_sample_has_is_placed(tmp_path):
    people = make_people(300)
    people["grade"] = [str(at % 40) for at in range(300)]
    people.loc[299, "grade"] = "high"
    folder = written(tmp_path / "people", people)
    seed = next(seed for seed in range(9) if 299 not in np.argsort(drawn(np.arange(300), seed, 0))[:100])
    found = survey(pieces_of(folder), sample=100, **{**ASKED, "seed": seed})
    with pytest.raises(
        ValueError, match=r"2\.parquet, row 99, column 'grade': got 'high', expected a number"
    ):
        read(found)


def test_a_category_that_the_sample_lacks_is_one_like_the_others(tmp_path):
    people = make_people(300)
    people.loc[299, "job"] = "smith"
    folder = written(tmp_path / "people", people)
    seed = next(seed for seed in range(9) if 299 not in np.argsort(drawn(np.arange(300), seed, 0))[:100])
    found = survey(pieces_of(folder), sample=100, **{**ASKED, "seed": seed})
    assert "smith" not in set(found.contexts["job"])
    assert "job_smith" in read(found)[0].preprocessor().get_feature_names_out().tolist()


def test_too_many_labels_are_refused_before_they_fill_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("evenhand.tables.surveying.MOST", 50)
    folder = written(tmp_path / "people", make_people(300))
    with pytest.raises(ValueError, match="more than 50 combinations of 'skill', 'sex'"):
        survey(pieces_of(folder), sample=100, **{**ASKED, "label": "skill"})


def test_other_tables_are_not_read_in_pieces():
    assert pieces_of(make_people(30)) is None


# CSV ---------------------------------------------------------------------------------------------------


def odd_columns():
    """Return people whose columns look like numbers, dates or truths for a while, and then do not."""
    people = many_kinds(400).drop(columns=["since", "wage"])
    people["postal"] = [f"{at % 50:04d}" for at in range(400)]
    people["grade"] = [str(at % 12) if at < 300 else "none yet" for at in range(400)]
    people["open"] = ["True" if at % 3 else "False" for at in range(400)]
    people["shut"] = ["True" if at < 200 else "maybe" for at in range(400)]
    people["score"] = [f"{at}.50" if at % 5 else "" for at in range(400)]
    people["late"] = ["" if at < 250 else f"{at % 9}" for at in range(400)]
    people["said"] = ["'=1" if at == 333 else "x" if at % 2 else "y" for at in range(400)]
    return people


@pytest.mark.parametrize(
    ("ending", "how"),
    [(".csv", {}), (".csv.gz", {}), (".csv", {"sep": ";"}), (".csv", {"sep": ";", "decimal": ","})],
    ids=str,
)
def test_a_csv_file_is_read_as_in_memory(tmp_path, ending, how):
    path = tmp_path / f"people{ending}"
    people = odd_columns()
    if "decimal" in how:
        people["score"] = pd.to_numeric(people["score"])
    people.to_csv(path, index=False, **how)
    whole = load_table(path, label="hired", sensitive="sex")
    found = survey(pieces_of(path), sample=1000, **ASKED)
    assert found.notes == whole.notes
    pd.testing.assert_frame_equal(found.contexts, whole.contexts)
    coding, numbers, codes = read(found)
    pd.testing.assert_frame_equal(coding.contexts(numbers, codes), whole.contexts)


def test_decimal_commas_in_parquet_are_read_as_in_memory(tmp_path):
    people = make_people(200).astype({"skill": "str"})
    people["skill"] = people["skill"].str.replace(".", ",")
    people.to_parquet(tmp_path / "people.parquet")
    whole = load_table(tmp_path / "people.parquet", label="hired", sensitive="sex", decimal=",")
    found = survey(pieces_of(tmp_path / "people.parquet", decimal=","), sample=1000, **ASKED)
    pd.testing.assert_frame_equal(found.contexts, whole.contexts)


def test_a_damaged_line_of_csv_is_named(tmp_path):
    path = tmp_path / "people.csv"
    make_people(300).to_csv(path, index=False)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:200], "1,2", *lines[200:]]))
    with pytest.raises(ValueError, match=r"people\.csv, line 201 has 2 fields"):
        survey(pieces_of(path), sample=1000, **ASKED)
    path.write_bytes("\n".join(lines).encode().replace(b"clerk", b"cl\xe9rk"))
    with pytest.raises(ValueError, match="UTF-8"):
        survey(pieces_of(path), sample=1000, **ASKED)


def test_a_wrong_value_of_csv_is_placed_in_its_line(tmp_path):
    people = make_people(300)
    people["age"] = np.arange(300) % 60 + 0.5
    people["age"] = people["age"].astype(str)
    people.loc[299, "age"] = "old"
    people.to_csv(tmp_path / "people.csv", index=False)
    seed = next(seed for seed in range(9) if 299 not in np.argsort(drawn(np.arange(300), seed, 0))[:100])
    found = survey(pieces_of(tmp_path / "people.csv"), sample=100, **{**ASKED, "seed": seed})
    with pytest.raises(
        ValueError, match=r"people\.csv, line 301, column 'age': got 'old', expected a number"
    ):
        read(found)
