"""People in a file: a label that hangs on two features and a little on the group, dates, gaps and codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from typer.testing import CliRunner, Result

from evenhand.cli import app


def make_people(n: int = 400, seed: int = 0) -> pd.DataFrame:
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


class Fitted(NamedTuple):
    folder: Path
    people: Path
    model: Path
    report: Path
    summary: Path
    result: Result


def evenhand(*arguments: Any) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


FIT = ("--categorical", "branch", "--weights", "0,3", "--epochs", "5", "--jobs", "1")
