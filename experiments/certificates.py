"""The worst possible person on the public data, and the proven bound, by λ and by the size of the hidden layer.

    python experiments/certificates.py --time-limit 300
    python experiments/certificates.py --policies both trees --time-limit 300

Ranges and categories are those of the training part. Writes results/certificates/certificates.csv, or boosted.csv for
policies with trees.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
from asking import asked
from common import PUBLIC

from evenhand import CooperativeBandits, CooperativeBoosting, CooperativeEnsemble, Deployed, certify
from evenhand.datasets import load
from evenhand.tables.columns import kinds_of_columns
from evenhand.tables.preprocessing import prepare
from evenhand.tables.splits import split

SETTINGS = {  # λ and hidden units; the defaults first
    "networks": ((20.0, 20), (100.0, 20), (1.0, 20), (20.0, 5)),
    "both": ((20.0, 20), (1.0, 20)),
    "trees": ((20.0, 0), (1.0, 0)),
}


def policies_of(kind: str, weight: float, hidden: int) -> Any:
    """Return an estimator with otherwise default settings."""
    if kind == "trees":
        return CooperativeBoosting(weight, random_state=0)
    networks = CooperativeBandits(weight, hidden=hidden, random_state=0)
    return networks if kind == "networks" else CooperativeEnsemble(weight, bandits=networks, random_state=0)


def deployed(name: str, kind: str, weight: float, hidden: int) -> tuple[Deployed, pd.DataFrame, pd.DataFrame]:
    """Return a model trained on one split, and its training and test people."""
    dataset = load(name)
    parts = prepare(dataset, split(dataset, seed=0))
    model = policies_of(kind, weight, hidden)
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


def row(name: str, kind: str, weight: float, hidden: int, time_limit: float) -> dict[str, object]:
    held, train, test = deployed(name, kind, weight, hidden)
    said = held.probabilities_by_group(test)[:, :, 1]
    certify(held, train, time_limit=0)  # compiles
    began = time.process_time()
    found = certify(held, train, time_limit=time_limit)
    return {
        "dataset": name,
        "policies": kind,
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
    given = asked(
        __doc__,
        "results/certificates",
        datasets=list(PUBLIC),
        policies={"default": ["networks"], "choices": SETTINGS},
        time_limit={"default": 300, "type": float},
    )
    file = "certificates.csv" if given.policies == ["networks"] else "boosted.csv"
    rows = []
    for kind in given.policies:
        for weight, hidden in SETTINGS[kind]:
            for name in given.datasets:
                rows.append(row(name, kind, weight, hidden, given.time_limit))
                print(rows[-1], flush=True)
                pd.DataFrame(rows).to_csv(given.out / file, index=False)


if __name__ == "__main__":
    main()
