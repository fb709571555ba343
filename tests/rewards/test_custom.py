"""A reward function of one's own: tried before training, and compiled anew when what it reads has changed."""

from types import ModuleType

import numpy as np
import pytest

from evenhand import Correctness, Custom, GradientBandit
from evenhand.rewards.compiling import compile_custom, try_custom
from factories import make_arrays

CAP = 0.0
GAINS = np.zeros(2)
settings = ModuleType("settings")
WORLD = make_arrays(200, labels=(0, 1))[:2]


def weights(function):
    bandit = GradientBandit(Correctness() + Custom(function), epochs=1, random_state=0)
    return bandit.fit(*WORLD).policies_.W1


def of_a_number(action, label, group, policies, rates):
    return CAP * action


def of_an_array(action, label, group, policies, rates):
    return GAINS[action]


def of_a_module(action, label, group, policies, rates):
    return settings.CAP * action


@pytest.mark.parametrize("function", [of_a_number, of_an_array, of_a_module])
def test_a_value_from_outside_is_that_of_the_fit(function, monkeypatch):
    found = []
    for cap in (0.0, 5.0, 0.0):
        monkeypatch.setattr(settings, "CAP", cap, raising=False)
        monkeypatch.setitem(globals(), "CAP", cap)
        monkeypatch.setitem(globals(), "GAINS", np.array([0, cap]))
        found.append(weights(function))
    assert (found[0] != found[1]).any()
    np.testing.assert_array_equal(found[0], found[2])


def test_a_value_of_an_outer_function_too():
    cap = 0.0

    def inner(action, label, group, policies, rates):
        return cap * action

    before = weights(inner)
    cap = 5.0
    assert (weights(inner) != before).any()


def test_a_function_is_compiled_once_while_nothing_changes():
    assert compile_custom(of_a_number) is compile_custom(of_a_number)
    assert compile_custom(of_an_array) is compile_custom(of_an_array)
    assert compile_custom(None) is compile_custom(None)


def raises_when_sure(action, label, group, policies, rates):
    if policies[group, action] > 0.8:
        raise ValueError("too sure")
    return 0.0


def raises_at_a_high_rate(action, label, group, policies, rates):
    if rates[group, -1, action] > 0.8:
        raise ValueError("too often")
    return 0.0


def writes_policies(action, label, group, policies, rates):
    policies[group, action] = 0.5
    return 0.0


def writes_rates(action, label, group, policies, rates):
    rates[group, -1, action] *= 2
    return 0.0


def infinite_when_sure(action, label, group, policies, rates):
    return np.inf if policies[group, action] > 0.9 else 0.0


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (raises_when_sure, "'raises_when_sure', for action=., label=., group=0 and policies=.* too sure"),
        (raises_at_a_high_rate, "'raises_at_a_high_rate', .* raised ValueError: too often"),
        (writes_policies, "'writes_policies', .* read-only"),
        (writes_rates, "'writes_rates', .* read-only"),
        (infinite_when_sure, "'infinite_when_sure', .* returned inf, but expected a finite number"),
    ],
)
def test_a_function_that_fails_away_from_even_policies_is_named(function, message):
    with pytest.raises(ValueError, match=message):
        weights(function)


def test_a_log_has_label_minus_1():
    def needs_a_label(action, label, group, policies, rates):
        if label < 0:
            raise ValueError("no label")
        return 0.0

    X, y = WORLD
    bandit = GradientBandit(Custom(needs_a_label), epochs=1, random_state=0)
    with pytest.raises(ValueError, match="label=-1, group=0 .* no label"):
        bandit.fit_logged(X, y, np.ones(len(X)), np.full(len(X), 0.5))
    bandit.fit(X, y)
    try_custom(lambda action, label, group, policies, rates: 1 / (label + 1), 2, 3, False, True)


def test_numbas_reason_is_told():
    def strange(action, label, group, policies, rates):
        return no_such_name + action  # noqa: F821

    with pytest.raises(ValueError, match="Numba says: .*no_such_name") as told:
        compile_custom(strange)
    assert "nopython mode" not in str(told.value)
