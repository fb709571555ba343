from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from evenhand.datasets import Dataset, load_adult, load_compas, load_german
from evenhand.protocol import published_split
from evenhand.tables.preprocessing import make_preprocessor, prepare
from evenhand.tables.splits import Split, split
from factories import make_dataset


@given(n=st.integers(10, 500), seed=st.integers(0, 2**32))
def test_everybody_is_in_exactly_one_part(n: int, seed: int) -> None:
    parts = split(n, seed=seed)
    assert sorted(np.concatenate(parts)) == list(range(n))
    assert abs(len(parts.train) - 0.70 * n) <= 0.5
    assert abs(len(parts.validation) - 0.15 * n) <= 1
    assert abs(len(parts.test) - 0.15 * n) <= 1


def test_the_same_seed_gives_the_same_split_on_any_machine() -> None:
    assert [part.tolist() for part in split(12, seed=7)] == [
        [8, 0, 4, 1, 9, 10, 5, 7],
        [6, 2],
        [11, 3],
    ]


def test_another_seed_gives_another_split() -> None:
    assert split(100, seed=0).test.tolist() != split(100, seed=1).test.tolist()


@settings(max_examples=50)
@given(
    strata=st.lists(st.sampled_from("abcd"), min_size=20, max_size=300),
    seed=st.integers(0, 1_000),
)
def test_a_stratified_split_keeps_every_share(strata: list[str], seed: int) -> None:
    parts = split(len(strata), seed=seed, stratify=strata)
    values = np.asarray(strata)
    assert sorted(np.concatenate(parts)) == list(range(len(strata)))
    assert [len(part) for part in parts] == [len(part) for part in split(len(strata), seed=seed)]
    for value in set(strata):
        for part, share in zip(parts, (0.70, 0.15, 0.15), strict=True):
            assert abs((values[part] == value).sum() - share * (values == value).sum()) < 2


