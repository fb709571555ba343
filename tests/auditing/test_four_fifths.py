from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import fisher_exact
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep, proportions_ztest

from evenhand import audit
from evenhand.auditing.four_fifths import compare, fisher, holm

PAIRS = [
    (8, 40, 24, 60),
    (7, 17, 215, 412),
    (0, 9, 4, 9),
    (555, 1181, 667, 1390),
    (5, 5, 9, 9),
    (2, 90, 3, 90),
]


@pytest.mark.parametrize("pair", PAIRS)
def test_the_tests_are_scipy_s_and_statsmodels_s(pair):
    hits, people, of_hits, of_people = pair
    found = compare(*pair)
    table = [[hits, people - hits], [of_hits, of_people - of_hits]]
    assert found["Fisher p"] == pytest.approx(fisher_exact(table).pvalue, rel=1e-9)
    assert found["Difference"] == pytest.approx(hits / people - of_hits / of_people)
    assert found["From"] <= found["Difference"] <= found["To"]
    theirs = confint_proportions_2indep(*pair, compare="diff", method="newcomb")
    assert (found["From"], found["To"]) == pytest.approx(
        theirs, abs=0.09
    )  # theirs begins with Wilson's limits
    if hits < people:
        z, p = proportions_ztest([hits, of_hits], [people, of_people])
        assert (found["z"], found["z-test p"]) == pytest.approx((z, p))
    else:
        assert (found["z"], found["z-test p"]) == (0, 1)


def test_holm_s_correction_is_statsmodels_s():
    p = np.random.default_rng(0).random(20) ** 3
    want = multipletests(p, method="holm")[1]
    assert holm(p) == pytest.approx(want)
    gaps = np.insert(p, [3, 10], np.nan)
    assert holm(gaps)[~np.isnan(gaps)] == pytest.approx(want)


def ratio(pair):
    return pair[0] / pair[1] / (pair[2] / pair[3])


@pytest.mark.parametrize("pair", PAIRS)
def test_so_many_selections_cross_a_line_and_one_fewer_does_not(pair):
    hits, people, of_hits, of_people = pair
    found = compare(*pair)

    def moved(count, down):
        step = -count if down else count
        return hits + step, people, of_hits - step, of_people

    def p(pair):
        numbers, chances = fisher(people, of_people, hits + of_hits)
        return chances[pair[0] - numbers[0]]

    for name, is_found in (
        ("To Cross 4/5", lambda pair: ratio(pair) < 0.8),
        ("To Cross 0.05", lambda pair: p(pair) < 0.05),
    ):
        count, down = found[name], not is_found(pair)
        if np.isnan(count):
            most = min(hits, of_people - of_hits) if down else min(people - hits, of_hits)
            assert all(is_found(moved(step, down)) == (not down) for step in range(most + 1))
        else:
            assert is_found(moved(int(count), down)) == down
            assert is_found(moved(int(count) - 1, down)) != down


def test_the_shortfall_is_what_the_common_rate_would_have_added():
    assert compare(8, 40, 24, 60)["Shortfall"] == pytest.approx(40 * 32 / 100 - 8)


def test_tables_compare_with_the_highest_rate_and_correct_for_all_comparisons():
    sizes = {("f", "a"): (100, 20), ("m", "a"): (100, 40), ("f", "b"): (80, 30), ("m", "b"): (3, 3)}
    rows = [(*who, hit) for who, (n, hits) in sizes.items() for hit in [1] * hits + [0] * (n - hits)]
    table = pd.DataFrame(rows, columns=["sex", "race", "hit"])
    found = audit(table["hit"], None, None, sensitive_features=table[["sex", "race"]], n_bootstrap=2)
    tables = found.statutory("four-fifths").tables
    assert list(tables) == ["sex", "sex: tests", "race", "race: tests", "sex & race", "sex & race: tests"]
    crossed, tests = tables["sex & race"], tables["sex & race: tests"]
    assert crossed["Impact Ratio"].round(3).to_dict() == pytest.approx(
        {("f", "a"): 0.5, ("f", "b"): 0.938, ("m", "a"): 1.0, ("m", "b"): np.nan}, nan_ok=True
    )
    assert crossed.loc[("m", "b"), "Note"] == "left out (1.1 %)"
    assert tests.index.tolist() == [("f", "a"), ("f", "b")]
    assert crossed.loc[("f", "a"), ["Low", "High"]].between(0.25, 0.9).all()
    single = tables["sex: tests"]
    p = pd.concat([part["Fisher p"] for name, part in tables.items() if name.endswith("tests")])
    assert len(p) == 4
    want = holm(p.to_numpy(dtype=float))
    assert single.loc["f", "Holm p"] == pytest.approx(want[0])
    assert tests.loc[("f", "a"), "Holm p"] == pytest.approx(want[2])
    assert tests.loc[("f", "a"), "Holm p"] > tests.loc[("f", "a"), "Fisher p"]


def test_a_tiny_p_is_not_printed_as_none() -> None:
    decided = [1] * 90 + [0] * 10 + [1] * 10 + [0] * 90
    found = audit(decided, None, None, sensitive_features=["a"] * 100 + ["b"] * 100, n_bootstrap=2)
    texts = found.statutory("four-fifths").texts()
    assert texts["group: tests"].loc[0, ["z-test p", "Fisher p", "Holm p"]].tolist() == ["<0.0001"] * 3
    assert texts["group"].loc[1, ["Impact Ratio", "Shortfall"]].tolist() == ["0.111", "40.0"]


def test_where_nobody_is_selected_nothing_is_compared():
    found = audit(
        [0] * 40, None, None, sensitive_features=["a"] * 20 + ["b"] * 20, pos_label=1, n_bootstrap=2
    )
    with pytest.raises(ValueError, match="Got selected=1, but the decisions are 0"):
        found.statutory("four-fifths")
    table = found.statutory("four-fifths", selected=0).tables["group"]
    assert table["Impact Ratio"].tolist() == [1, 1]


def test_with_weights_the_difference_is_that_of_the_rates() -> None:
    rng, sex = np.random.default_rng(0), np.repeat(["f", "m"], 30)
    weights, decided = np.where(rng.random(60) < 0.1, 40.0, 1.0), np.where(rng.random(60) < 0.5, "yes", "no")
    found = audit(decided, None, None, sensitive_features=sex, sample_weight=weights).statutory("four-fifths")
    rates, tests = (table for name, table in found.tables.items())
    difference = tests["Difference"].iloc[0]
    assert difference == pytest.approx(rates["Selection Rate"].min() - rates["Selection Rate"].max())
    assert tests["From"].iloc[0] < difference < tests["To"].iloc[0]


def test_a_category_that_weighs_nothing_is_not_compared() -> None:
    groups, weights = np.repeat(["f", "m", "x"], [50, 50, 5]), np.r_[np.ones(100), np.zeros(5)]
    found = audit(np.tile([0, 1, 1], 35), None, None, sensitive_features=groups, sample_weight=weights)
    table = found.statutory("four-fifths", small=0).tables
    (rates, *_) = table.values()
    assert rates["Impact Ratio"].isna().tolist() == [False, False, True]


def test_an_unknown_decision_is_answered_with_the_known_ones() -> None:
    found = audit(np.tile(["no", "yes"], 220), None, None, sensitive_features=np.repeat(list("abcdefgh"), 55))
    with pytest.raises(ValueError, match="Got selected='maybe', but the decisions are 'no', 'yes'; expected"):
        found.statutory("four-fifths", selected="maybe")
