"""Where Table 2's CCB rows come from: the luckiest of many checkpoints, with λ·KL or with a constant in its place.

    python experiments/table2_explained.py             # writes results/table2/; minutes on two cores

The published reward on Adult (one split: its test part is known) and COMPAS (five), with two output units and Adam at 0.001,
30 and 50 epochs, checkpoints every 1,000 steps. The control pays 1[a = y] − c and asks no other group's policy. Every
checkpoint is scored on the validation part, and the best of each run on the test part, only to be looked at.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from asking import asked
from joblib import Parallel, delayed

from evenhand import CooperativeBandits, Correctness
from evenhand.datasets import load
from evenhand.metrics.networks import freeze
from evenhand.metrics.selection import Judged
from evenhand.protocol.trial import Prepared, make_ready, seed_of

BEST = 50  # checkpoints looked at: as many of each split
EPOCHS, HIGH, SPLITS = {"adult": 30, "compas": 50}, {"adult": 0.80, "compas": 0.60}, {"adult": 1, "compas": 5}
RUN = ["dataset", "split", "reward", "weight", "hidden"]
PUBLISHED, CONSTANT = "λ·KL, as published", "a constant in its place"
GRIDS: dict[str, list[float]] = {PUBLISHED: [10, 20, 50, 100], CONSTANT: [0.5, 1, 2, 5]}


def watched(
    ready: Prepared, dataset: str, split: int, reward: str, weight: float, hidden: int
) -> pd.DataFrame:
    """Train once, and return a row for each checkpoint; the best have test scores."""
    options: dict[str, Any] = {"epochs": EPOCHS[dataset], "learning_rate": 1e-3, "hidden": hidden}
    if reward == CONSTANT:
        options["reward"] = Correctness(gains=np.eye(2) - weight)
    seed = seed_of(split, reward, {"weight": weight, "hidden": hidden})
    run = dict(zip(RUN, (dataset, split, reward, weight, hidden), strict=True))
    model = CooperativeBandits.published(weight, variant="authors", random_state=seed, **options)
    rows: list[dict[str, Any]] = []
    kept: list[Any] = []

    def look(step: int, model: CooperativeBandits) -> None:
        scores = scored(ready.validation, model, "validation")
        rows.append({**run, "step": step, **scores})
        kept.append(freeze(model))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(ready.X, ready.y, sensitive_features=ready.s, callback=look)
    table = pd.DataFrame(rows)
    best = table.nlargest(BEST, "validation_delta").index
    tested = pd.DataFrame([scored(ready.test, kept[at], "test") for at in best], index=best)
    return table.join(tested)


def scored(part: Judged, model: Any, name: str) -> dict[str, float]:
    scores = part.scores(model)
    return {f"{name}_{key}": value for key, value in scores._asdict().items()} | {
        f"{name}_delta": scores.delta
    }


def beside(table: pd.DataFrame) -> pd.Series:
    """Return the validation discrimination one checkpoint before and after, their mean."""
    runs = table.groupby(RUN, sort=False)["validation_discrimination"]
    return pd.concat([runs.shift(1), runs.shift(-1)], axis=1).mean(axis=1)


def best_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return the checkpoints with the highest validation delta, as many of each split; the highest first."""
    each = BEST // table["split"].nunique()
    best = [rows.nlargest(each, "validation_delta") for _, rows in table.groupby("split")]
    return pd.concat(best).sort_values("validation_delta", ascending=False, kind="stable")


def found(table: pd.DataFrame) -> dict[str, Any]:
    """Return what the checkpoints of one data set and one reward say."""
    chosen = table.loc[table.groupby("split")["validation_delta"].idxmax()]
    best = best_of(table)
    flips = table.groupby("weight")["validation_flip_rate"].mean()
    measured = ("weight", "hidden", "step", "test_accuracy", "test_discrimination", "test_flip_rate")
    return {
        "checkpoints": len(table),
        "high": HIGH[table["dataset"].iloc[0]],
        "share above": float((table["validation_delta"] > HIGH[table["dataset"].iloc[0]]).mean()),
        "chosen": {name: chosen[name].tolist() for name in measured},
        "best": {
            "discrimination on validation": best["validation_discrimination"].mean(),
            "one checkpoint before and after": best["beside"].mean(),
            "on test": best["test_discrimination"].mean(),
            "flip rate": best["test_flip_rate"].mean(),
        },
        "all": {"discrimination": table["validation_discrimination"].mean(), "delta": table["validation_delta"].mean()},
        "flips by weight": {f"{weight:g}": float(rate) for weight, rate in flips.items()},
    }  # fmt: skip


