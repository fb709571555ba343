"""FairGBM, boosted trees with fairness constraints, beside CooperativeBoosting under FairGBM's own constraints on Adult.

    python -m venv fairgbm && fairgbm/bin/pip install 'numpy<2' 'scikit-learn<1.6' fairgbm
    python experiments/fairgbm_peer.py --python fairgbm/bin/python       # writes results/fairgbm/

FairGBM 0.9 needs older libraries than evenhand does, so it runs in an environment of its own: this file runs there too,
with --there, reads the people from a file and writes what it decides. Both get the same columns, without the group, on
one thread, from the same three random 70/15/15 splits; FairGBM at three rates of its multipliers, ours at two bounds.
The test part is measured; nothing is chosen. Seconds are those of the processor, for `fit` alone.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

FIRST_SEED, SPLITS = 3000, 3
CONSTRAINTS = {"equal opportunity": "FNR", "equalised odds": "FNR,FPR"}
RATES = (0.01, 0.1, 1.0)  # of the multipliers; the second is FairGBM's default
BOUNDS = (0.01, 0.05)


def fitted(model: Any, *people: Any, **extra: Any) -> tuple[Any, float]:
    """The fitted model, and the processor's seconds."""
    started = time.process_time()
    return model.fit(*people, **extra), time.process_time() - started


def there(folder: Path) -> None:
    """Run FairGBM on every split in the folder, in FairGBM's environment."""
    from fairgbm import FairGBMClassifier

    for file in sorted(folder.glob("people-*.npz")):
        people = dict(np.load(file))
        answers = {}
        for constraint, kind in CONSTRAINTS.items():
            for rate in RATES:
                model = FairGBMClassifier(
                    constraint_type=kind, multiplier_learning_rate=rate, n_jobs=1, random_state=0
                )
                model, seconds = fitted(model, people["X"], people["y"], constraint_group=people["s"])
                yes = model.predict_proba(people["test_X"])[:, 1] > 0.5
                answers[f"{constraint}|{rate}"] = np.append(yes, seconds)
        np.savez(folder / file.name.replace("people", "answers"), **answers)


def people_of(dataset: Any, seed: int) -> dict[str, np.ndarray]:
    """One split as arrays: who trains and who is measured."""
    from evenhand.protocol.trial import SPLITS as WAYS
    from evenhand.tables.preprocessing import prepare

    parts = prepare(dataset, WAYS["random"](dataset, seed))
    groups = np.unique(parts.train.s)
    found = {}
    for prefix, part in (("", parts.train), ("test_", parts.test)):
        found[f"{prefix}X"] = np.asarray(
            part.X.toarray() if hasattr(part.X, "toarray") else part.X, np.float32
        )
        found[f"{prefix}y"] = (np.asarray(part.y) == parts.pos_label).astype(int)
        found[f"{prefix}s"] = np.searchsorted(groups, part.s)
    return found


def ours(people: dict[str, np.ndarray]) -> Iterator[tuple[str, str, np.ndarray, float, float]]:
    """What CooperativeBoosting decides under each constraint and bound, its flips, and its seconds."""
    from evenhand import CooperativeBoosting, EqualizedOdds, EqualOpportunity, Likelihood, LogRatio

    for constraint, term in zip(CONSTRAINTS, (EqualOpportunity, EqualizedOdds), strict=True):
        for bound in BOUNDS:
            reward = Likelihood() + LogRatio() + term(bound=bound)
            model = CooperativeBoosting(20.0, reward=reward, random_state=0)
            model, seconds = fitted(model, people["X"], people["y"], sensitive_features=people["s"])
            decided = model.probabilities_by_group(people["test_X"]).argmax(2)
            own = decided[np.arange(len(decided)), people["test_s"]]
            yield (
                constraint,
                f"ours, bound {bound:g}",
                own,
                float((decided[:, 0] != decided[:, 1]).mean()),
                seconds,
            )


def measured(people: dict[str, np.ndarray], yes: np.ndarray) -> dict[str, float]:
    """Accuracy, and how far the groups' true and false positive rates are apart."""
    y, s = people["test_y"], people["test_s"]
    apart = [
        abs(np.subtract(*(yes[(y == label) & (s == group)].mean() for group in (0, 1)))) for label in (1, 0)
    ]
    return {"accuracy": float((yes == y).mean()), "TPR gap": apart[0], "FPR gap": apart[1]}


def compared(dataset: Any, folder: Path, python: str, splits: int) -> list[dict[str, Any]]:
    """A row for each split, constraint and setting, of theirs and of ours."""
    everybody = {seed: people_of(dataset, seed) for seed in range(FIRST_SEED, FIRST_SEED + splits)}
    for seed, people in everybody.items():
        np.savez(folder / f"people-{seed}.npz", **people)
    subprocess.run([python, __file__, "--there", str(folder)], check=True)
    rows = []
    list(ours(next(iter(everybody.values()))))  # compiles before anything is timed
    for seed, people in everybody.items():
        for key, answer in np.load(folder / f"answers-{seed}.npz").items():
            constraint, rate = key.split("|")
            # It never sees the group when it decides: nobody's decision flips.
            rows.append({"seed": seed, "constraint": constraint, "method": f"FairGBM, rate {float(rate):g}",
                         **measured(people, answer[:-1]), "flips": 0.0, "seconds": answer[-1]})  # fmt: skip
        for constraint, name, yes, flips, seconds in ours(people):
            rows.append({"seed": seed, "constraint": constraint, "method": name, **measured(people, yes),
                         "flips": flips, "seconds": seconds})  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", help="the interpreter of an environment that has fairgbm")
    parser.add_argument("--there", type=Path, help="run FairGBM on the splits in this folder")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--out", type=Path, default=Path("results/fairgbm"))
    arguments = parser.parse_args()
    if arguments.there:
        there(arguments.there)
    elif arguments.python:
        here(arguments.out, arguments.python, arguments.splits)
    else:
        parser.error("--python is needed: the interpreter of an environment that has fairgbm")


def here(out: Path, python: str, splits: int) -> None:
    """Compare, and write the table."""
    import pandas as pd

    from evenhand.datasets import load

    out.mkdir(parents=True, exist_ok=True)
    rows = compared(load("adult", rows="published"), out, python, splits)
    table = pd.DataFrame(rows)
    table.to_csv(out / "trials.csv", index=False)
    print(table.groupby(["constraint", "method"]).mean(numeric_only=True).round(4).to_string())


if __name__ == "__main__":
    main()
