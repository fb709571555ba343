"""The worst possible person on the public data, and the proven bound, by λ and by the size of the hidden layer.

    python experiments/certificates.py --time-limit 300

Ranges and categories are those of the training part. Writes results/certificates/certificates.csv.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from common import PUBLIC

from evenhand import CooperativeBandits, Deployed, certify
from evenhand.datasets import load
from evenhand.tables.columns import kinds_of_columns
from evenhand.tables.preprocessing import prepare
from evenhand.tables.splits import split

SETTINGS = ((20.0, 20), (100.0, 20), (1.0, 20), (20.0, 5))  # λ and hidden units; the defaults first


def deployed(name: str, weight: float, hidden: int) -> tuple[Deployed, pd.DataFrame, pd.DataFrame]:
    """Return a model trained on one split with otherwise default settings, and its training and test people."""
    dataset = load(name)
    parts = prepare(dataset, split(dataset, seed=0))
    model = CooperativeBandits(weight, hidden=hidden, random_state=0)
    model.fit(parts.train.X, parts.train.y, sensitive_features=parts.train.s)
    kinds = kinds_of_columns(dataset.contexts, {})
    held = Deployed(
        parts.preprocessor,
        model,
        kinds,
        str(dataset.label.name),
        dataset.sensitive_columns,
        dataset.pos_label,
    )
    return held, parts.train.contexts, parts.test.contexts


def row(name: str, weight: float, hidden: int, time_limit: float) -> dict[str, object]:
    held, train, test = deployed(name, weight, hidden)
    said = held.probabilities_by_group(test)[:, :, 1]
    certify(held, train, time_limit=0)  # compiles
    began = time.process_time()
    found = certify(held, train, time_limit=time_limit)
    return {
        "dataset": name,
        "lambda": weight,
        "hidden": hidden,
        "largest_of_test": np.ptp(said, axis=1).max(),
        "found": found.worst.gap,
        "bound": found.worst.bound,
        "certified": found.worst.certified,
        "flip_found": found.flip.gap,
        "flip_bound": found.flip.bound,
        "flip_certified": found.flip.certified,
        "seconds": found.seconds,
        "processor_seconds": time.process_time() - began,
        "boxes": found.boxes,
        "time_limit": time_limit,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", nargs="+", default=list(PUBLIC))
    parser.add_argument("--time-limit", type=float, default=300)
    parser.add_argument("--out", type=Path, default=Path("results/certificates"))
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for weight, hidden in SETTINGS:
        for name in asked.datasets:
            rows.append(row(name, weight, hidden, asked.time_limit))
            print(rows[-1], flush=True)
            pd.DataFrame(rows).to_csv(asked.out / "certificates.csv", index=False)


if __name__ == "__main__":
    main()