def figure(table: pd.DataFrame, out: Path) -> None:
    """Draw delta over the checkpoints of each run on Adult, with the best marked."""
    drawn = go.Figure()
    for (reward, weight, hidden), run in table.groupby(["reward", "weight", "hidden"], sort=False):
        if hidden != table["hidden"].max():
            continue
        name = f"{'λ' if reward == PUBLISHED else 'constant'} = {weight:g}"
        line = {"width": 1, "dash": "solid" if reward == PUBLISHED else "dot"}
        drawn.add_trace(go.Scatter(x=run["step"], y=run["validation_delta"], name=name, line=line))
    best = best_of(table)
    mark = {"mode": "markers", "marker": {"color": "black", "size": 6}}
    drawn.add_trace(go.Scatter(x=best["step"], y=best["validation_delta"], name=f"the best {BEST}", **mark))
    mark = {"mode": "markers", "marker": {"color": "black", "size": 6, "symbol": "circle-open"}}
    drawn.add_trace(go.Scatter(x=best["step"], y=best["test_delta"], name="the same on test", **mark))
    drawn.update_xaxes(title="steps")
    drawn.update_yaxes(title="accuracy − discrimination, validation part")
    drawn.update_layout(template="plotly_white", title="Adult: delta over checkpoints")
    drawn.write_html(out / "table2.html")


def drawing(table: pd.DataFrame) -> str:
    """Return an SVG for the documentation: the run on Adult with the best checkpoint, which would be published."""
    best = best_of(table[table["reward"] == PUBLISHED])
    same = ["weight", "hidden"]
    run = table[(table["reward"] == PUBLISHED) & (table[same] == best.iloc[0][same]).all(axis=1)]
    low, high, last = run["validation_delta"].min(), 0.85, run["step"].max()

    def at(step: float, delta: float) -> str:
        return f"{60 + 720 * step / last:.0f},{20 + 280 * (high - delta) / (high - low):.0f}"

    def circles(column: str, fill: str) -> str:
        places = [
            at(row["step"], row[column]).split(",") for _, row in best[best.index.isin(run.index)].iterrows()
        ]
        return "".join(f'<circle cx="{x}" cy="{y}" r="4" fill="{fill}" stroke="#b3261e"/>' for x, y in places)

    ticks = "".join(
        f'<text x="52" y="{at(0, tick).split(",")[1]}" text-anchor="end">{tick:.1f}</text>'
        for tick in np.arange(np.ceil(10 * low) / 10, high, 0.1)
    )
    line = " ".join(at(step, delta) for step, delta in zip(run["step"], run["validation_delta"], strict=True))
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 350" font-family="sans-serif" font-size="12">'
        f'<rect width="800" height="350" fill="white"/>{ticks}'
        f'<polyline points="{line}" fill="none" stroke="#5b7db1"/>{circles("validation_delta", "#b3261e")}'
        f'{circles("test_delta", "white")}<text x="60" y="325">accuracy − discrimination on validation at every 1,000 steps, '
        f"{last:,.0f} in all (λ = {best.iloc[0]['weight']:g}, {best.iloc[0]['hidden']:g} hidden units).</text>"
        f'<text x="60" y="342">Filled: those of the best {BEST} of all runs that are in this one. Open: the same on test.</text></svg>\n'
    )


def train(datasets: list[str], widths: list[int]) -> list[pd.DataFrame]:
    """Train every run of the data sets."""
    runs = [
        delayed(watched)(ready, name, split, reward, weight, hidden)
        for name in datasets
        for split in range(SPLITS[name])
        for ready in [make_ready(load(name, rows="published"), split, "published")]
        for hidden in widths
        for reward, weights in GRIDS.items()
        for weight in weights
    ]
    return list(Parallel(n_jobs=2, prefer="threads")(runs))


def main() -> None:
    arguments = asked(
        __doc__,
        "results/table2",
        datasets={"default": list(EPOCHS), "choices": list(EPOCHS)},
        hidden=[10, 20, 40],
        tables={"default": False, "help": "only count again, from checkpoints.csv"},
    )
    if not arguments.tables:
        pd.concat(train(arguments.datasets, arguments.hidden)).to_csv(
            arguments.out / "checkpoints.csv", index=False
        )
    table = pd.read_csv(arguments.out / "checkpoints.csv")
    table["beside"] = beside(table)
    says: dict[str, dict[str, Any]] = {}
    for (dataset, reward), rows in table.groupby(["dataset", "reward"], sort=False):
        says.setdefault(str(dataset), {})[str(reward)] = found(rows)
    (arguments.out / "found.json").write_text(json.dumps(says, indent=1, ensure_ascii=False))
    adult = table[table["dataset"] == "adult"]
    if len(adult):
        figure(adult, arguments.out)
        (arguments.out / "table2.svg").write_text(drawing(adult))
    print(json.dumps(says, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
