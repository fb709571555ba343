from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from evenhand.metrics.asking import respond
from evenhand.metrics.group_columns import reveals, sensitive_columns, telling_columns
from evenhand.metrics.individual import flip_rate

RNG = np.random.default_rng(0)
N = 300
RACE = RNG.choice(["asian", "black", "white"], N, p=[0.2, 0.5, 0.3])
BLACK = RACE == "black"
AGE = RNG.integers(18, 80, N)
INCOME = RNG.normal(size=N)


def codes(groups: Any) -> np.ndarray:
    return np.asarray(pd.factorize(np.asarray(groups), sort=True)[0])


def tree(X: Any, y: Any) -> DecisionTreeClassifier:
    return DecisionTreeClassifier(random_state=0).fit(X, y)


def one_hot(drop: str | None = None) -> pd.DataFrame:
    kinds = [kind for kind in ("asian", "black", "white") if kind != drop]
    return pd.DataFrame({"income": INCOME, **{f"race_{kind}": (kind == RACE) * 1.0 for kind in kinds}})


def test_a_column_that_tells_more_than_the_group() -> None:
    X = pd.DataFrame({"race": codes(RACE), "income": INCOME})
    for groups in (BLACK, X["race"] == 1):  # the second has the name of the column, and other values
        said = respond(tree(X, BLACK), X, sensitive_features=groups)
        assert (said.how, said.columns, said.note) == ("values", ["race"], "")
        assert flip_rate(said.decisions_by_group, said.own) == 1


def test_any_value_of_the_other_group_flips_and_probabilities_are_averaged() -> None:
    # Whites and Asians are decided unlike each other; among the black half are decided like each.
    X = pd.DataFrame({"race": codes(RACE), "income": INCOME})
    model = tree(X, (RACE == "asian") | (BLACK & (INCOME > 0)))
    said = respond(model, X, sensitive_features=BLACK)
    as_asian, as_black, as_white = (model.predict_proba(X.assign(race=race)) for race in range(3))
    asians, whites = (RACE == "asian").sum(), (RACE == "white").sum()
    mixed = (asians * as_asian + whites * as_white) / (asians + whites)
    own = model.predict_proba(X)
    np.testing.assert_allclose(said.probabilities_by_group[:, 0], np.where(BLACK[:, None], mixed, own))
    np.testing.assert_allclose(said.probabilities_by_group[:, 1], np.where(BLACK[:, None], own, as_black))
    decided = model.predict(X)
    any_changes = (as_asian[:, 1] > 0.5) != decided
    any_changes |= (as_white[:, 1] > 0.5) != decided
    changes = np.where(BLACK, any_changes, (as_black[:, 1] > 0.5) != decided)
    assert flip_rate(said.decisions_by_group, said.own) == changes.mean()
    np.testing.assert_array_equal(said.decisions, said.decisions_by_group[np.arange(N), said.own])


def test_numbers_that_fall_in_one_group_each() -> None:
    old = np.where(AGE > 40, "old", "young")
    X = np.column_stack([INCOME, AGE])
    said = respond(tree(X[:, 1:], old == "old"), X[:, 1:], sensitive_features=old)
    assert (said.how, said.columns) == ("values", [0])
    assert flip_rate(said.decisions_by_group, said.own) == 1
    assert telling_columns(pd.DataFrame(X), old, codes(old)).more == [1]


@pytest.mark.parametrize("wrap", [np.asarray, lambda groups: pd.Series(groups, name="gender")])
def test_a_small_group_hides_no_column(wrap: Any) -> None:
    sex = np.repeat([0, 1, 2], [150, 141, 9])
    X = pd.DataFrame({"sex": sex, "income": INCOME})
    said = respond(tree(X, sex == 1), X, sensitive_features=wrap(np.array(["f", "m", "x"])[sex]))
    assert (said.how, said.columns) == ("column", ["sex"])
    assert flip_rate(said.decisions_by_group, said.own) == 1


@pytest.mark.parametrize("drop", [None, "asian", "black"])
def test_one_hot_columns_tell_together(drop: str | None) -> None:
    X = one_hot(drop)
    found = telling_columns(X, BLACK, codes(BLACK))
    # Where 'asian' is left out, 'black' alone tells the group.
    assert found.alone == (["race_black"] if drop == "asian" else [])
    assert found.more == ([] if drop == "asian" else list(X.columns[1:]))
    said = respond(tree(X, BLACK), X, sensitive_features=BLACK)
    assert flip_rate(said.decisions_by_group, said.own) == 1


def test_an_unlike_column_before_one_hot_columns_stays_apart() -> None:
    X = one_hot()
    X.insert(1, "rare", (RACE == "white") * (INCOME > 0) * 1)
    assert telling_columns(X, BLACK, codes(BLACK)).more == ["race_asian", "race_black", "race_white"]


