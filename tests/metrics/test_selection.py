from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand import CooperativeBandits, GradientBandit
from evenhand.metrics import Answers, accuracy, discrimination, flip_rate
from evenhand.metrics.selection import (
    BoundedDiscrimination,
    HighestDelta,
    Judged,
    LowestDiscrimination,
    Scores,
    Selector,
    scores_of,
)
from factories import make_arrays


def judged(y: Any, s: Any, n_groups: int = 2) -> Judged:
    return people_of(np.zeros((len(y), 1)), np.asarray(y), np.asarray(s), n_groups)


def people_of(X: Any, y: Any, s: Any, n_groups: int = 2) -> Judged:
    return Judged(X, Answers([0, 1], list(range(n_groups)), s, y=y, pos_label=1))


def score(decided: Any, people: Judged) -> Scores:
    return scores_of(people.people.with_answers(decided=decided))


@given(st.lists(st.tuples(*[st.integers(0, 1)] * 4), min_size=1, max_size=30))
def test_scores_equal_the_metrics(people: list[tuple[int, int, int, int]]) -> None:
    y, s, as_first, as_second = (np.array(column) for column in zip(*people, strict=True))
    decided = np.stack([as_first, as_second], axis=1)
    found = score(decided, judged(y, s))
    own = decided[np.arange(len(y)), s]
    assert found.accuracy == accuracy(y, own)
    assert found.flip_rate == flip_rate(decided, s)
    assert found.positive_rate == own.mean()
    if len(set(s)) == 2 and len(set(y) | set(own)) == 2:
        assert found.discrimination == pytest.approx(
            discrimination(y, own, sensitive_features=s, pos_label=1), abs=1e-12
        )


def test_a_group_with_nobody_here_is_left_out() -> None:
    decided = np.array([[1, 0, 0], [0, 0, 1]])
    assert score(decided, judged([1, 1], [0, 0], 3)).discrimination == 0.5 - 0.5
    assert score(decided, judged([1, 1], [0, 2], 3)).discrimination == 0.0


class Remembered:
    """A model that decides as it is told, for everybody and in every group."""

    def __init__(self, decisions: list[int]) -> None:
        self.decisions = np.array(decisions)

    def probabilities_by_group(self, X: Any) -> Any:
        return np.repeat(np.eye(2)[self.decisions][:, None], 2, axis=1)


def run(checkpoints: list[list[int]], criterion: Any) -> Any:
    people = judged([1, 0, 1, 0], [0, 0, 1, 1])
    selector = Selector(people, [criterion], lambda model: model.decisions.tolist())
    for step, decisions in enumerate(checkpoints):
        selector(step, Remembered(decisions))
    assert selector.checkpoints == len(checkpoints)
    return selector.best[criterion.name]


FAIR_AND_RIGHT, FAIR_AND_WRONG, CONSTANT, UNFAIR = [1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 1], [1, 1, 0, 0]


def test_lowest_discrimination_breaks_ties_by_accuracy_then_the_earlier() -> None:
    best = run([UNFAIR, FAIR_AND_WRONG, CONSTANT, FAIR_AND_RIGHT, FAIR_AND_RIGHT], LowestDiscrimination())
    assert (best.step, best.kept) == (3, FAIR_AND_RIGHT)
    assert (best.scores.accuracy, best.scores.discrimination) == (1.0, 0.0)


def test_highest_delta_breaks_ties_by_discrimination() -> None:
    one, other = Scores(0.75, 0.25, 0.5, 0.0), Scores(0.5, 0.0, 0.5, 0.0)
    assert one.delta == other.delta
    assert HighestDelta().rank(other) > HighestDelta().rank(one)


def test_the_bound_comes_first_then_accuracy() -> None:
    best = run([CONSTANT, UNFAIR, FAIR_AND_RIGHT], BoundedDiscrimination(0.1))
    assert best.step == 2
    only_unfair = BoundedDiscrimination(0.1)
    near, far = Scores(0.5, 0.2, 0.5, 0.0), Scores(0.9, 0.6, 0.5, 0.0)
    assert only_unfair.rank(near) > only_unfair.rank(far)
    with pytest.raises(ValueError, match="Got bound=2"):
        BoundedDiscrimination(2)


def test_what_is_kept_is_of_the_best_checkpoint_not_the_last() -> None:
    assert run([FAIR_AND_RIGHT, UNFAIR, FAIR_AND_WRONG], HighestDelta()).kept == FAIR_AND_RIGHT


def test_nothing_is_kept_where_nothing_is_better() -> None:
    people = judged([1, 0, 1, 0], [0, 0, 1, 1])
    kept: list[int] = []
    selector = Selector(people, [HighestDelta()], lambda model: kept.append(1))
    for _ in range(3):
        selector(0, Remembered(CONSTANT))
    assert kept == [1]


def test_asking_each_group_alone_decides_the_same():
    X, y, s = make_arrays(200, groups=range(3), labels=(0, 1))
    model = CooperativeBandits(0, epochs=5, random_state=0).fit(X, y, sensitive_features=s)
    people = people_of(X, y, s, 3)
    quick, whole = people.scores(model, flips=False), people.scores(model)
    assert quick[:3] == whole[:3]
    assert np.isnan(quick.flip_rate)
    assert whole.flip_rate > 0


def test_one_policy_for_all_flips_nobody():
    X, y, s = make_arrays(100, groups=(0, 1), labels=(0, 1))
    bandit = GradientBandit(epochs=5, random_state=0).fit(X, y)
    people = people_of(X, y, s)
    assert people.scores(bandit).flip_rate == 0
    assert people.scores(bandit, flips=False).accuracy == people.scores(bandit).accuracy == bandit.score(X, y)
