"""The paper reproduced: every data set, method and criterion; tables beside the published ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand.checks import integer, one_of
from evenhand.datasets import MAJORS, Dataset, load, load_health, simulate_registrar
from evenhand.progress import Progress
from evenhand.protocol import findings
from evenhand.protocol.compare import beside, by_major
from evenhand.protocol.grids import Method, our_methods, paper_methods
from evenhand.protocol.store import Store
from evenhand.protocol.sweep import Sweep
from evenhand.protocol.theorem import CURED, PUBLISHED, against_steps, theorem_methods
from evenhand.protocol.trial import METRICS, PUBLISHED_METRICS
from evenhand.protocol.write import tables_in_words, write_all

DATASETS = ("adult", "compas", "german", "health", "education")
CRITERION_TABLES = {
    "discrimination": "table1_discrimination",
    "delta": "table2_delta",
    "bounded": "table_bounded",
}
EDUCATION_TABLES = {"gender": "table5_education_gender", "race": "table6_education_race"}
SMALL_MAJORS = ("CEIE", "ECE")
_SUBMODEL_METRICS = (*PUBLISHED_METRICS, "positive_rate")


@dataclass(frozen=True, eq=False)
class Results:
    """What came out: tables by name, sentences, curves, everything in one dict, and where it was written."""

    tables: dict[str, pd.DataFrame]
    best: pd.DataFrame
    sentences: list[str]
    curves: list[dict[str, Any]]
    theorem: list[dict[str, Any]]
    failures: pd.DataFrame
    datasets: list[Dataset]
    settings: dict[str, Any]
    out: Path

    def __str__(self) -> str:
        return tables_in_words(self.tables, self.sentences)


def reproduce(
    *,
    full: bool = False,
    seeds: int = 1,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    engine: str = "threads",
    workers: int | None = None,
    address: str | None = None,
    out: str | Path = "results",
    progress: Progress | None = None,
    tables: bool = True,
) -> Results:
    """Run the paper's experiments, or what of them is not done yet, and write tables beside the published.

    It can be killed at any moment and goes on where it stopped when run again with the same `out`.

    Parameters
    ----------
    full : bool
        The whole grids and all five majors, or the smaller grids of `grids` and two majors.
    seeds : int
        How many splits; tables show the mean and, from two on, the 95 % interval (none where the published
        test part is the same for all).
    datasets : names of `DATASETS`, optional
        All by default. Health has the paper's label if its files are there, else the Charlson label, which
        is another task and is compared with nothing. 'education' is simulated.
    methods : names of methods, optional
        All by default: LR, Rawlsian, LFR, ALFR, CCB; LR unaware, CCB cured, CCB both.
    engine, workers, address
        See `evenhand.protocol.engines.run_tasks`.
    out : path
        The folder for tables, `summary.json` and the store.
    progress : Progress, optional
        What tells how far it is; says nothing by default.
    tables : bool
        Whether to write the tables and `summary.json`; the store is filled in any case.
    """
    integer("seeds", seeds)
    chosen = DATASETS if datasets is None else [one_of("datasets", name, DATASETS) for name in datasets]
    asked = select_methods([*paper_methods(full=full), *our_methods(full=full)], methods)
    shown = Progress() if progress is None else progress
    how: dict[str, Any] = {"engine": engine, "workers": workers, "address": address, "progress": shown}
    folder = Path(out)
    settings = {
        "full": full,
        "seeds": seeds,
        "datasets": list(chosen),
        "methods": [method.name for method in asked],
        "command": _command(full, seeds, datasets, methods),
    }
    found_tables: dict[str, pd.DataFrame] = {}
    sentences: list[str] = []
    failures: list[pd.DataFrame] = []
    with Store(folder / "trials.sqlite") as store:
        public = [load_public(name, shown) for name in chosen if name != "education"]
        best = pd.DataFrame(columns=["dataset", "method", "criterion", "seed", *METRICS])
        curves: list[dict[str, Any]] = []
        theorem: list[dict[str, Any]] = []
        if public:
            watched = theorem_methods(full=full) if _has(asked, "CCB") else []
            sweep = Sweep([*asked, *watched], public, seeds, store=store)
            best = sweep.run(**how)
            failures.append(sweep.failures())
            theorem = study_of_gradients(sweep, best)
            best = best[~best["method"].isin((PUBLISHED, CURED))].reset_index(drop=True)
            curves = convergence(sweep, best)
            comparable = [dataset.name for dataset in public if dataset.name != "health-charlson"]
            fixed = [dataset.name for dataset in public if dataset.test_rows is not None]
            found_tables |= tables_of(best, sweep, comparable, fixed)
            sentences += in_words(best, found_tables, public, theorem)
            if seeds > 1 and fixed:
                sentences.append(
                    f"No intervals for {' and '.join(fixed)}: the published test part is the same for every "
                    "seed, and what another one would show can't be seen from it."
                )
        if "education" in chosen:
            for sensitive, name in EDUCATION_TABLES.items():
                shown.say(f"Education by {sensitive}: simulated students, in the sizes the paper states.")
                tasks = education_tasks(sensitive, list(MAJORS) if full else SMALL_MAJORS)
                small = select_methods([*paper_methods(full=False), *our_methods(full=False)], methods)
                sweep = Sweep(small, tasks, seeds, split="stratified", store=store)
                found = sweep.run(**how)
                failures.append(sweep.failures())
                found_tables[name] = beside(by_major(found[found["criterion"] == "discrimination"]), name)
    failed = pd.concat(failures, ignore_index=True)
    results = Results(found_tables, best, sentences, curves, theorem, failed, public, settings, folder)
    if tables:
        write_all(results)
        shown.say(f"Tables, summary and store are in {folder}/")
    return results


def load_public(name: str, progress: Progress) -> Dataset:
    """Load one of the paper's public data sets with its published rows, and say what is not as published."""
    dataset = load_health(label="auto") if name == "health" else load(name, rows="published")
    for note in dataset.notes:
        progress.say(f"{dataset.name}: {note}")
    return dataset


