"""`evenhand audit`: whose decision would change with their group, under any model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.checks import MIN_GROUP
from evenhand.cli import options
from evenhand.cli.console import Notes, command_line, print_json, show, show_written, write_report
from evenhand.wording import printable

EXAMPLES = (
    "[bold]Examples[/]\n\n"
    "evenhand audit people.csv --model model.skops --report audit.html\n\n"
    "evenhand audit people.csv --label hired --sensitive sex --predictions decided\n\n"
    "evenhand audit people.csv --sensitive sex --predictions decided\n\n"
    "evenhand audit people.csv --model model.skops --twins\n\n"
    "evenhand audit people.csv --model model.skops --certify --time-limit 300\n\n"
    "evenhand audit people.csv --model model.skops --search --report audit.html\n\n"
    "evenhand audit people.csv --label hired --sensitive sex --predictions score --threshold 0.5 --json\n\n"
    "evenhand audit people.csv --sensitive sex --sensitive race --predictions selected --preset nyc-ll144"
)


def run(
    data: options.Data,
    label: Annotated[
        str | None,
        typer.Option(
            help="Column with the true labels. Default: with --model, the one that it was trained for, or a "
            "guess; with --predictions, none."
        ),
    ] = None,
    sensitive: options.Sensitive = None,
    model: Annotated[Path | None, typer.Option(help="A model saved by evenhand.")] = None,
    predictions: Annotated[
        str | None, typer.Option(help="Column with the decisions or the scores of any model.")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Lowest score that counts as a positive decision. Default: 0.5, for probabilities."
        ),
    ] = None,
    epsilon: Annotated[
        float,
        typer.Option(min=0, help="Smallest gap between the groups' probabilities that counts as large."),
    ] = 0.05,
    positive: options.Positive = None,
    drop: options.Drop = None,
    categorical: options.Categorical = None,
    weight: options.Weight = None,
    part: options.Part = "all",
    max_model_size: options.MaxModelSize = 1,
    unknown: options.Unknown = "drop",
    min_group: options.MinGroup = MIN_GROUP,
    merge_small: options.MergeSmall = None,
    seed: options.Seed = 0,
    preset: Annotated[
        str | None,
        typer.Option(
            help="Also fill in a rule's tables: nyc-ll144 (New York City's bias audit) or four-fifths."
        ),
    ] = None,
    sex: Annotated[str | None, typer.Option(help="For nyc-ll144: the column with the sex.")] = None,
    race: Annotated[
        str | None, typer.Option(help="For nyc-ll144: the column with the race/ethnicity.")
    ] = None,
    rate: Annotated[
        str,
        typer.Option(help="For nyc-ll144: 'selection' rates, or 'scoring' rates (above the median score)."),
    ] = "selection",
    small: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="For --preset: show, but don't compare, categories with a smaller share of the people.",
        ),
    ] = 0.02,
    report: options.Report = None,
    summary: options.Summary = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = None,
    sheet: options.Sheet = None,
    map: options.Map = None,
    twins: Annotated[
        bool,
        typer.Option(
            "--twins", help="Find people whose counterpart in another group gets a different decision."
        ),
    ] = False,
    edges: Annotated[
        list[str] | None,
        typer.Option(
            help="Edge of a causal graph from which to derive counterparts, such as 'sex->hours'. "
            "Repeatable; implies --twins.",
        ),
    ] = None,
    certify: Annotated[
        bool,
        typer.Option(
            "--certify",
            help="Prove an upper bound on how differently two groups' policies can treat any possible "
            "person.",
        ),
    ] = False,
    radius: Annotated[
        float | None,
        typer.Option(
            max=1,
            help="For --certify: only consider people within this Gower distance of somebody in the file.",
        ),
    ] = None,
    search: Annotated[
        bool,
        typer.Option("--search", help="Search for possible people whose decision changes with their group."),
    ] = False,
    time_limit: Annotated[float, typer.Option(min=0, help="Seconds for --certify and for --search.")] = 60,
    engine: Annotated[
        str, typer.Option(help="Where to search for neighbours: 'cpu', or 'cuda' for a GPU.")
    ] = "cpu",
    as_json: options.Json = False,
) -> None:
    """Measure how decisions treat people and groups, and whose decision changes with their group.

    Give a model saved by evenhand (--model), or the column with the decisions of any other model
    (--predictions). Without --label, decisions are compared between groups, but not with true labels. The
    findings say what was measured; they give no verdict.
    """
    from evenhand.auditing.statutory import PRESETS, SMALL
    from evenhand.checks import one_of
    from evenhand.code_version import made
    from evenhand.cuda import check_engine
    from evenhand.report.from_audit import summary_of_audit
    from evenhand.report.persons import MOST_PERSONS
    from evenhand.tables.paths import bare_name
    from evenhand.workflow.file_audit import audit_file
    from evenhand.workflow.large_file import large_file
    from evenhand.workflow.table import PERSON_NUMBER, check_written

    check_engine(engine)
    check_written(report, summary, inputs=(data, model))
    if preset is not None:
        one_of("preset", preset, PRESETS)
    elif sex or race or rate != "selection" or small != SMALL:
        raise ValueError("Got --sex, --race, --rate or --small, which have no effect without --preset.")
    if radius is not None and not certify:
        raise ValueError("Got --radius, which has no effect without --certify.")
    asked: dict[str, Any] = {
        "predictions": predictions, "label": label, "sensitive": sensitive, "positive": positive,
        "drop": drop, "threshold": threshold, "epsilon": epsilon, "n_listed": MOST_PERSONS, "seed": seed,
        "unknown": unknown, "min_group": min_group, "weight": weight, "engine": engine,
        "twins": {"edges": edges} if edges else twins,
    }  # fmt: skip
    of_people: dict[str, Any] = {
        "model": model, "categorical": categorical, "map": options.changes(map), "merge_small": merge_small,
        "certify": certify and {"time_limit": time_limit, "radius": radius},
        "search": search and {"time_limit": time_limit},
    }  # fmt: skip
    large = large_file(data, of_people)
    done = (
        audit_file(
            data, **asked, **of_people, encoding=encoding, decimal=decimal, sheet=sheet, part=part,
            max_bytes=max_model_size << 30, progress=Notes(),
        )
        if large is None
        else large.audit(**asked)
    )  # fmt: skip
    filled = done.audit.statutory(preset, sex=sex, race=race, rate=rate, small=small) if preset else None
    whole = summary_of_audit(
        done.audit, name=bare_name(data), label=done.label, sensitive=done.sensitive,
        how=made(command_line(), seeds=[seed], data=[done.source]),
        model=str(model) if model else f"Column {predictions}", filled=filled,
    )  # fmt: skip
    whole["studies"][0]["notes"].append(PERSON_NUMBER)
    written = write_report(whole, report, summary)
    if as_json:
        tables = {"statutory": filled.to_dict()} if filled else {}
        print_json(done.audit.to_dict() | tables | {"written": written})
        return
    said = done.audit.summary() + (f"\n\n{filled.summary()}\n" if filled else "")
    show(printable(said))
    show_written(written)
