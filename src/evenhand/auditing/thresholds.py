"""How the findings about scores change with the threshold at which they are decided."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from evenhand.metrics.answers import Answers
from evenhand.metrics.measures import measure, value_of

COLUMNS = ["threshold", "positive_rate", "accuracy", "balanced_accuracy", "discrimination"]
_SHARES = np.linspace(0.05, 0.95, 19)  # of the people, who are decided positive


def along_threshold(answers: Answers) -> pd.DataFrame:
    """Return measures at thresholds that give from 95 % to 5 % the positive decision, and at the one given.

    There are no rows where no scores were given, and no accuracy without labels.
    """
    scores, positive = answers.scores, answers.positive
    if answers.threshold is None or scores is None or positive is None:
        return pd.DataFrame(columns=COLUMNS)
    values = scores if scores.ndim == 1 else scores[:, positive]
    bars = {float(bar) for bar in np.quantile(values, _SHARES, method="higher")} | {answers.threshold}
    names = [name for name in COLUMNS[1:] if answers.y is not None or "accuracy" not in name]
    rows = []
    for bar in sorted(bars):
        decided = np.where(values >= bar, positive, 1 - positive)
        found = measure(replace(answers, decided=decided), names, intervals=False)
        rows.append({"threshold": bar} | {name: value_of(found, name) for name in names})
    return pd.DataFrame(rows)
