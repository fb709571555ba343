"""Metrics of a table's columns by their names: the same in memory, and counted in every engine."""

from __future__ import annotations

import dask.dataframe
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

from evenhand import metrics
from evenhand.tables.load import load_table

N = 600
RNG = np.random.default_rng(0)
PEOPLE = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, N),
        "sex": RNG.choice(["f", "m"], N),
        "race": RNG.choice(["black", "white"], N),
        "paid": RNG.choice(["no", "yes"], N),
        "decision": RNG.choice(["no", "yes"], N, p=[0.3, 0.7]),
        "score": RNG.random(N),
        "weight": RNG.integers(0, 4, N),
    }
)
ENGINES = {
    "pandas": lambda: PEOPLE,
    "polars": lambda: pl.from_pandas(PEOPLE),
    "lazy": lambda: pl.from_pandas(PEOPLE).lazy(),
    "arrow": lambda: pa.Table.from_pandas(PEOPLE),
    "data set": lambda: pyarrow.dataset.dataset(pa.Table.from_pandas(PEOPLE)),
    "duckdb": lambda: duckdb.from_df(PEOPLE),
    "dask": lambda: dask.dataframe.from_pandas(PEOPLE, npartitions=2),
}
COUNTED = (
    metrics.accuracy,
    metrics.balanced_accuracy,
    metrics.positive_rates,
    metrics.discrimination,
    metrics.impact_ratio,
    metrics.impact_ratios,
    metrics.parity_differences,
    metrics.delta,
    metrics.equal_opportunity_difference,
    metrics.equalized_odds_difference,
)


@pytest.mark.parametrize("engine", list(ENGINES))
@pytest.mark.parametrize("weight", [None, "weight"])
def test_metrics_take_the_names_of_columns(engine: str, weight: str | None) -> None:
    data = ENGINES[engine]()
    columns = {"sensitive_features": PEOPLE[["sex", "race"]], "pos_label": "yes"}
    columns |= {} if weight is None else {"sample_weight": PEOPLE[weight]}
    names = {"sensitive_features": ["sex", "race"], "pos_label": "yes", "sample_weight": weight, "data": data}
    for metric in COUNTED:
        assert metric("paid", "decision", **names) == metric(PEOPLE["paid"], PEOPLE["decision"], **columns)
    by_name = metrics.by_group(metrics.accuracy, "paid", "decision", **names)
    assert by_name == pytest.approx(
        metrics.by_group(metrics.accuracy, PEOPLE["paid"], PEOPLE["decision"], **columns), abs=1e-12
    )
    for metric in (metrics.delta, metrics.balanced_accuracy):
        resampling = {"n": 50, "random_state": 0}
        one = metrics.bootstrap_interval(metric, "paid", "decision", **names, **resampling)
        other = metrics.bootstrap_interval(
            metric, PEOPLE["paid"], PEOPLE["decision"], **columns, **resampling
        )
        assert one == other
    for score in (metrics.auc, metrics.calibration_error):  # these need single people
        assert score("paid", "score", **names) == score(PEOPLE["paid"], PEOPLE["score"], **columns)
    one = metrics.bootstrap_interval(metrics.auc, "paid", "score", **names, n=20, random_state=0)
    assert one == metrics.bootstrap_interval(
        metrics.auc, PEOPLE["paid"], PEOPLE["score"], **columns, n=20, random_state=0
    )


@pytest.mark.parametrize("engine", list(ENGINES))
def test_load_table_takes_frames_of_every_engine(engine: str) -> None:
    wanted = load_table(PEOPLE, label="paid", sensitive="sex", drop="score")
    found = load_table(ENGINES[engine](), label="paid", sensitive="sex", drop="score")
    pd.testing.assert_frame_equal(found.contexts, wanted.contexts, check_dtype=False)
    assert found.label.tolist() == wanted.label.tolist()
    assert found.sensitive_features.tolist() == wanted.sensitive_features.tolist()


@pytest.mark.parametrize(
    "change, arguments, error",
    [
        ({"paid": None}, {}, "Got 100 missing labels in y_true"),
        ({"decision": None}, {}, "Got 100 missing labels in y_pred"),
        ({"sex": None}, {}, "sensitive_features has 100 missing values; expected a group"),
        ({}, {"sensitive_features": "sxe"}, "Got sensitive_features 'sxe' and data.*Did you mean 'sex'"),
        ({}, {"sensitive_features": "score"}, "Got 300 kinds|combinations"),
        ({"weight": -1}, {"sample_weight": "weight"}, "100 people with a sample_weight that is missing, neg"),
        ({}, {"sample_weight": PEOPLE["weight"]}, "Got sample_weight"),
    ],
)
def test_says_what_is_wrong(change: dict, arguments: dict, error: str, monkeypatch) -> None:
    monkeypatch.setattr("evenhand.metrics.engine.MOST_CELLS", 300)
    frame = PEOPLE.copy()
    for name, value in change.items():
        frame.loc[:99, name] = value
    given = {"sensitive_features": "sex"} | arguments
    with pytest.raises(ValueError, match=error):
        metrics.accuracy("paid", "decision", **given, data=pl.from_pandas(frame).lazy())
