"""What choosing would bring: rounds of trees by early stopping, and the ensemble's weight, on the nine other tables.

    python experiments/boosted_choices.py        # writes results/boosted_choices/; some minutes on two cores

The defaults choose neither: 120 rounds, and a weight of one half. Here 15 % of the people are set aside to choose both
by their log loss, and 30 % judge. A choice from so few people is noisy; the last columns show what the best choice in
hindsight would have been.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from asking import asked
from boosted_elsewhere import FIRST_SEED, SEEDS, WEIGHT, split
from elsewhere import TABLES, People, people_of
from joblib import Parallel, delayed
from sklearn.metrics import log_loss

from evenhand import CooperativeBandits, CooperativeBoosting

ROUNDS, EVERY, MOST = 120, 20, 300
SHARES = np.linspace(0, 1, 11)  # of the trees


def own_logits(model: Any, people: People) -> np.ndarray:
    said = np.log(np.clip(model.probabilities_by_group(people.X), 1e-12, None))
    return said[np.arange(len(people.y)), np.searchsorted(model.groups_, people.s)]


def losses(logits: np.ndarray, people: People) -> float:
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return float(log_loss(people.y, powers / powers.sum(1, keepdims=True), labels=[0, 1]))


def one_split(table: Callable[[], Any], seed: int) -> dict[str, Any]:
    """Log loss on the judges: with the default, with what the others choose, and with the best in hindsight."""
    both, test = split(people_of(table), seed)
    kept = round(len(both.y) * 55 / 70)
    train, chooses = (People(*(part[at] for part in both)) for at in (slice(None, kept), slice(kept, None)))
    logits: list[tuple[np.ndarray, np.ndarray]] = []

    def look(step: int, trees: CooperativeBoosting) -> None:
        logits.append((own_logits(trees, chooses), own_logits(trees, test)))

    CooperativeBoosting(WEIGHT, rounds=MOST, checkpoint_every=EVERY, random_state=seed).fit(
        train.X, train.y, sensitive_features=train.s, callback=look
    )
    networks = CooperativeBandits(WEIGHT, standardize=False, random_state=seed).fit(
        train.X, train.y, sensitive_features=train.s
    )
    trees = logits[ROUNDS // EVERY - 1]
    beside = own_logits(networks, chooses), own_logits(networks, test)
    mixed = [
        tuple(share * a + (1 - share) * b for a, b in zip(trees, beside, strict=True)) for share in SHARES
    ]
    found: dict[str, Any] = {"table": table.__name__, "people": len(train.y), "seed": seed}
    for what, points, default in (
        ("rounds", logits, ROUNDS // EVERY - 1),
        ("weight", mixed, len(SHARES) // 2),
    ):
        told, judged = (
            [losses(point[at], people) for point in points] for at, people in enumerate((chooses, test))
        )
        found |= {
            f"{what}, default": judged[default], f"{what}, chosen": judged[int(np.argmin(told))],
            f"{what}, best in hindsight": min(judged), f"{what} chosen": int(np.argmin(told)),
        }  # fmt: skip
    return found


def rows(seeds: int) -> Iterator[Any]:
    for table in TABLES:
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            yield delayed(one_split)(table, seed)


def main() -> None:
    arguments = asked(__doc__, "results/boosted_choices", seeds={"default": SEEDS, "help": "how many splits"})
    found = pd.DataFrame(Parallel(n_jobs=2)(rows(arguments.seeds)))
    found["rounds chosen"] = (found["rounds chosen"] + 1) * EVERY
    found["weight chosen"] = found["weight chosen"].map(lambda at: round(float(SHARES[at]), 2))
    found.to_csv(arguments.out / "losses.csv", index=False)
    print(found.groupby("table", sort=False).mean(numeric_only=True).round(4).to_string())


if __name__ == "__main__":
    main()
