"""Reproduce the paper: every data set, method and criterion, with tables beside the published ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pandas as pd

from evenhand.atomic import try_writing
from evenhand.checks import integer, one_of
from evenhand.datasets import MAJORS, Dataset, load, load_german, load_health, simulate_registrar
from evenhand.progress import Progress, or_nothing
from evenhand.protocol import findings
from evenhand.protocol.compare import THEIRS, GradientCurve, Results, RewardCurve, beside, by_major
from evenhand.protocol.grids import Method, authors_methods, our_methods, paper_methods
from evenhand.protocol.measuring import STUDIED
from evenhand.protocol.store import Store
from evenhand.protocol.sweep import Sweep
from evenhand.protocol.theorem import CURED, PUBLISHED, against_steps, theorem_methods

DATASETS = ("adult", "compas", "german", "health", "education")
CRITERION_TABLES = {
    "discrimination": "table1_discrimination",
    "delta": "table2_delta",
    "bounded": "table_bounded",
}
EDUCATION_TABLES = {"gender": "table5_education_gender", "race": "table6_education_race"}
SMALL_MAJORS = ("CEIE", "ECE")


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
    """Run the paper's experiments and compare the results with the published tables.

    What is in the store already is not run again. If a run is killed, run it again with the same `out`, and
    it continues where it stopped.

    Parameters
    ----------
    full : bool
        Whether to use the full grids and all five majors. Otherwise the grids are smaller and there are two
        majors. Simulated students always have the smaller grids.
    seeds : int
        The number of splits. Tables show the mean and, from two splits on, the 95 % interval. There is none
        where the published test part is the same for every split.
    datasets : sequence of str, optional
        Names from `DATASETS`; by default all. Health has the paper's label if its files are there. Otherwise
        it has the Charlson label, a different task that is compared with nothing. 'education' is simulated.
    methods : sequence of str, optional
        Names of methods; by default all of `paper_methods`, `authors_methods` and `our_methods`. Those of
        `authors_methods` are left out for simulated students.
    engine, workers, address
        As for `Sweep.run`.
    out : path
        The folder for the tables and the store.
    progress : Progress, optional
        Shows the progress; by default nothing is shown.
    tables : bool
        Whether to write the tables. The store is filled in any case.
    """
    integer("seeds", seeds)
    chosen = DATASETS if datasets is None else [one_of("datasets", name, DATASETS) for name in datasets]
    known = [*paper_methods(full=full), *authors_methods(full=full), *our_methods(full=full)]
    asked = select_methods(known, methods)
    students = None if methods is None else [name for name in methods if name not in THEIRS]
    shown = or_nothing(progress)
    how: dict[str, Any] = {"engine": engine, "workers": workers, "address": address, "progress": shown}
    results = Results(_command(full, seeds, datasets, methods, engine), seeds, Path(out))
    with Store(results.out / "trials.sqlite") as store:
        try_writing(results.out / "table.csv")  # fail now, not in hours; the store may be there already
        public = [load_public(name, shown) for name in chosen if name != "education"]
        if public:
            results = _with_public(results, Sweep(asked, public, seeds, store=store), how)
            if any(method.name == "CCB" for method in asked):
                results = _with_theorem(results, Sweep(theorem_methods(full=full), public, store=store), how)
            results = replace(results, sentences=in_words(results))
        for sensitive, table in EDUCATION_TABLES.items() if "education" in chosen and students != [] else ():
            shown.say(f"Education by {sensitive}: simulated students, in the sizes that the paper states.")
            courses = education_tasks(sensitive, list(MAJORS) if full else SMALL_MAJORS)
            small = select_methods([*paper_methods(full=False), *our_methods(full=False)], students)
            sweep = Sweep(small, courses, seeds, split="stratified", store=store)
            results = _with_education(results, sweep, table, how)
    if tables:
        results.write_tables()
        shown.say(f"The tables and the store are in {results.out}/")
    return results


def _with_public(results: Results, sweep: Sweep, how: dict[str, Any]) -> Results:
    """Run the sweep of the public data sets, and add its results."""
    best = sweep.run(**how)
    tables, curves = tables_of(best, sweep), convergence(sweep, best)
    found: dict[str, Any] = {"datasets": sweep.datasets, "tables": tables, "best": best, "curves": curves}
    return replace(results, **found, failures=sweep.failures())


def _with_theorem(results: Results, sweep: Sweep, how: dict[str, Any]) -> Results:
    """Record the gradients of Algorithm 1 on the first split, and add the results."""
    best = sweep.run(**how)
    return replace(
        results, theorem=study_of_gradients(sweep, best), failures=_joined(results.failures, sweep.failures())
    )


def _with_education(results: Results, sweep: Sweep, table: str, how: dict[str, Any]) -> Results:
    """Run the sweep of the students' courses, and add its table."""
    best = sweep.run(**how)
    by_discrimination = beside(by_major(best[best["criterion"] == "discrimination"]), table)
    tables = results.tables | {table: by_discrimination}
    return replace(results, tables=tables, failures=_joined(results.failures, sweep.failures()))