def test_a_part_of_crossed_groups_is_told() -> None:
    sex = RNG.choice(["f", "m"], N)
    crossed = pd.DataFrame({"black": BLACK, "sex": sex})
    own = codes([f"{one} {other}" for one, other in zip(BLACK, sex, strict=True)])
    X = pd.DataFrame({"race": RACE, "income": INCOME, "gender": sex})
    assert telling_columns(X, crossed, own)[:3] == (["gender"], ["race"], [])
    assert sensitive_columns(X, crossed, own) == ["race", "gender"]


def test_distinct_values_tell_nothing_unless_they_lie_in_bands() -> None:
    X = pd.DataFrame({"income": INCOME, "id": np.arange(N), "name": [f"p{at}" for at in range(N)]})
    assert telling_columns(X, BLACK, codes(BLACK))[:3] == ([], [], [])
    assert respond(tree(X[["income"]], BLACK), X[["income"]], sensitive_features=BLACK).how == "blind"
    assert telling_columns(X, None, codes(np.abs(INCOME) > 1)).more == ["income"]
    rich = INCOME > 0.5
    said = respond(tree(X[["income"]], rich), X[["income"]], sensitive_features=rich)
    assert (said.how, said.columns, said.decisions_by_group) == ("unmeasured", [], None)
    assert "'income', which has too many values to try" in said.note


def test_a_column_with_the_groups_value_left_while_another_is_set() -> None:
    rich = INCOME > 0.5
    X = pd.DataFrame({"rich": rich, "income": INCOME})
    said = respond(tree(X, rich), X, sensitive_features=X["rich"])
    assert (said.how, said.columns) == ("column", ["rich"])
    assert "'income' too, which was left as it was: more people may flip" in said.note


def test_a_model_told_the_group_keeps_what_else_tells_it(told: Any) -> None:
    X = pd.DataFrame({"score": RNG.random(N), "race": RACE})
    model = told.fit(X[["score"]].to_numpy(), np.where(BLACK, "yes", "no"))
    race = np.column_stack([X["score"], codes(RACE)])
    said = respond(model, race, sensitive_features=np.where(BLACK, "f", "m"))
    assert (said.how, said.columns) == ("told", [])
    assert "column 1 too, which was left as it was" in said.note


def test_few_people_leave_it_open() -> None:
    X = pd.DataFrame({"sex": [0, 0, 1, 1], "job": [0, 1, 1, 0]})
    model = tree(X, X["sex"])
    said = respond(model, X, sensitive_features=["f", "f", "m", "m"])
    assert (said.how, said.decisions_by_group, said.probabilities_by_group) == ("unmeasured", None, None)
    assert "column 'sex', but among so few people that may be chance" in said.note
    said = respond(model, X, sensitive_features=pd.Series(["f", "f", "m", "m"], name="sex"))
    assert (said.how, said.note) == ("column", "")


def test_missing_is_a_value_and_extension_types_are_read() -> None:
    X = pd.DataFrame({"seen": np.where(BLACK, np.nan, 1.0), "kind": pd.Categorical(RACE)})
    X["flag"] = pd.array(np.where(BLACK, 1, 0), dtype="Int64")
    X.loc[~BLACK, "flag"] = pd.NA
    assert telling_columns(X, None, codes(BLACK))[:3] == (["seen", "flag"], ["kind"], [])


def wrong(values: Any, at: Any) -> Any:
    """Return values with some people's exchanged."""
    changed = np.asarray(values).copy()
    kinds = np.unique(changed)
    changed[at] = np.where(changed[at] == kinds[-1], kinds[0], kinds[-1])
    return changed


@pytest.mark.parametrize("n_wrong", [1, 5, 10])
@pytest.mark.parametrize("name", ["sex", "gender"])
def test_a_few_wrong_cells_hide_no_column(n_wrong: int, name: str) -> None:
    sex = np.where(np.arange(N) % 2, "m", "f")
    X = pd.DataFrame({"sex": wrong(sex == "m", slice(n_wrong)) * 1, "income": INCOME})
    said = respond(tree(X, X["sex"]), X, sensitive_features=pd.Series(sex, name=name))
    assert (said.how, said.columns) == ("column", ["sex"])
    # Whoever is in the wrong group keeps the same value as a member of the other one.
    assert said.flips.mean() == pytest.approx(1 - n_wrong / N)
    share = 100 - np.ceil(1000 * n_wrong / N) / 10
    assert f"column 'sex' (for {share:.1f} % of the people), which was set to the values" in said.note


def test_a_value_of_several_groups_is_typical_of_none() -> None:
    sex = np.where(np.arange(N) % 2, "m", "f")
    title = np.where(sex == "m", "Mr", np.where(INCOME > 0, "Mrs", "Ms"))
    title[:6] = "Dr"
    X = pd.DataFrame({"title": codes(title), "income": INCOME})
    said = respond(
        tree(X, X["title"] == 0), X, sensitive_features=sex
    )  # only doctors are decided unlike others
    assert (said.how, said.columns) == ("values", ["title"])
    assert "'title' (for 99.0 % of the people)" in said.note
    assert np.flatnonzero(said.flips).tolist() == list(range(6))


