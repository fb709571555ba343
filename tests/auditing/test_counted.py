"""The same audit of the same people, in memory and counted in every engine: the same numbers."""

from __future__ import annotations

import shutil

import dask.dataframe
import distributed
import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

from evenhand import audit
from evenhand.auditing import counted_features
from evenhand.metrics import engine

N = 3000
RNG = np.random.default_rng(0)
PEOPLE = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, N),
        "pay": RNG.lognormal(3, 1.5, N),
        "job": RNG.choice(["cook", "clerk", "carter", "cooper", "smith", "baker", "miller"], N),
        "town": RNG.choice(["north", "south"], N),
        "hours": np.where(RNG.random(N) < 0.1, np.nan, RNG.integers(1, 60, N)),
        "black": 0,
        "sex": RNG.choice(["f", "m"], N),
        "race": RNG.choice(["black", "white", "other"], N, p=[0.2, 0.7, 0.1]),
        "weight": RNG.integers(0, 5, N),
    }
)
PEOPLE["black"] = (PEOPLE["race"] == "black").astype(int)
SKILL = RNG.normal(size=N) + 0.4 * (PEOPLE["sex"] == "m") * (PEOPLE["job"] == "cook") * 5
PEOPLE["score"] = SKILL + RNG.normal(size=N)
PEOPLE["paid"] = np.where(SKILL > 0.5, "yes", "no")
PEOPLE["decision"] = np.where(PEOPLE["score"] > 0.5, "yes", "no")
ENGINES = ("pandas", "polars", "duckdb", "dask", "arrow", "spark")


