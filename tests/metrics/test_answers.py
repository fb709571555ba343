from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.metrics import discrimination, measure, person_flips, person_gaps, respond
from evenhand.metrics.answers import Answers, as_array, positions

RNG = np.random.default_rng(0)
PROBABILITIES = RNG.dirichlet(np.ones(3), (40, 2))
OWN = RNG.integers(0, 2, 40)
PEOPLE = np.arange(40)


def answers(**more: Any) -> Answers:
    return Answers(["a", "b", "c"], ["f", "m"], OWN, PROBABILITIES, **more)


def test_what_probabilities_say() -> None:
    said, decided = answers(), PROBABILITIES.argmax(2)
    assert said.decisions.tolist() == np.array(list("abc"))[decided[PEOPLE, OWN]].tolist()
    assert said.decisions_by_group is not None
    np.testing.assert_array_equal(said.decisions_by_group[PEOPLE, OWN], said.decisions)
    np.testing.assert_array_equal(said.scores, PROBABILITIES[PEOPLE, OWN])
    np.testing.assert_array_equal(said.flips, person_flips(decided, OWN))
    np.testing.assert_array_equal(
        said.gaps("hellinger"), person_gaps(PROBABILITIES, OWN, divergence="hellinger")
    )
    assert len(said) == 40


def test_the_probability_is_that_of_the_positive_label_or_of_the_decision() -> None:
    named, unnamed = answers(pos_label="b"), answers()
    np.testing.assert_array_equal(named.probability_by_group, PROBABILITIES[:, :, 1])
    np.testing.assert_array_equal(named.probability, PROBABILITIES[PEOPLE, OWN, 1])
    np.testing.assert_array_equal(unnamed.probability, PROBABILITIES[PEOPLE, OWN].max(axis=1))
    assert unnamed.positive is None


def test_decisions_alone_know_no_other_group() -> None:
    said = Answers(
        ["no", "yes"], ["f", "m"], np.array([0, 1]), decided=np.array([1, 0]), y=np.array(["no"] * 2)
    )
    assert said.decisions.tolist() == ["yes", "no"]
    assert said.flips is said.decisions_by_group is said.gaps() is said.scores is None
    assert list(measure(said)) == [
        "accuracy",
        "discrimination",
        "delta",
        "positive_rate",
        "balanced_accuracy",
    ]
    with pytest.raises(ValueError, match="no probabilities by group"):
        _ = said.probability
    with pytest.raises(ValueError, match="Got no decisions about these people"):
        _ = Answers(["no", "yes"], ["f"], np.array([0])).decisions
    with pytest.raises(ValueError, match=r"no true labels \(y=None\)"):
        _ = answers().truth


def test_other_answers_about_the_same_people() -> None:
    y = np.array(list("abc"))[RNG.integers(0, 3, 40)]
    said = answers(y=y, pos_label="b")
    alike = said.with_answers(np.repeat(PROBABILITIES[:, :1], 2, axis=1))
    assert alike.flips is not None
    assert not alike.flips.any()
    assert alike.y is y
    np.testing.assert_array_equal(alike.truth, said.truth)
    assert said.with_answers(decided=np.zeros(40, dtype=np.int64)).decisions.tolist() == ["a"] * 40


def test_labels_that_the_model_does_not_know_are_never_right() -> None:
    said = answers(y=np.array(["a", "x", "y", "b"] * 10), pos_label="a")
    assert positions(["a", "x", "y", "b", "x"], said.labels).tolist() == [0, 3, 4, 1, 3]
    right = said.decisions == said.y
    for intervals in (False, True):
        found = measure(said, intervals=intervals)
        assert found["accuracy"]["value"] == right.mean()
        assert "auc" not in found
        shares = [right[said.y == label].mean() for label in "abxy"]
        assert found["balanced_accuracy"]["value"] == pytest.approx(np.mean(shares))


@given(
    st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=2, max_size=30), st.sampled_from([None, 0, 1, 2])
)
def test_counting_quickly_or_for_an_interval_gives_the_same(
    people: list[tuple[int, int, int]], pos_label: int | None
) -> None:
    y, own, decided = (np.array(column) for column in zip(*people, strict=True))
    y[:2], decided[:2] = [0, 1], [2, 2]  # every label is there, as `count` wants it of the positive one
    said = Answers([0, 1, 2], list("fmx"), own, decided=decided, y=y, pos_label=pos_label)
    names = ["accuracy", "discrimination", "delta", "balanced_accuracy"]
    quick, whole = (measure(said, names, intervals=intervals, n=2) for intervals in (False, True))
    assert {name: found["value"] for name, found in quick.items()} == {
        name: found["value"] for name, found in whole.items()
    }
    unequal = discrimination(y, decided, sensitive_features=own, pos_label=pos_label)
    assert quick["discrimination"]["value"] == unequal


def test_names_keep_their_type() -> None:
    assert [type(name) for name in as_array(["no", 1]).tolist()] == [str, int]
    assert as_array([False, True]).dtype.kind == "b"
    assert as_array(["f", "m"]).dtype.kind == "U"


def test_columns_stay_as_they_are_if_wanted(policies: Any) -> None:
    X, sex = RNG.random((30, 1)), RNG.choice(["f", "m"], 30)
    model = policies.fit(X, sex)
    quick = respond(model, X, sensitive_features=sex, change_columns=False, y=sex, pos_label="yes")
    whole = respond(model, X, sensitive_features=sex)
    assert (quick.groups, quick.labels, quick.pos_label) == (whole.groups, whole.labels, "yes")
    np.testing.assert_array_equal(quick.own, whole.own)
    np.testing.assert_array_equal(quick.probabilities_by_group, whole.probabilities_by_group)
    np.testing.assert_array_equal(quick.decisions, whole.decisions)
