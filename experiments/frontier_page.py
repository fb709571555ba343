"""The measured trade-off as a page of evenhand's report: results/frontier/summary.json and report.html.

    python experiments/frontier.py
    python experiments/frontier_page.py                  # --out for another folder of frontier.py's

It only reads what frontier.py wrote there; no number and no claim is typed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import frontier_words as words
import pandas as pd
from choosing import COMPETITORS, DATASETS, DELTA, UNAWARE, chosen
from frontier_tables import MAX_DISCRIMINATION, MAX_FLIP
from pages import TITLES

from evenhand.code_version import made
from evenhand.datasets import Dataset, load
from evenhand.metrics.measures import SHOWN
from evenhand.protocol.compare import published
from evenhand.protocol.trial import SPLITS
from evenhand.report import write_html, write_summary
from evenhand.report.summarise import model_of, summary_of
from evenhand.report.summary import ModelEntry, Overview, PublishedEntry, Study, Summary, Table

# What delta chooses from; all of ours together make the front.
METHODS = {words.OURS: "CCB parity", **{name: name for name in (*COMPETITORS, *UNAWARE)}}
CONSTANT, UNFINISHED = "decide all people alike on most splits", "were not tried on every split"
REMAKE = "`python experiments/frontier.py --tables`"
ALIKE = 0.001  # as in choosing.NotConstant: a rate of positives this near to 0 or 1 is a constant classifier


@dataclass(frozen=True)
class Tables:
    """What frontier.py wrote."""

    trials: pd.DataFrame
    delta: pd.DataFrame
    cost: pd.DataFrame
    hypervolume: pd.DataFrame
    bounds: pd.DataFrame

    @classmethod
    def read(cls, folder: Path) -> Tables:
        missing = [name for name in cls.__annotations__ if not (folder / f"{name}.csv").is_file()]
        if missing:
            raise SystemExit(f"{folder} has no {missing[0]}.csv; run `python experiments/frontier.py` first.")
        found = cls(**{name: pd.read_csv(folder / f"{name}.csv") for name in cls.__annotations__})
        if "bound on" not in found.bounds:
            raise SystemExit(
                f"{folder / 'bounds.csv'} has no column 'bound on': make the tables again with {REMAKE}."
            )
        return found


def choices_of(tables: Tables, dataset: str) -> dict[str, pd.DataFrame]:
    """What the delta criterion chooses for each method, split by split; checked against delta.csv."""
    here = tables.trials[(tables.trials.dataset == dataset) & (tables.trials.criterion == "delta")]
    found = {}
    for name, method in METHODS.items():
        if (here.method == method).any():
            found[name] = chosen(here, [method], DELTA.rank).set_index("seed").sort_index()
    told = tables.delta[tables.delta.dataset == dataset].set_index("method")["mean"]
    for name, rows in found.items():
        if name not in told or abs(told[name] - rows.delta.mean()) > 1e-9:
            raise SystemExit(
                f"delta.csv says {told.get(name)} for {name} on {dataset}, trials.csv {rows.delta.mean()}: "
                f"make the tables again with {REMAKE}."
            )
    return found


def grid_points(trials: pd.DataFrame) -> tuple[list[ModelEntry], dict[str, int]]:
    """Every grid point's mean over the splits; and how many are left out, by why."""
    shown = [name for name in SHOWN if name in ("accuracy", "discrimination", "flip_rate", "positive_rate")]
    points, seen = [], set()
    left_out = {CONSTANT: 0, UNFINISHED: 0}
    splits = trials.seed.nunique()
    for (method, parameters, criterion), rows in trials.groupby(
        ["method", "parameters", "criterion"], sort=False
    ):
        means = tuple(round(float(rows[name].mean()), 5) for name in shown)
        # Methods without checkpoints have the same model under every criterion.
        if (method, parameters, means) in seen:
            continue
        seen.add((method, parameters, means))
        if ((rows.positive_rate <= ALIKE) | (rows.positive_rate >= 1 - ALIKE)).mean() > 0.5:
            left_out[CONSTANT] += 1
            continue
        if rows.seed.nunique() < splits:
            left_out[UNFINISHED] += 1
            continue
        ours = method.startswith("CCB")
        checkpointed = (
            trials[(trials.method == method) & (trials.parameters == parameters)]
            .groupby("seed")
            .accuracy.nunique()
            .max()
            > 1
        )
        settings = ", ".join(
            f"{key.replace('_', ' ')} {value}" for key, value in json.loads(parameters).items()
        )
        name = f"{method}: {settings}" + (f", checkpoint by {criterion}" if checkpointed else "")
        metrics = {key: {"value": value} for key, value in zip(shown, means, strict=True)}
        points.append(model_of(name, metrics, method=method, family=words.OURS if ours else method))
    order = list(METHODS)
    return sorted(points, key=lambda point: order.index(point["family"])), left_out