def _joined(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    failures = [found for found in (before, after) if len(found)]
    return pd.concat(failures, ignore_index=True) if failures else before


def load_public(name: str, progress: Progress) -> Dataset:
    """Load one of the paper's public data sets with its published rows, and say what differs from them."""
    if name == "german":
        dataset = load_german(rows="published", personal_status=True)
    else:
        dataset = load_health(label="auto") if name == "health" else load(name, rows="published")
    for note in dataset.notes:
        progress.say(f"{dataset.name}: {note}")
    return dataset


def education_tasks(sensitive: str, majors: Sequence[str]) -> list[Dataset]:
    """Return one task per course of each major, with simulated students."""
    return [
        task for major in majors for task in simulate_registrar(major).tasks(sensitive=sensitive).values()
    ]


def select_methods(known: Sequence[Method], names: Sequence[str] | None) -> list[Method]:
    """Return the methods asked for, or all; an unknown name is an error that lists the known ones."""
    by_name = {method.name: method for method in known}
    if names is None:
        return list(known)
    return [by_name[one_of("methods", name, by_name)] for name in names]


def tables_of(best: pd.DataFrame, sweep: Sweep) -> dict[str, pd.DataFrame]:
    """Return Tables 1 to 3 and the bounded table, beside the published numbers (see `beside`)."""
    which: dict[str, Any] = {
        "comparable": [dataset.name for dataset in sweep.datasets if dataset.name != "health-charlson"],
        "one_test_part": _same_test_part(sweep.datasets),
    }
    tables = {
        name: beside(best[best["criterion"] == criterion], name, **which)
        for criterion, name in CRITERION_TABLES.items()
    }
    rows = [
        {"dataset": dataset, "seed": seed, "method": name, **metrics}
        for dataset, seed in _splits(best, "CCB")
        if (kept := sweep.chosen(dataset, seed, "CCB", "discrimination")) is not None
        for name, metrics in kept.selected["submodels"].items()
    ]
    if rows:
        name = "table3_submodels"
        tables[name] = beside(pd.DataFrame(rows), name, metrics=STUDIED, **which)
    return tables


def convergence(sweep: Sweep, best: pd.DataFrame) -> list[RewardCurve]:
    """Return the accumulated reward by step of the models chosen by delta, on the first seed."""
    return [
        {"dataset": dataset, "method": method, "step": curve["step"], "reward": curve["reward"]}
        for method in ("CCB", "CCB cured")
        for dataset, curve in _first_curves(sweep, best, method)
    ]


def study_of_gradients(sweep: Sweep, best: pd.DataFrame) -> list[GradientCurve]:
    """Return the squared gradient norms of Algorithm 1, published and cured, on the first seed."""
    curves = []
    for method in (PUBLISHED, CURED):
        for dataset, curve in _first_curves(sweep, best, method):
            norms = against_steps(curve["step"], curve["squared_gradient"])
            curves.append(cast(GradientCurve, {"dataset": dataset, "method": method, **norms}))
    return curves


def in_words(results: Results) -> list[str]:
    """Return sentences on what the tables of the public data sets show."""
    facts = [findings.facts_of(dataset, seed=0, split="published") for dataset in results.datasets]
    sentences = [
        *findings.constant_in_the_paper(facts),
        *findings.constant_here(results.best),
        *findings.agreement(results.tables["table1_discrimination"], "table1_discrimination", facts),
        *findings.agreement(results.tables["table2_delta"], "table2_delta", facts),
        *findings.lucky_checkpoints(results.best),
        *findings.theorem_in_words(results.theorem),
    ]
    fixed = _same_test_part(results.datasets)
    if results.seeds > 1 and fixed:
        sentences.append(
            f"No intervals for {' and '.join(fixed)}: the published test part is the same for every seed, "
            "so seeds can't show how much another test part would change."
        )
    return sentences


def _first_curves(
    sweep: Sweep, best: pd.DataFrame, method: str
) -> Iterator[tuple[str, dict[str, list[float]]]]:
    for dataset, seed in _splits(best, method):
        kept = sweep.chosen(dataset, seed, method, "delta")
        if seed == 0 and kept is not None and kept.trained["curve"] is not None:
            yield dataset, kept.trained["curve"]


def _same_test_part(datasets: Sequence[Dataset]) -> list[str]:
    return [dataset.name for dataset in datasets if dataset.test_rows is not None]


def _splits(best: pd.DataFrame, method: str) -> list[tuple[str, int]]:
    rows = best[best["method"] == method][["dataset", "seed"]].drop_duplicates()
    return [(str(dataset), int(seed)) for dataset, seed in rows.itertuples(index=False)]


def _command(
    full: bool, seeds: int, datasets: Sequence[str] | None, methods: Sequence[str] | None, engine: str
) -> str:
    parts = ["evenhand reproduce", "--full" if full else "", f"--seeds {seeds}" if seeds > 1 else ""]
    parts.append(f"--datasets {','.join(datasets)}" if datasets else "")
    parts.append(f"--methods '{','.join(methods)}'" if methods else "")
    parts.append("--engine cuda" if engine == "cuda" else "")  # the others compute the same numbers
    return " ".join(part for part in parts if part)