@pytest.fixture(scope="module")
def spark():
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not installed")
    sql = pytest.importorskip("pyspark.sql", reason="PySpark is not installed: pip install pyspark")
    session = (
        sql.SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    yield session
    session.stop()


def in_engine(frame: pd.DataFrame, name: str, request: pytest.FixtureRequest):
    if name == "spark":
        return request.getfixturevalue("spark").createDataFrame(frame)
    return {
        "pandas": lambda: nw.from_native(frame).lazy(),
        "polars": lambda: pl.from_pandas(frame).lazy(),
        "duckdb": lambda: duckdb.from_df(frame),
        "dask": lambda: dask.dataframe.from_pandas(frame, npartitions=3),
        "arrow": lambda: pyarrow.dataset.dataset(pa.Table.from_pandas(frame)),
    }[name]()


def same(counted, whole) -> None:
    """Of so few, everybody is drawn."""
    pd.testing.assert_frame_equal(counted.metrics, whole.metrics, check_exact=True)
    pd.testing.assert_frame_equal(counted.neighbours, whole.neighbours, check_exact=True)
    pd.testing.assert_frame_equal(counted.subgroups, whole.subgroups, check_exact=True)
    assert counted.about == whole.about
    pd.testing.assert_frame_equal(counted.tally.decided, whole.tally.decided)


ROLES = {"y": "paid", "sensitive_features": ["sex", "race"]}


# PySpark says that it is not yet sure of the newest pandas.
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_counts_what_is_in_memory(name: str, request: pytest.FixtureRequest) -> None:
    frame = PEOPLE.drop(columns=["weight", "score"])
    if name == "spark":  # which is slow to start every count
        frame = frame.drop(columns=["pay", "hours", "town"])
    whole = audit("decision", frame, **ROLES, n_bootstrap=50)
    counted = audit("decision", in_engine(frame, name, request), **ROLES, n_bootstrap=50)
    same(counted, whole)
    assert len(counted.subgroups) > 0


@pytest.mark.parametrize("kind", ["category", "flag"])
def test_categories_and_flags_are_counted_as_text_and_numbers_are(kind: str) -> None:
    frame = PEOPLE.drop(columns=["weight", "score", "pay"])
    if kind == "flag":
        frame = frame.assign(**{name: frame[name] == "yes" for name in ("paid", "decision")})
        frame = frame.assign(town=frame["town"] == "north", sex=frame["sex"] == "m")
    whole = audit("decision", frame, **ROLES, n_bootstrap=50)
    lazy = pl.from_pandas(frame).lazy()
    if kind == "category":
        lazy = lazy.with_columns(pl.col(pl.String).cast(pl.Categorical))
    same(audit("decision", lazy, **ROLES, n_bootstrap=50), whole)


@pytest.mark.parametrize(
    "roles",
    [
        {"y": "paid", "sensitive_features": "sex", "sample_weight": "weight"},
        {"y": None, "sensitive_features": "race"},
        {"y": "job", "sensitive_features": "sex"},
        {"y": "paid", "sensitive_features": "sex", "pos_label": "no"},
    ],
    ids=["weighted", "unlabelled", "many labels", "other positive"],
)
def test_other_audits_are_counted_alike(roles: dict) -> None:
    frame = PEOPLE.drop(columns="score")
    if roles["y"] == "job":
        frame["decision"] = RNG.permutation(frame["job"].to_numpy())
    whole = audit("decision", frame, **roles, n_bootstrap=50)
    same(audit("decision", duckdb.from_df(frame), **roles, n_bootstrap=50), whole)


def test_scores_are_decided_in_the_engine() -> None:
    frame = PEOPLE.drop(columns="decision")
    whole = audit("score", frame, **ROLES, threshold=0.5)
    counted = audit("score", duckdb.from_df(frame), **ROLES, threshold=0.5)
    pd.testing.assert_frame_equal(counted.metrics, whole.metrics, check_exact=True)
    pd.testing.assert_frame_equal(counted.subgroups, whole.subgroups, check_exact=True)
    assert "auc" in set(counted.metrics["metric"])


def test_quarters_of_many_values_are_exact_however_few_rows_may_be_fetched(monkeypatch) -> None:
    monkeypatch.setattr(engine, "MOST_ROWS", 3)
    values = np.concatenate([RNG.lognormal(0, 4, 2000), np.repeat(7.25, 900), [1e12]])
    there = engine.Engine(nw.from_native(pl.DataFrame({"pay": values}).lazy()))
    ends = there.ends("pay")
    binned = there.count({"bin": there.bin_of("pay", *ends)})
    found = counted_features.quarters(there.in_order("pay", binned, *ends), len(values))
    assert found.tolist() == np.unique(np.quantile(values, [0.25, 0.5, 0.75])).tolist()


@pytest.mark.parametrize(
    "change, arguments, error",
    [
        (
            {},
            {"sensitive_features": "sxe"},
            "Got sensitive_features='sxe', but X has no such column. Did you",
        ),
        ({}, {"y": "pai"}, "Got y='pai', but X has no such column"),
        ({"sex": None}, {}, "sensitive_features has 100 missing values in column 'sex'; expected a group"),
        ({"paid": None}, {}, "Got 100 missing labels, but expected one per person"),
        ({"decision": None}, {}, "Got 100 missing decisions, but expected one per person"),
        ({"decision": "maybe"}, {}, "Got 'maybe' among the decisions, but the labels are 'no', 'yes'"),
        (
            {"weight": -1},
            {"sample_weight": "weight"},
            "Got 100 people with a sample_weight that is missing, neg",
        ),
        ({}, {"y": PEOPLE["paid"]}, "Got y that is not the name of a column"),
        ({}, {"sensitive_features": ["sex", "paid"]}, "each column once"),
        ({}, {"search": True}, "Got certify or search"),
    ],
)
def test_says_what_is_wrong(change: dict, arguments: dict, error: str) -> None:
    frame = PEOPLE.copy()
    for name, value in change.items():
        frame.loc[:99, name] = value
    with pytest.raises(ValueError, match=error.replace("[", r"\[")):
        audit("decision", pl.from_pandas(frame).lazy(), **(ROLES | arguments))


def test_scores_need_a_threshold_when_they_are_counted() -> None:
    with pytest.raises(ValueError, match="more than 1,000 different values in 'score'.*threshold"):
        audit("score", pl.from_pandas(PEOPLE).lazy(), **ROLES)


def test_columns_that_cannot_be_counted_are_left_out_and_named() -> None:
    frame = PEOPLE[["sex", "paid", "decision", "town"]].assign(name=[f"person {at}" for at in range(N)])
    found = audit("decision", pl.from_pandas(frame).lazy(), "paid", sensitive_features="sex")
    assert any("Subgroups by 'name' were left out" in note for note in found.notes)


def test_a_column_in_memory_is_taken_by_its_name() -> None:
    frame = PEOPLE[["age", "sex", "paid", "decision"]]
    by_name = audit("decision", frame, "paid", sensitive_features="sex")
    given = audit(frame["decision"], frame[["age", "sex"]], frame["paid"], sensitive_features="sex")
    pd.testing.assert_frame_equal(by_name.metrics, given.metrics)


def test_a_near_copy_of_the_decision_is_named_as_in_memory() -> None:
    frame = PEOPLE[["age", "score", "sex", "paid", "decision"]]
    tables = (frame, pl.from_pandas(frame).lazy())
    found = [audit("decision", table, "paid", sensitive_features="sex").notes for table in tables]
    copies = [[note for note in notes if "almost perfectly from 'score'" in note] for notes in found]
    assert copies[0] == copies[1] != []


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.parametrize("name", [name for name in ENGINES if name != "spark"])
def test_the_same_people_are_drawn_in_every_engine(name: str, request: pytest.FixtureRequest) -> None:
    frame = PEOPLE.drop(columns=["weight", "score", "pay"])
    asked = {**ROLES, "n_bootstrap": 10, "neighbour_people": 400}
    one, other = (audit("decision", in_engine(frame, engine, request), **asked) for engine in ("arrow", name))
    pd.testing.assert_frame_equal(one.metrics, other.metrics, check_exact=True)
    pd.testing.assert_frame_equal(one.neighbours, other.neighbours)
    assert one.row("consistency")["people"] == 400
    assert any("400 people, drawn from every group, label and decision" in note for note in one.notes)
    for pair in one.neighbours.itertuples():  # they are named by their rows
        assert frame.loc[pair.person, "decision"] == pair.decision != pair.neighbour_decision


def test_scores_and_weights_of_those_drawn_are_near_those_of_all() -> None:
    frame = pd.concat([PEOPLE.drop(columns="decision")] * 7, ignore_index=True)
    asked = {**ROLES, "threshold": 0.5, "sample_weight": "weight", "neighbour_people": 5000}
    whole, counted = (audit("score", people, **asked) for people in (frame, duckdb.from_df(frame)))
    assert counted.row("auc")["people"] == 5000 < len(frame)
    assert counted.row("auc")["low"] < whole.value("auc") < counted.row("auc")["high"]


def test_twins_are_drawn_from_every_group_alike() -> None:
    frame = pd.concat([PEOPLE[["age", "hours", "sex", "race", "decision"]]] * 3, ignore_index=True)
    roles = {"y": None, "sensitive_features": "race", "twins": True, "n_bootstrap": 10}
    counted = audit("decision", duckdb.from_df(frame), **roles, neighbour_people=900)
    assert counted.twins.about["groups"] == {"black": 300, "other": 300, "white": 300}
    assert any("among 900 people drawn" in note for note in counted.twins.notes)


def test_a_table_of_nobody_is_an_error() -> None:
    nobody = pl.from_pandas(PEOPLE).lazy().filter(pl.col("age") > 1000)
    with pytest.raises(ValueError, match="Got a table without people, but expected some"):
        audit("decision", nobody, **ROLES)


def test_an_empty_partition_is_nobody() -> None:
    frame = PEOPLE[["age", "sex", "race", "paid", "decision"]].sort_values("age", ignore_index=True)
    there = dask.dataframe.from_pandas(frame, npartitions=4)
    there = there[(there["age"] < 30) | (there["age"] > 70)]
    assert 0 in there.map_partitions(len).compute().tolist()
    left = frame[(frame["age"] < 30) | (frame["age"] > 70)].reset_index(drop=True)
    same(*(audit("decision", table, **ROLES, n_bootstrap=10) for table in (there, left)))


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_the_people_of_a_worker_that_dies_are_counted_once(tmp_path) -> None:
    frame, mark = PEOPLE[["sex", "race", "paid", "decision"]], str(tmp_path / "died")

    def dies_once(part: pd.DataFrame) -> pd.DataFrame:
        import os

        if len(part) > 10 and not os.path.exists(mark):
            os.close(os.open(mark, os.O_CREAT))
            os._exit(1)
        return part

    there = dask.dataframe.from_pandas(frame, npartitions=3)
    there = there.map_partitions(dies_once, meta=frame.iloc[:0])
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    )
    with cluster, distributed.Client(cluster):
        counted = audit("decision", there, **ROLES, n_bootstrap=10)
    assert (tmp_path / "died").exists()
    same(counted, audit("decision", frame, **ROLES, n_bootstrap=10))
