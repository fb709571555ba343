"""`evenhand reproduce`: the paper's tables beside the published ones, figures, and the report."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from evenhand.checks import one_of
from evenhand.cli import options
from evenhand.cli.console import print_json, show, warn
from evenhand.cuda import check_engine
from evenhand.datasets import Dataset
from evenhand.progress import to_stderr
from evenhand.protocol.engines import run_trials
from evenhand.protocol.reproduce import reproduce
from evenhand.protocol.trial import published_split
from evenhand.report.from_frontier import study_of
from evenhand.report.from_reproduction import published_study, summary_of_reproduction
from evenhand.report.render import write_html
from evenhand.report.static import FORMATS, write_figures
from evenhand.report.summary import Study, write_summary
from evenhand.workflow.candidates import kept_until_done
from evenhand.workflow.exploring import explore

EXAMPLES = (
    "[bold]Examples[/]\n\n"
    "evenhand reproduce\n\n"
    "evenhand reproduce --full --seeds 5 --out results\n\n"
    "evenhand reproduce --datasets adult,german --methods LR,CCB --figures pdf"
)
WEIGHTS = (0.0, 0.1, 1.0, 10.0)
_STEPS = 300_000  # of each model along λ, at most
_CLUSTERS = {"dask": "distributed", "ray": "ray"}  # the module that an engine needs


def run(
    full: Annotated[bool, typer.Option("--full", help="Use the whole grids, and all majors.")] = False,
    seeds: Annotated[
        int, typer.Option(min=1, help="How many splits to run. Intervals need two or more.")
    ] = 1,
    datasets: Annotated[str | None, typer.Option(help="Only these data sets, separated by commas.")] = None,
    methods: Annotated[str | None, typer.Option(help="Only these methods, separated by commas.")] = None,
    engine: Annotated[
        str, typer.Option(help="Where to run: threads, processes, dask, ray or cuda.")
    ] = "threads",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Trials to run at a time. Default: one per core.")
    ] = None,
    address: Annotated[str | None, typer.Option(help="Address of a Dask or Ray cluster.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for all output.")] = Path("results"),
    people: Annotated[
        bool, typer.Option(help="Also train models along λ, for the report's slider, groups and people.")
    ] = True,
    figures: Annotated[str | None, typer.Option(help="Write figures for papers: svg, pdf or png.")] = None,
    as_json: options.Json = False,
) -> None:
    """Run the paper's experiments and compare every number with the published one.

    If the command is killed, run it again with the same --out: it continues where it stopped.
    """
    if figures is not None:
        one_of("--figures", figures, FORMATS)
    # Checked alone, before any data is loaded: nothing is to be run yet.
    run_trials([], {}, engine=engine, workers=workers, address=address)
    _check_installed(engine, figures)
    results = reproduce(
        full=full, seeds=seeds, datasets=_names(datasets), methods=_names(methods), engine=engine,
        workers=workers, address=address, out=out, progress=to_stderr(),
    )  # fmt: skip
    details = {dataset.name: _detail(dataset, out) for dataset in results.datasets} if people else {}
    whole = summary_of_reproduction(results, details)
    written = [write_summary(whole, out / "summary.json"), write_html(whole, out / "report.html")]
    if figures is not None:
        written += write_figures(whole, out / "figures", figures)
    if len(results.failures):
        warn(f"{len(results.failures)} trials failed; {out / 'failures.csv'} says why.")
    if as_json:
        print_json({"out": out, "written": written, "sentences": list(results.sentences)})
    else:
        show("\n".join(map(str, [results, *written])))


def _check_installed(engine: str, figures: str | None) -> None:
    """Raise now, and not after the training, if a library is missing."""
    if engine == "cuda":
        check_engine(engine)
    needed = [(_CLUSTERS[engine], f"--engine {engine} needs", engine)] if engine in _CLUSTERS else []
    needed += [("matplotlib", "--figures needs Matplotlib", "figures")] if figures is not None else []
    for module, what, extra in needed:
        try:
            import_module(module)
        except ImportError as error:
            raise ImportError(f"{what}: pip install 'evenhand[{extra}]' ({error}).") from error


def _detail(dataset: Dataset, out: Path) -> Study:
    rows = published_split(dataset, 0)
    with kept_until_done(out / f".{dataset.name}.unfinished") as kept:
        frontier = explore(
            dataset,
            weights=WEIGHTS,
            policies="networks",
            epochs=min(20.0, _STEPS / len(rows.train)),
            split=rows,
            resume=kept,
            progress=to_stderr(),
        )
        choice = frontier.choice()
        return {
            **study_of(frontier, choice),
            "published_reward": published_study(frontier, choice),
            "decided_by": f"{choice.candidate.name}, seed 0",
        }


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
