"""Writes confseq.json, bounds that the confseq package gives, for test_confidence.py.

confseq 0.0.11 compiles C++ code with Boost and needs NumPy 1: run this in an environment of its own.
"""

import json
from pathlib import Path

import numpy as np

TIMES = (50, 200, 1000, 5000)


def streams(n=5000, seed=0):
    """Return made-up values from 0 to 1, and what a log of rare actions earned, weighted."""
    rng = np.random.default_rng(seed)
    rare = rng.random(n) < 0.4
    return {
        "coins": (rng.random(n) < 0.3).astype(float),
        "beta": rng.beta(2, 5, n),
        "weighted": rare * (rng.random(n) < 0.6) * 2.5,
    }


def main():
    from confseq.predmix import predmix_empbern_lower_cs, predmix_empbern_twosided_cs

    found = {}
    for name, x in streams().items():
        if name == "weighted":
            low = predmix_empbern_lower_cs(x, alpha=0.025, truncate_mean=True)
            high = np.full(len(x), np.nan)
        else:
            low, high = predmix_empbern_twosided_cs(x, alpha=0.05)
        found[name] = [[low[n - 1], None if np.isnan(high[n - 1]) else high[n - 1]] for n in TIMES]
    Path(__file__).with_name("confseq.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