def study_of(tables: Tables, choices: dict[str, pd.DataFrame], dataset: Dataset) -> Study:
    """One data set: figure, words and tables."""
    name = dataset.name
    trials = tables.trials[(tables.trials.dataset == name) & tables.trials.method.map(shown_method)]
    points, left_out = grid_points(trials)
    cost = tables.cost[tables.cost.dataset == name].drop(columns="dataset")
    bounds = tables.bounds[tables.bounds.dataset == name].drop(columns="dataset")
    paper = published_row(name)
    notes = [
        words.against_each(choices),
        words.beside_the_paper(choices, paper["metrics"]["delta"]["value"]) if paper else "",
        words.beside_a_constant(choices, positives_of(dataset, choices[words.OURS].index)),
        words.where_others_do_better(choices),
        *(
            f"The figure leaves out grid points that {why}: {number}."
            for why, number in left_out.items()
            if number
        ),
    ]
    return {
        "name": TITLES[name],
        "label": str(dataset.label.name),
        "pos_label": str(dataset.pos_label),
        "sensitive": str(dataset.sensitive.columns[0]),
        "people": len(dataset),
        "sentence": words.headline(choices),
        "models": [
            model_of(
                method,
                {metric: words.measured(rows[metric], metric) for metric in SHOWN if metric in rows},
                method="CCB" if method == words.OURS else method,
                family=method,
                criterion="delta",
            )
            for method, rows in choices.items()
        ],
        "points": points,
        "published": [paper] if paper else [],
        "tables": [cost_table(cost), areas_table(tables.hypervolume, name), bounds_table(bounds)],
        "notes": [note for note in notes if note],
    }


def positives_of(dataset: Dataset, seeds: Sequence[int]) -> pd.Series:
    """The share of positive labels on each split's test part."""
    positive = (dataset.label == dataset.pos_label).to_numpy()
    return pd.Series({seed: positive[SPLITS["random"](dataset, int(seed)).test].mean() for seed in seeds})


def shown_method(method: str) -> bool:
    return method.startswith("CCB") or method in METHODS


def published_row(dataset: str) -> PublishedEntry | None:
    """The paper's CCB, chosen by delta."""
    rows = published()
    rows = rows[(rows.table == "table2_delta") & (rows.method == "CCB") & (rows.dataset == dataset)]
    if rows.empty:
        return None
    row = rows.iloc[0]
    values = {metric: float(row[metric]) for metric in ("accuracy", "discrimination", "consistency")}
    values["delta"] = values["accuracy"] - values["discrimination"]
    metrics = {metric: {"value": value} for metric, value in values.items()}
    return {"method": "CCB", "criterion": "delta", "metrics": metrics}


def cost_table(rows: pd.DataFrame) -> Table:
    caption = (
        f"“Individual” asks for a flip rate of at most {MAX_FLIP:g}, “both” for a discrimination of at most "
        f"{MAX_DISCRIMINATION:g} as well, on validation; the most accurate of those is measured on test. Mean ± 95 % interval."
    )
    return text_table("What each kind of fairness costs", caption, rows, words.costs(rows))


def areas_table(rows: pd.DataFrame, dataset: str) -> Table:
    caption = (
        "The share of the unit square of accuracy and 1 − discrimination that a method's front dominates on test, in percent; "
        "more is better. Front of validation: the points that a user could choose from. "
        "All points: the test part itself chooses, which favours whoever has more of them. Mean ± 95 % interval."
    )
    cells = rows.pivot(index="method", columns="points", values=dataset)
    cells = cells.loc[rows.method.unique(), rows.points.unique()].rename_axis(columns=None)
    return text_table("The whole front, as an area", caption, cells.reset_index(), words.areas(rows, dataset))