def test_a_wrong_cell_of_a_tiny_group_joins_no_others() -> None:
    sex = np.repeat([0, 1, 2], [150, 141, 9])
    X = pd.DataFrame({"sex": wrong(sex, [-1]), "income": INCOME})
    said = respond(tree(X, X["sex"]), X, sensitive_features=sex)
    assert (said.how, said.columns) == ("column", ["sex"])
    assert said.flips.all()


def test_too_many_strays_or_too_few_people_are_not_the_group() -> None:
    sex = np.where(np.arange(N) % 2, "m", "f")
    assert telling_columns(pd.DataFrame({"a": wrong(sex, slice(20))}), None, codes(sex))[:3] == ([], [], [])
    few = pd.DataFrame({"sex": wrong(sex[:20], [0]), **{f"c{at}": INCOME[:20] for at in range(5)}})
    assert telling_columns(few, None, codes(sex[:20])).perhaps == ["sex"]
    assert telling_columns(few.head(12), None, codes(sex[:12]))[:3] == ([], [], [])


def test_strays_among_distinct_numbers() -> None:
    rich = INCOME > 0.5
    rich[np.argsort(INCOME)[[20, 100, 290]]] ^= True
    X = pd.DataFrame({"income": INCOME, "age": AGE})
    said = respond(tree(X, rich), X, sensitive_features=rich)
    assert (said.how, said.flips) == ("unmeasured", None)
    assert "'income' (for 9" in said.note


def test_a_column_with_strays_does_not_stand_in_for_the_group() -> None:
    sex = np.where(np.arange(N) % 2, "m", "f")
    X = pd.DataFrame({"sex": wrong(sex, slice(6)), "gender": sex, "job": wrong(sex, slice(6, 12))})
    given = pd.Series(sex, name="sex")
    assert telling_columns(X, given, codes(sex)).alone == ["sex", "gender", "job"]
    assert sensitive_columns(X, given, codes(sex)) == ["sex", "gender"]
    told = [reveals(X[name], codes(sex), np.ones(N, dtype=int), 3) for name in X]
    assert told == [False, True, False]
    # The second and third group share values for a few, the first shares none.
    kinds, own = np.repeat([0, 1, 2], [100, 101, 99]), np.repeat([0, 1, 2], 100)
    assert list(telling_columns(pd.DataFrame({"kind": kinds}), None, own).strays) == ["kind"]
    assert sensitive_columns(pd.DataFrame({"kind": kinds}), None, own) == ["kind"]


def test_other_values_under_the_same_name_are_counted_and_shown() -> None:
    sex = np.where(np.arange(N) % 2, "m", "f")
    X = pd.DataFrame({"sex": wrong(sex, slice(40))})
    told = (
        r"for 40 of 300 people \('m' where the group is 'f', 'f' where the group is 'm'\); expected the same "
        r"groups in both, for all but 5 % of each group\."
    )
    with pytest.raises(ValueError, match=told):
        telling_columns(X, pd.Series(sex, name="sex"), codes(sex))


def test_a_value_that_is_no_groups_name_stands_for_its_most_frequent_group() -> None:
    sex = np.where(np.arange(N) % 2, "m", "f")
    told = r"for 40 of 300 people \(nan where the group is 'f', 'f' where the group is 'm'\)"
    X = pd.DataFrame({"sex": pd.Series(wrong(sex, slice(40))).map({"f": "f"})})
    with pytest.raises(ValueError, match=told):
        telling_columns(X, pd.Series(sex, name="sex"), codes(sex))


def test_many_people_are_read_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    X = pd.DataFrame({"race": RACE, "age": AGE, "income": INCOME, "job": RNG.choice(list("abc"), N)})
    late = np.where(np.arange(N) < N - 1, BLACK, 1 - BLACK)  # the last person alone is of the other group
    cases = [BLACK, AGE > 40, INCOME > 0.5, np.abs(INCOME) > 1, late, np.arange(N) == N - 1]
    whole = [telling_columns(X, None, codes(groups))[:3] for groups in cases]
    monkeypatch.setattr("evenhand.metrics.group_parts.HEAD", 20)
    assert [telling_columns(X, None, codes(groups))[:3] for groups in cases] == whole
    assert [more for _, more, _ in whole] == [["race"], ["age"], ["income"], ["income"], ["race"], []]


@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.integers(2, 4))
def test_columns_drawn_by_lot_hardly_ever_tell(seed: int, n_values: int, n_groups: int) -> None:
    rng = np.random.default_rng(seed)
    own = rng.integers(n_groups, size=200)
    X = pd.DataFrame({"value": rng.integers(n_values, size=200), "distinct": rng.normal(size=200)})
    assert telling_columns(X, None, own)[:3] == ([], [], [])