@pytest.mark.parametrize("by", ["label", "group", "both"])
def test_stratified_by_name(by: str) -> None:
    dataset = make_dataset(1_000)
    values = {
        "label": dataset.label,
        "group": dataset.sensitive_features,
        "both": dataset.label + dataset.sensitive_features,
    }[by]
    parts = split(dataset, seed=0, stratify=by)
    assert parts.test.tolist() != sorted(parts.test)  # mixed, not one stratum after another
    for value, share in values.value_counts(normalize=True).items():
        assert (values.iloc[parts.test] == value).mean() == pytest.approx(share, abs=2 / 150)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fractions": (0.7, 0.3)}, "expected three"),
        ({"fractions": (0.7, 0.2, 0.2)}, "add up to 1.1, but expected 1"),
        ({"fractions": (0.7, 0.3, 0.0)}, "Got fractions=0.0"),
        ({"seed": -1}, "Got seed=-1"),
        ({"stratify": "label"}, "expected a data set or an array"),
        ({"stratify": "lable"}, "Did you mean 'label'"),
        ({"stratify": ["a"]}, "for 1 people, but expected one value for each of 100"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        split(100, **({"seed": 0} | options))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_too_few_people(n: int) -> None:
    with pytest.raises(ValueError, match=f"{n} people are too few: the .* part of .* would be empty"):
        split(n, seed=0)


def test_zero_people() -> None:
    with pytest.raises(ValueError, match="Got the number of people=0"):
        split(0, seed=0)


def test_the_published_test_part_is_kept_and_validation_comes_from_the_rest() -> None:
    test_rows = np.arange(200) >= 150
    parts = published_split(make_dataset(200, test_rows=test_rows), seed=0)
    assert parts.test.tolist() == list(range(150, 200))
    assert sorted(np.concatenate(parts)) == list(range(200))
    assert (len(parts.train), len(parts.validation)) == (124, 26)


def test_without_a_published_part_the_papers_fractions_hold() -> None:
    ours, plain = published_split(make_dataset(200), seed=3), split(200, seed=3)
    assert all(np.array_equal(one, other) for one, other in zip(ours, plain, strict=True))


def test_a_test_part_of_which_only_the_size_is_known_is_drawn() -> None:
    people = make_dataset(200, test_people=30)
    one, other = (published_split(people, seed=seed) for seed in (0, 1))
    assert [len(part) for part in one] == [140, 30, 30]
    assert sorted(np.concatenate(one)) == list(range(200))
    assert set(one.test) != set(other.test)
    assert all(np.array_equal(*pair) for pair in zip(one, published_split(people, seed=0), strict=True))


@pytest.mark.data
def test_published_parts_of_the_real_data() -> None:
    assert len(published_split(load_adult(rows="published"), seed=0).test) == 15_060
    assert len(published_split(load_german(rows="published"), seed=0).test) == 200
    assert len(published_split(load_compas(rows="published"), seed=0).test) == 1_057


def test_numbers_are_z_scored_and_categories_one_hot_by_hand() -> None:
    dataset = make_dataset(1_000)
    parts = split(dataset, seed=0)
    ready = prepare(dataset, parts)
    train, test = (dataset.contexts.iloc[rows] for rows in (parts.train, parts.test))
    names = list(ready.preprocessor.get_feature_names_out())
    assert names == ["born", "skill", "missingindicator_skill", "job_<b>boss", "job_clerk", "job_cook"]
    born = (test["born"] - train["born"].mean()) / train["born"].std(ddof=0)
    filled = train["skill"].fillna(train["skill"].mean())
    skill = (test["skill"].fillna(train["skill"].mean()) - filled.mean()) / filled.std(ddof=0)
    np.testing.assert_allclose(ready.test.X[:, 0], born, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ready.test.X[:, 1], skill, rtol=1e-4, atol=1e-5)
    assert ((ready.test.X[:, 2] > 0) == test["skill"].isna()).all()
    for position, job in enumerate(("<b>boss", "clerk", "cook"), start=3):
        assert (ready.test.X[:, position] == (test["job"] == job)).all()


def test_the_parts_hold_their_own_people() -> None:
    dataset = make_dataset()
    parts = split(dataset, seed=0)
    ready = prepare(dataset, parts)
    for part, rows in zip((ready.train, ready.validation, ready.test), parts, strict=True):
        assert part.y.tolist() == dataset.label.iloc[rows].tolist()
        assert part.s.tolist() == dataset.sensitive_features.iloc[rows].tolist()
        assert part.contexts.equals(dataset.contexts.iloc[rows].reset_index(drop=True))
        assert part.X.dtype == np.float32


@pytest.mark.data
def test_sparse_where_that_pays() -> None:
    adult, german = load_adult(), load_german()
    wide = prepare(adult, split(adult, seed=0)).validation.X
    assert isinstance(wide, sparse.csr_array)
    assert wide.dtype == np.float32
    assert isinstance(prepare(german, split(german, seed=0)).validation.X, np.ndarray)


def spoiled(dataset: Dataset, rows: np.ndarray[Any, Any]) -> Dataset:
    """Return the data set with other values, a new category and more missing numbers in these rows."""
    contexts = dataset.contexts.copy()
    contexts["job"] = contexts["job"].astype(object)
    contexts.loc[rows, "born"] = 1e9
    contexts.loc[rows, "skill"] = np.nan
    contexts.loc[rows, "job"] = "never seen"
    contexts["job"] = contexts["job"].astype("category")
    return Dataset(dataset.name, contexts, dataset.label, dataset.sensitive, dataset.pos_label)


@pytest.mark.parametrize("others", [("test",), ("validation", "test")])
def test_no_leak_the_other_parts_never_move_a_training_statistic(others: tuple[str, ...]) -> None:
    dataset = make_dataset()
    parts = split(dataset, seed=0)
    rows = np.concatenate([getattr(parts, other) for other in others])
    before, after = prepare(dataset, parts), prepare(spoiled(dataset, rows), parts)
    np.testing.assert_array_equal(before.train.X, after.train.X)
    for step in ("simpleimputer", "standardscaler"):
        one, two = (ready.preprocessor.named_transformers_["numbers"][step] for ready in (before, after))
        for statistic in ("statistics_", "mean_", "scale_"):
            if hasattr(one, statistic):
                np.testing.assert_array_equal(getattr(one, statistic), getattr(two, statistic))
    assert list(before.preprocessor.get_feature_names_out()) == list(
        after.preprocessor.get_feature_names_out()
    )
    assert (after.test.X[:, 3:] == 0).all()  # the new category is nobody's column


def test_a_training_value_does_move_them() -> None:
    dataset = make_dataset()
    parts = split(dataset, seed=0)
    before, after = prepare(dataset, parts), prepare(spoiled(dataset, parts.train[:5]), parts)
    assert before.test.X.shape != after.test.X.shape or not np.array_equal(before.test.X, after.test.X)


def test_which_categories_are_rare_is_decided_by_the_training_part() -> None:
    towns = [f"town {number}" for number in range(120) for _ in range(3)] + ["new town"] * 50
    frame = pd.DataFrame({"town": pd.Categorical(towns)})
    preprocessor = make_preprocessor(frame).fit(frame.iloc[:360])
    names = list(preprocessor.get_feature_names_out())
    assert len(names) == 100
    assert "town_new town" not in names
    shared = names.index("town_infrequent_sklearn")
    assert (preprocessor.transform(frame.iloc[360:])[:, [shared]].toarray() == 1).all()


def test_columns_that_training_never_saw_filled_or_varied() -> None:
    n = 40
    contexts = pd.DataFrame(
        {"x": np.arange(n), "gone": np.nan, "same": 5.0, "flag": [True, False] * (n // 2)}
    )
    contexts.loc[39, ["gone", "same"]] = [1.0, 6.0]
    dataset = Dataset(
        "odd", contexts, pd.Series([0, 1] * (n // 2), name="y"), pd.DataFrame({"s": ["a", "b"] * (n // 2)}), 1
    )
    rows = np.arange(n)
    ready = prepare(dataset, Split(rows[:28], rows[28:34], rows[34:]))
    assert np.isfinite(ready.test.X).all()
    assert ready.train.y.dtype.kind == "i"
    assert "flag_True" in ready.preprocessor.get_feature_names_out()