def bounds_table(rows: pd.DataFrame) -> Table:
    caption = (
        "A user asks ours for at most so much on validation; the most accurate model within it is measured on test. "
        "Met: on how many splits it is kept there, within the sampling error of a test part of this size. Mean ± 95 % interval."
    )
    return text_table("Does a bound hold?", caption, rows, words.bounds(rows))


def text_table(title: str, caption: str, rows: pd.DataFrame, said: str = "") -> Table:
    columns = [str(name).replace("_", " ").replace("auc", "AUC") for name in rows.columns]
    cells = [["–" if pd.isna(cell) else str(cell) for cell in row] for row in rows.to_numpy(dtype=object)]
    return {
        "title": title,
        "caption": caption,
        "columns": columns,
        "rows": cells,
        "words": said,
        "numeric": True,
    }


def overview(tables: Tables, choices: dict[str, dict[str, pd.DataFrame]]) -> Overview:
    """Delta of every method on every data set, how it was measured, and what limits it."""
    cells = tables.delta.pivot(index="method", columns="dataset", values="delta")
    cells = (
        cells.loc[tables.delta.method.unique(), list(choices)]
        .rename(columns=TITLES)
        .rename_axis(columns=None)
    )
    trials = tables.trials[tables.trials.method.map(shown_method)]
    splits = trials.groupby("dataset").seed.nunique()[list(choices)]
    families = trials.method.where(~trials.method.str.startswith("CCB"), words.OURS)
    grids = (trials.method + trials.parameters).groupby([families, trials.dataset]).nunique()
    few = trials[trials.method == METHODS[words.OURS]].groupby("dataset").parameters.nunique()
    sizes = words.listed([f"{name} {span(grids[name])}" for name in METHODS if name in grids])
    notes = [
        f"Random splits into 70 % training, 15 % validation and 15 % test, the same for all methods: {words.listed([f'{TITLES[name]} {count}' for name, count in splits.items()])}.",
        "Every method's grid point is chosen on the validation part; the test part is only measured. A constant classifier is chosen only where a method has nothing else.",
        f"Grid points: {sizes}. Of ours, delta chooses from {span(few)}; the front, the bounds and the costs are of all.",
        "The paper's baselines are judged at every checkpoint, as the paper does; ours once, after training.",
        "fairlearn's decisions are drawn from its mixture, as it is meant to be used; its AUC is therefore that of yes and no, not of a score.",
        "“By more than chance” means that the 95 % interval of the difference, split by split, leaves out zero; each interval stands for itself.",
        "Splits of the same people overlap; the intervals allow for that (Nadeau and Bengio, 2003).",
        "The published CCB is the paper's own number on its own single split.",
    ]  # fmt: skip
    caption = "Accuracy less discrimination on the test part of what each method chooses on validation: mean ± 95 % interval over the splits."
    table = text_table("Delta, all data sets", caption, cells.reset_index())
    named = {TITLES[name]: found for name, found in choices.items()}
    return {"sentence": words.over_all(named), "tables": [table], "notes": notes}


def span(sizes: pd.Series) -> str:
    """How many, where data sets may differ."""
    return f"{sizes.min()}" if sizes.min() == sizes.max() else f"{sizes.min()}–{sizes.max()}"


def summary(tables: Tables, datasets: Sequence[Dataset], command: str) -> Summary:
    choices = {dataset.name: choices_of(tables, dataset.name) for dataset in datasets}
    studies = [study_of(tables, choices[dataset.name], dataset) for dataset in datasets]
    data = [
        {
            "name": TITLES[each.name],
            "people": len(each),
            "fingerprint": each.fingerprint,
            "source": each.source,
        }
        for each in datasets
    ]
    how = made(command, seeds=sorted(int(seed) for seed in tables.trials.seed.unique()), data=data)
    return summary_of("compare", "The trade-off, measured", studies, how, overview(tables, choices))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=Path("results/frontier"), help="the folder of frontier.py"
    )
    arguments = parser.parse_args()
    tables = Tables.read(arguments.out)
    known = set(tables.trials.dataset)
    datasets = [load(name, rows="published") for name in DATASETS if name in known]
    where = "" if arguments.out == parser.get_default("out") else f" --out {arguments.out}"
    command = f"python experiments/frontier.py{where} && python experiments/frontier_page.py{where}"
    whole = summary(tables, datasets, command)
    print(write_summary(whole, arguments.out / "summary.json"))
    print(write_html(whole, arguments.out / "report.html"))


if __name__ == "__main__":
    main()
