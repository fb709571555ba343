"""Writes obp.json, values that the Open Bandit Pipeline estimates, for test_offpolicy_obp.py.

obp pins older versions of what evenhand needs: run this in an environment of its own with obp 0.4.1.
"""

import json
from pathlib import Path

import numpy as np

METHODS = {
    "inverse_propensity": "InverseProbabilityWeighting",
    "self_normalised": "SelfNormalizedInverseProbabilityWeighting",
    "doubly_robust": "DoublyRobust",
    "direct": "DirectMethod",
}


def log(n=400, n_actions=3, seed=0):
    """Return a log of three actions, a policy that is to be valued, and somebody's predicted rewards."""
    rng = np.random.default_rng(seed)
    logging, policy = (rng.dirichlet(np.ones(n_actions), n) * 0.9 + 0.1 / n_actions for _ in range(2))
    actions = (logging.cumsum(1) < rng.random((n, 1))).sum(1)
    rewards = rng.normal(0.3 * actions, 0.5)
    predicted = 0.3 * np.arange(n_actions) + rng.normal(0, 0.3, (n, n_actions))
    return policy, actions, rewards, logging[np.arange(n), actions], predicted


def main():
    from obp import ope

    policy, actions, rewards, propensities, predicted = log()
    given = {
        "reward": rewards,
        "action": actions,
        "pscore": propensities,
        "action_dist": policy[:, :, None],
        "estimated_rewards_by_reg_model": predicted[:, :, None],
    }
    found = {}
    for name, theirs in METHODS.items():
        found[name] = getattr(ope, theirs)().estimate_policy_value(**given)
    text = json.dumps({name: float(value) for name, value in found.items()}, indent=1)
    Path(__file__).with_name("obp.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