def education_tasks(sensitive: str, majors: Sequence[str]) -> list[Dataset]:
    """Return one task a course of each major, of simulated students."""
    return [
        task for major in majors for task in simulate_registrar(major).tasks(sensitive=sensitive).values()
    ]


def select_methods(known: Sequence[Method], names: Sequence[str] | None) -> list[Method]:
    """Return the methods asked for, or all; an unknown name is an error that lists the known ones."""
    by_name = {method.name: method for method in known}
    if names is None:
        return list(known)
    return [by_name[one_of("methods", name, by_name)] for name in names]


def tables_of(
    best: pd.DataFrame, sweep: Sweep, comparable: Sequence[str], one_test_part: Sequence[str]
) -> dict[str, pd.DataFrame]:
    """Return Tables 1 to 3 and the bounded one, beside the published numbers; see `beside`."""
    which: dict[str, Any] = {"comparable": comparable, "one_test_part": one_test_part}
    tables = {
        name: beside(best[best["criterion"] == criterion], name, **which)
        for criterion, name in CRITERION_TABLES.items()
    }
    rows = []
    for dataset, seed in _splits(best, "CCB"):
        kept = sweep.chosen(dataset, seed, "CCB", "discrimination")
        if kept is not None:
            rows += [
                {"dataset": dataset, "seed": seed, "method": name, **metrics}
                for name, metrics in kept["submodels"].items()
            ]
    if rows:
        name = "table3_submodels"
        tables[name] = beside(pd.DataFrame(rows), name, metrics=_SUBMODEL_METRICS, **which)
    return tables


def convergence(sweep: Sweep, best: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the accumulated reward against steps of the models chosen by delta, on the first seed."""
    curves = []
    for method in ("CCB", "CCB cured"):
        for dataset, seed in _splits(best, method):
            kept = sweep.chosen(dataset, seed, method, "delta")
            if seed == 0 and kept is not None and kept["curve"] is not None:
                curves.append({"dataset": dataset, "method": method, **kept["curve"]})
    return curves


def study_of_gradients(sweep: Sweep, best: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the squared gradient norms of Algorithm 1, published and cured, on the first seed."""
    studies = []
    for method in (PUBLISHED, CURED):
        for dataset, seed in _splits(best, method):
            kept = sweep.chosen(dataset, seed, method, "delta")
            if seed == 0 and kept is not None:
                curve = kept["curve"]
                study = against_steps(curve["step"], curve["squared_gradient"])
                studies.append({"dataset": dataset, "method": method, **study})
    return studies


def in_words(
    best: pd.DataFrame,
    tables: dict[str, pd.DataFrame],
    public: Sequence[Dataset],
    theorem: list[dict[str, Any]],
) -> list[str]:
    """Return what the tables of the public data sets say."""
    facts = [findings.facts_of(dataset, seed=0, split="published") for dataset in public]
    return [
        *findings.constant_in_the_paper(facts),
        *findings.constant_here(best),
        *findings.agreement(tables["table1_discrimination"], "table1_discrimination", facts),
        *findings.agreement(tables["table2_delta"], "table2_delta", facts),
        *findings.theorem_in_words(theorem),
    ]


def _splits(best: pd.DataFrame, method: str) -> list[tuple[str, int]]:
    rows = best[best["method"] == method][["dataset", "seed"]].drop_duplicates()
    return [(str(dataset), int(seed)) for dataset, seed in rows.itertuples(index=False)]


def _has(methods: Sequence[Method], name: str) -> bool:
    return any(method.name == name for method in methods)


def _command(full: bool, seeds: int, datasets: Sequence[str] | None, methods: Sequence[str] | None) -> str:
    parts = ["evenhand reproduce", "--full" if full else "", f"--seeds {seeds}" if seeds > 1 else ""]
    parts.append(f"--datasets {','.join(datasets)}" if datasets else "")
    parts.append(f"--methods '{','.join(methods)}'" if methods else "")
    return " ".join(part for part in parts if part)
