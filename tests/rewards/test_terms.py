import numpy as np
import pytest

from evenhand.rewards import (
    KL,
    Agreement,
    Correctness,
    Custom,
    EqualizedOdds,
    EqualOpportunity,
    JensenShannon,
    Likelihood,
    LogRatio,
    Parity,
    RateTerm,
    Reward,
    as_reward,
    pack_terms,
)
from evenhand.rewards.registry import BY_NAME, TERMS, rewards
from evenhand.rewards.term import Seen


def test_terms_add_up_in_any_bracketing():
    a, b, c = Correctness(), LogRatio(weight=2), Parity()
    assert (a + b) + c == a + (b + c) == Reward((a, b, c))


def test_a_term_without_weight_takes_the_estimators():
    terms = pack_terms(Correctness() + LogRatio() + KL(weight=3) + Agreement(weight=0.5), 7.0, 2)
    assert (terms.log_ratio.weight, terms.kl.weight, terms.agreement.weight) == (7, 3, 0.5)


@pytest.mark.parametrize(
    ("term", "wanted"),
    [
        (Parity(), {(2, 1)}),
        (EqualOpportunity(), {(1, 1)}),
        (EqualizedOdds(), {(0, 1), (1, 1)}),
    ],
)
def test_with_two_labels_the_second_is_bounded(term, wanted):
    assert set(zip(*(at.tolist() for at in np.nonzero(term.mask(2))), strict=True)) == wanted


def test_with_more_labels_all_are_bounded():
    assert Parity().mask(3)[3].all()
    assert not Parity().mask(3)[:3].any()
    assert np.array_equal(EqualOpportunity().mask(3)[:3], np.eye(3, dtype=bool))
    assert EqualizedOdds().mask(3)[:3].all()


@pytest.mark.parametrize(
    ("term", "message"),
    [
        (Likelihood(clip=0.5), "Got clip=0.5"),
        (KL(divergence="euclid"), "Got divergence='euclid'"),
        (Parity(averaging=0), "Got averaging=0"),
        (Parity(measure="counts"), "expected one of 'decisions', 'probabilities'"),
        (Parity(dual_step=-1), "Got dual_step=-1"),
        (Parity(dual_step="fast"), "Got dual_step='fast'"),
        (Correctness(gains=[[1, np.inf], [0, 1]]), "finite"),
        (Custom(function=3), "expected a function Numba can compile"),
    ],
)
def test_bad_parameters_are_named(term, message):
    with pytest.raises(ValueError, match=message):
        pack_terms(as_reward(term), 1.0, 2)


def test_every_registered_term_has_a_name_of_its_own_and_is_neutral_where_left_out():
    assert len(BY_NAME) + 1 == sum(len(term.variants()) for term in TERMS)
    seen = Seen(*(np.array([x]) for x in (1, 0)), np.array([[[0.2, 0.8], [0.6, 0.4]]]), np.log([[[0.2, 0.8], [0.6, 0.4]]]),
                np.array([1]), np.array([[1, 0]]), True, None)  # fmt: skip
    for name in BY_NAME:
        if BY_NAME[name].settled:
            terms = pack_terms(as_reward(name), 2.0, 2)
            assert np.abs(rewards(terms, seen)).max() > 0
            alone = sum(kind.rewards(getattr(terms, kind.name), seen) for kind in TERMS if kind.name == name)
            np.testing.assert_array_equal(rewards(terms, seen), alone)


def test_no_action_costs_more_than_half_of_log_2_by_jensen_shannon():
    sure = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    with np.errstate(divide="ignore"):
        seen = Seen(
            np.array([0]),
            np.array([0]),
            sure,
            np.maximum(np.log(sure), -700),
            *np.zeros((2, 1, 2), int),
            True,
            None,
        )
    costs = {
        name: -rewards(pack_terms(as_reward(name), 1.0, 2), seen)[0, 0]
        for name in ("jensen_shannon", "log_ratio")
    }
    assert costs["jensen_shannon"] == pytest.approx(np.log(2) / 2)
    assert costs["log_ratio"] > 100
    assert JensenShannon(3) + LogRatio(3) == Reward((JensenShannon(3), LogRatio(3)))


def test_adding_something_else_is_an_error():
    with pytest.raises(TypeError):
        Correctness() + LogRatio() + 3
    with pytest.raises(TypeError, match="not a reward by itself"):
        RateTerm().mask(2)
