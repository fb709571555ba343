import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evenhand import CooperativeBandits
from evenhand.groups import codes_of, column_called, column_names, encode_groups


@given(st.lists(st.sampled_from(["b", "a", "c"]), min_size=1))
def test_codes_name_every_person(values):
    groups = encode_groups(values, len(values))
    assert groups.names[groups.codes].tolist() == values
    assert groups.names.tolist() == sorted(set(values))
    assert codes_of(values, len(values), groups.names).tolist() == groups.codes.tolist()


@pytest.mark.parametrize(
    "wrap",
    [
        list,
        np.array,
        pd.Series,
        pl.Series,
        lambda v: pd.DataFrame({"s": v}),
        lambda v: pl.DataFrame({"s": v}),
    ],
)
def test_every_container(wrap):
    assert encode_groups(wrap(["m", "f", "m"]), 3).codes.tolist() == [1, 0, 1]


def test_numbers_keep_their_type_and_mixed_types_sort():
    assert encode_groups([10, 9, 10], 3).names.tolist() == [9, 10]
    assert encode_groups(np.array([1, "a", 2.5], dtype=object), 3).names.tolist() == [1, 2.5, "a"]


def test_a_two_dimensional_array_is_crossed():
    assert encode_groups(np.array([["f", "x"], ["m", "y"]]), 2).names.tolist() == ["f & x", "m & y"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["f", "m"], "Got sensitive_features for 2 people, but expected one value for each of 3"),
        (["f", None, "m"], "has 1 missing values"),
        (pd.DataFrame({"a": ["x"] * 3, "b": ["x", None, None]}), "has 2 missing values in column 'b'"),
        (np.zeros((3, 2, 2)), "neither a column nor a table"),
        (pd.DataFrame(index=range(3)), "no column"),
        (pd.DataFrame([[0, 1]] * 3, columns=["a", "a"]), "Got several columns named 'a'"),
    ],
)
def test_bad_values_are_named(values, message):
    with pytest.raises(ValueError, match=message):
        encode_groups(values, 3)


def test_combinations_that_would_share_a_name_are_an_error():
    crossed = {"a": ["x & y", "x"], "b": ["z", "y & z"]}
    with pytest.raises(
        ValueError, match=r"\['x & y', 'z'\] and \['x', 'y & z'\].*are both named 'x & y & z'"
    ):
        encode_groups(pd.DataFrame(crossed).to_numpy(), 2)
    assert len(encode_groups(crossed, 2).names) == 2
    commas = {"a": ["x, b=y", "x"], "b": ["z", "y, b=z"]}
    with pytest.raises(ValueError, match="are both named 'a=x, b=y, b=z'"):
        encode_groups(commas, 2)
    apart = np.array([["R&D", "y"], ["R&D", "z"], ["x & y", "z"]])
    assert encode_groups(apart, 3).names.tolist() == ["R&D & y", "R&D & z", "x & y & z"]


CROSSED = pd.DataFrame({"sex": ["f", "f", "m"], "old": [0, 1, 0]})


@pytest.mark.parametrize("wrap", [lambda frame: frame, pl.from_pandas, lambda frame: frame.to_dict("list")])
def test_named_columns_come_in_any_order(wrap):
    assert column_names(wrap(CROSSED)) == ["sex", "old"]
    names = encode_groups(CROSSED, 3).names
    assert codes_of(wrap(CROSSED[["old", "sex"]]), 3, names, ["sex", "old"]).tolist() == [0, 1, 2]


def test_columns_without_names_keep_their_order():
    names, nameless = encode_groups(CROSSED, 3).names, CROSSED.to_numpy()
    assert column_names(nameless) is None
    assert column_names(CROSSED["sex"]) is None
    assert column_names(None) is None
    assert codes_of(nameless, 3, names, ["sex", "old"]).tolist() == [0, 1, 2]
    joined = "sex=" + CROSSED["sex"] + ", old=" + CROSSED["old"].astype(str)
    assert codes_of(joined.rename("both"), 3, names, ["sex", "old"]).tolist() == [0, 1, 2]


def test_names_of_an_earlier_version_are_known():
    names = np.array(["f & 0", "f & 1", "m & 0"], dtype=object)
    assert codes_of(CROSSED[["old", "sex"]], 3, names, ["sex", "old"]).tolist() == [0, 1, 2]


def test_other_columns_than_fit_saw_are_an_error():
    names = encode_groups(CROSSED, 3).names
    for other in (CROSSED.rename(columns={"old": "age"}), CROSSED.assign(age=1)):
        with pytest.raises(ValueError, match=r"columns 'sex', .*'age', but fit saw 'sex', 'old'\."):
            codes_of(other, 3, names, ["sex", "old"])


def test_errors_speak_of_no_group_that_nobody_named():
    with pytest.raises(ValueError, match="Got group 'f' .*, but the model was fitted without sensitive_feat"):
        codes_of(["f", "m"], 2, encode_groups(None, 2).names)
    with pytest.raises(ValueError, match=r"Got no sensitive_features, but expected .* one of 'f', 'm'\."):
        codes_of(None, 2, encode_groups(["f", "m"], 2).names)


@pytest.mark.parametrize(
    "features, wanted",
    [
        (["f", "m"], "group"),
        (pd.Series([0, 1], name="sex"), "sex"),
        (pd.Series([0, 1], name=3), "group"),
        (pl.DataFrame({"sex": [0, 1]}), "sex"),
        (CROSSED, "group"),
    ],
)
def test_one_named_column_gives_groups_its_name(features, wanted):
    assert column_called(features) == wanted


def test_the_advice_about_pipelines_is_enough_for_every_call():
    X, s = np.arange(40.0).reshape(-1, 1), np.array(["f", "m"] * 20)
    y = (X[:, 0] > 20).astype(int)
    bandits = CooperativeBandits(steps=50, random_state=0)
    with pytest.raises(ValueError, match="Got no sensitive_features") as raised:
        clone(bandits).fit(X, y, sensitive_features=s).predict(X)
    advice = re.findall(r"set_\w+_request", str(raised.value))
    with config_context(enable_metadata_routing=True):
        for setting in advice:
            getattr(bandits, setting)(sensitive_features=True)
        model = make_pipeline(StandardScaler(), bandits).fit(X, y, sensitive_features=s)
        decided = model.predict(X, sensitive_features=s)
        assert model.score(X, y, sensitive_features=s) == (decided == y).mean()
        assert model.predict_proba(X, sensitive_features=s).shape == (40, 2)
