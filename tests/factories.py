"""Made-up people: as arrays, as a table and as a data set; and the command line."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from typer.testing import CliRunner, Result

from evenhand.cli import app
from evenhand.datasets import Dataset


def make_arrays(
    n: int = 400,
    features: int = 4,
    *,
    groups: Sequence[Any] = ("f", "m"),
    shares: Sequence[float] | None = None,
    labels: Sequence[Any] = ("no", "yes"),
    bar: float = 0.7,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return contexts, labels and groups: labels lean on the last group itself, and one feature is its proxy."""
    rng = np.random.default_rng(seed)
    s = rng.choice(groups, n, p=shares)
    X = rng.normal(size=(n, features))
    last = s == groups[-1]
    X[:, 1] += last
    score = X[:, 0] + 0.7 * X[:, 1] + 0.8 * last + 0.5 * rng.normal(size=n)
    return X, np.where(score > bar, labels[1], labels[0]), s


def make_people(n: int = 400, seed: int = 0) -> pd.DataFrame:
    """Return a table: a label that hangs on two columns and a little on the group, dates, gaps and codes."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    skill = rng.normal(size=n)
    born = pd.Timestamp("1970-01-01") + pd.to_timedelta(rng.integers(0, 12_000, n), unit="D")
    job = rng.choice(["cook", "clerk", "<b>boss"], n)
    hired = skill + 0.6 * (job == "clerk") + 0.5 * (sex == "m") + rng.normal(scale=0.3, size=n) > 0.3
    return pd.DataFrame(
        {
            "skill": np.where(rng.random(n) < 0.05, np.nan, skill.round(4)),
            "born": born.strftime("%d.%m.%Y"),
            "job": job,
            "branch": rng.integers(1, 4, n),
            "sex": sex,
            "hired": np.where(hired, "yes", "no"),
        }
    )


def make_rare(n: int = 4000, share: float = 0.05, seed: int = 0) -> pd.DataFrame:
    """Return a table in which few people have the label 'yes', more of them men, and no model is sure who has it."""
    rng = np.random.default_rng(seed)
    sex, skill, years = rng.choice(["f", "m"], n), rng.normal(size=n), rng.gamma(4.0, 2.5, n)
    score = skill + 0.1 * years + 0.5 * (sex == "m") + rng.normal(size=n)
    hired = np.where(score > np.quantile(score, 1 - share), "yes", "no")
    return pd.DataFrame({"skill": skill.round(4), "years": years.round(2), "sex": sex, "hired": hired})


def make_dataset(n: int = 400, seed: int = 0, name: str = "people", **more: Any) -> Dataset:
    """Return the same people as a data set: two numbers, one of them with gaps, and a category."""
    table = make_people(n, seed)
    born = pd.to_datetime(table["born"], format="%d.%m.%Y").dt.year.astype(float)
    contexts = pd.DataFrame({"born": born, "skill": table["skill"], "job": table["job"].astype("category")})
    return Dataset(name, contexts, table["hired"], table[["sex"]], pos_label="yes", **more)


# Checks of scikit-learn that our estimators fail, and why.
NOT_EXACT = {
    f"check_sample_weight_equivalence_on_{kind}_data": "networks are exact only in whole batches, and trees "
    "count the people of a leaf; see tests/bandits/test_weights.py"
    for kind in ("dense", "sparse")
}


def outcome(model: Any, X: Any, y: np.ndarray, s: np.ndarray) -> tuple[float, float, float]:
    """Return the accuracy, the gap between the groups' rates of the second label, and the share of flips."""
    decisions = model.probabilities_by_group(X).argmax(2)
    own = model.predict(X, sensitive_features=s)
    rates = [np.mean(own[s == g] == model.classes_[1]) for g in model.groups_]
    flips = np.mean((decisions != decisions[:, :1]).any(1))
    return np.mean(own == y), max(rates) - min(rates), flips


class Fitted(NamedTuple):
    folder: Path
    people: Path
    model: Path
    report: Path
    summary: Path
    result: Result


def evenhand(*arguments: Any, code: int = 0) -> Result:
    """Run the command and return what it said, once its exit code is the expected one."""
    words = [str(argument) for argument in arguments]
    out = CliRunner().invoke(app, words)
    told = f"evenhand {shlex.join(words)}\n{out.output}{out.exit_code}: {out.exception!r}"
    assert out.exit_code == code, told
    return out


FIT = ("--categorical", "branch", "--weights", "0,3", "--epochs", "5", "--jobs", "1")


def growth(work: Callable[[int], object], size: int, times: int = 16) -> float:
    """Return how much longer the work takes at `times` the size, within one run: about `times` if it is linear."""

    def seconds(at: int) -> float:
        began = process_time()
        work(at)
        return process_time() - began

    work(size)
    small, large = (min(seconds(at) for _ in range(again)) for at, again in ((size, 3), (times * size, 2)))
    return large / max(0.001, small)
