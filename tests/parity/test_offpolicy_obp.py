"""Off-policy values against those of the Open Bandit Pipeline, frozen by freeze_obp.py."""

import json
from pathlib import Path

import numpy as np
import pytest

from evenhand.bandits.offpolicy import doubly_robust_value, inverse_propensity_value
from parity.freeze_obp import log

THEIRS = json.loads(Path(__file__).with_name("obp.json").read_text())


@pytest.mark.parametrize("method", THEIRS)
def test_the_value_is_theirs(method):
    policy, actions, rewards, propensities, predicted = log()
    if method in ("direct", "doubly_robust"):
        clip = 0 if method == "direct" else np.inf
        found = doubly_robust_value(policy, actions, rewards, propensities, predicted, clip=clip)
    else:
        taken, steady = policy[np.arange(len(policy)), actions], method == "self_normalised"
        found = inverse_propensity_value(taken, rewards, propensities, self_normalised=steady)
    assert found.value == pytest.approx(THEIRS[method], rel=1e-12)
