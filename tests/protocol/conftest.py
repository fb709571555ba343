from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from evenhand.datasets import Dataset


def made_up(people: int = 400, seed: int = 0, name: str = "made-up") -> Dataset:
    """People whose label leans on one number and on the group."""
    rng = np.random.default_rng(seed)
    contexts = pd.DataFrame(rng.normal(size=(people, 3)), columns=["a", "b", "c"])
    contexts["job"] = rng.choice(["cook", "clerk"], people)
    group = rng.choice(["f", "m"], people)
    score = contexts["a"] + 0.8 * (group == "m") + rng.normal(size=people)
    return Dataset(
        name,
        contexts,
        pd.Series(np.where(score > 0.3, "yes", "no"), name="hired"),
        pd.DataFrame({"sex": group}),
        pos_label="yes",
    )


@pytest.fixture
def dataset() -> Dataset:
    return made_up()
